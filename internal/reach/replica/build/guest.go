package build

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
)

const guestDevice = "eth0"

// guestAt returns a new container on a bridge, as a segment in which it is alone.
func (c *machine) guestAt(at device) (*segment, error) {
	if s := c.guests[at]; s != nil {
		return s, nil
	}
	if err := c.noGuests[at]; err != nil {
		return nil, err
	}
	w, err := c.newWorld(guestDevice, nil)
	if err != nil {
		return nil, err
	}
	s := &segment{space: at.space, own: c.survey.own[at], world: w}
	c.asResidents(s, at)
	outer, made := c.port(at), false
	err = c.spaces[at.space].Do(func() error {
		err := link.MakePair(outer, link.Saved{Name: guestDevice, Kind: "veth", MTU: outer.MTU},
			w.file)
		if made = err == nil; !made {
			return err
		}
		return link.SetLink(outer)
	})
	if err == nil {
		err = w.ns.Do(func() error { return link.Up(guestDevice) })
	}
	if err == nil {
		err = c.settle(s)
	}
	port := device{at.space, outer.Index}
	if err == nil {
		var late []device
		c.runs[at], c.runs[port] = true, true
		if late, err = c.await(); err == nil && slices.Contains(late, port) {
			err = errNoCarrier
		}
	}
	if err != nil && made { // the next one gets the same name
		delete(c.runs, port)
		err = errors.Join(err, c.spaces[at.space].Do(func() error { return link.Remove(outer.Name) }))
	}
	if err != nil {
		err = fmt.Errorf("make a container at a bridge: %w", err)
		if errors.Is(err, errNoCarrier) { // the next one would wait for it, too
			c.noGuests[at] = err
		}
		return nil, err
	}
	c.guests[at], c.outer[port] = s, true
	return s, nil
}

// removeGuests removes the new containers, so that commands find only devices of the machine.
func (c *machine) removeGuests() error {
	for at := range c.outer {
		err := c.spaces[at.space].Do(func() error { return link.Remove(guestPort(at.index)) })
		if err != nil {
			return err
		}
		delete(c.runs, at)
	}
	for _, s := range c.guests {
		for _, p := range s.world.near { // the next ones get the same addresses
			delete(c.survey.taken, p.Addr())
		}
	}
	clear(c.outer)
	clear(c.guests)
	clear(c.noGuests)
	return nil
}

// asResidents gives a new container at a bridge what the containers there have: an address in their
// networks, also where the machine has none, and their default route. Docker gives containers of
// internal networks none. Without containers the machine is the router.
func (c *machine) asResidents(s *segment, bridge device) {
	s.routers = map[bool]netip.Addr{}
	any, elsewhere := map[bool]bool{}, map[bool]bool{}
	for i := range c.from.Spaces {
		space := &c.from.Spaces[i]
		for _, l := range space.Links {
			if !c.attached(i, l, bridge) {
				continue
			}
			for _, p := range space.Prefixes(l.Index) {
				six := p.Addr().Is6()
				if any[six] = any[six] || !p.Addr().IsLinkLocalUnicast(); !s.routes(p.Addr()) {
					s.own = append(slices.Clip(s.own), p)
				}
			}
			for _, h := range space.Defaults() {
				six := h.Gateway.Is6()
				if h.Index == l.Index && h.Gateway.IsValid() {
					s.routers[six] = h.Gateway
				}
				elsewhere[six] = true
			}
		}
	}
	for _, p := range c.survey.own[bridge] { // also where containers' routes lead elsewhere
		six := p.Addr().Is6()
		if !s.routers[six].IsValid() && (!any[six] || elsewhere[six]) {
			s.routers[six] = p.Addr()
		}
	}
}

// attached reports whether a device is the other end of a port of the bridge.
func (c *machine) attached(space int, l link.Saved, bridge device) bool {
	at, port := c.from.Other(space, l)
	return port != nil && l.Pair() && at == bridge.space && port.Master == bridge.index
}

// port returns a new port of a bridge, with the settings of another port.
func (c *machine) port(bridge device) link.Saved {
	p := link.Saved{Kind: "veth", Master: bridge.index, Up: true, Lower: true}
	for _, l := range c.from.Spaces[bridge.space].Links {
		p.Index = max(p.Index, l.Index)
		switch {
		case l.Index == bridge.index:
			p.MTU = l.MTU
		case l.Master == bridge.index && p.Slave == nil:
			p.Slave, p.VLANs = l.Slave, l.VLANs
		}
	}
	p.Index += 1 + len(c.guests)
	p.Name = guestPort(p.Index)
	return p
}

func guestPort(index int) string { return fmt.Sprintf("veth%07x", index) }
