package build

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/link"
)

const guestDevice = "eth0"

// guestAt returns a new container on a bridge, as a segment in which it is alone.
func (c *machine) guestAt(at device) (*segment, error) {
	if s := c.guests[at]; s != nil {
		return s, nil
	}
	w, err := c.newWorld(guestDevice, nil)
	if err != nil {
		return nil, err
	}
	s := &segment{space: at.space, own: c.survey.own[at], world: w}
	outer := c.port(at)
	err = c.spaces[at.space].Do(func() error {
		err := link.MakePair(outer, link.Saved{Name: guestDevice, Kind: "veth", MTU: outer.MTU},
			w.file)
		if err != nil {
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
	if err != nil {
		return nil, fmt.Errorf("make a container at a bridge: %w", err)
	}
	c.guests[at] = s
	c.runs[at], c.runs[device{at.space, outer.Index}] = true, true
	return s, c.await()
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
	p.Name = fmt.Sprintf("veth%07x", p.Index)
	return p
}
