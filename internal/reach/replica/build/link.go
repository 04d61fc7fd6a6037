package build

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
)

var errNoParent = errors.New("there is no device below it")

func (c *machine) makeLinks() error {
	for _, s := range c.survey.segments {
		if err := c.makeWorld(s); err != nil {
			return err
		}
	}
	c.eachLink(func(at device, l link.Saved) {
		switch c.survey.roles[at] {
		case loopback:
			c.refused[at] = nil
		case native:
			c.try(at, at.space, func() error { return link.MakeLink(l, link.Here) })
			if l.Kind == "dummy" && c.refused[at] != nil {
				c.makeCard(at, l)
			}
		case card:
			c.makeCard(at, l)
		case pair:
			c.makePair(at, l)
		}
	})
	const depth = 2 // a macvlan may be on a VLAN
	for range depth {
		c.eachLink(func(at device, l link.Saved) {
			if err, tried := c.refused[at]; c.survey.roles[at] == child && (!tried || err != nil) {
				c.makeChild(at, l)
			}
		})
	}
	for _, vlans := range []bool{false, true} { // which are on others' cards
		for _, s := range c.survey.segments {
			c.lack(s.space, "network of "+s.cards[0].Name, s.cards[0].Name, c.raise(s, vlans))
		}
	}
	for i, ns := range c.spaces {
		if err := ns.Do(func() error { c.setLinks(i); return nil }); err != nil {
			return err
		}
	}
	late, err := c.await()
	if err != nil {
		return err
	}
	ports := map[device]bool{} // bridges of which one is late: others have no carrier anywhere
	c.eachLink(func(at device, l link.Saved) {
		if slices.Contains(late, at) && l.Master != 0 {
			ports[device{at.space, l.Master}] = true
		}
	})
	c.eachLink(func(at device, l link.Saved) {
		if slices.Contains(late, at) && (l.Kind != "bridge" || ports[at]) {
			c.lack(at.space, "device "+l.Name, l.Name, errNoCarrier)
		}
		if c.refused[at] != nil {
			return
		}
		lack := func(f func() error) {
			c.lack(at.space, "settings of "+l.Name, l.Name, c.spaces[at.space].Do(f))
		}
		if l.Held {
			lack(func() error { return link.Hold(l) })
		}
		if c.from.Spaces[at.space].Blocks(l) {
			lack(func() error { return link.SetPort(l, false) })
		}
	})
	return nil
}

// hall is the name of the bridge in a world that several cards share.
const hall = "hall"

func (c *machine) makeWorld(s *segment) (err error) {
	if len(s.cards) == 1 {
		s.world, err = c.newWorld(end(device{s.space, s.cards[0].Index}), open)
		return err
	}
	if s.world, err = c.newWorld(hall, open); err != nil {
		return err
	}
	return s.world.ns.Do(func() error { return link.AddBridge(hall) })
}

func (c *machine) eachLink(f func(device, link.Saved)) {
	for i := range c.from.Spaces {
		for _, l := range c.from.Spaces[i].Links {
			f(device{i, l.Index}, l)
		}
	}
}

// try calls f, which makes the device at, in a namespace, and records its error.
func (c *machine) try(at device, space int, f func() error) {
	c.refused[at] = c.spaces[space].Do(f)
}

// makeCard makes a veth whose other end is in the card's world, or in the void if it has no
// network.
func (c *machine) makeCard(at device, l link.Saved) {
	fd := c.void.file
	if s := c.survey.segmentOf(at); s != nil {
		fd = s.world.file
	}
	// The ends' indexes differ, because the kernel may take a second to notice the carrier of a
	// pair with equal indexes.
	const apart = 1 << 20
	c.ends++
	other := link.Saved{Name: end(at), Index: apart + c.ends, Kind: l.Kind, MTU: l.MTU}
	if l.NoARP { // the device sends frames to its own MAC address
		const local, size = 2, 6
		if len(l.MAC) != size { // a tunnel of IP has none
			l.MAC = binary.BigEndian.AppendUint32([]byte{local, 0}, uint32(c.ends))
		}
		other.MAC = l.MAC
	}
	c.try(at, at.space, func() error { return link.MakePair(l, other, fd) })
	if fd == c.void.file && c.refused[at] == nil && (l.Lower || !l.Up) {
		c.refused[at] = c.void.ns.Do(func() error { return link.Up(other.Name) })
	}
}

// makePair makes both ends of a pair when it is called for the first end.
func (c *machine) makePair(at device, l link.Saved) {
	if _, tried := c.refused[at]; tried {
		return
	}
	space, other := c.from.Other(at.space, l)
	c.try(at, at.space, func() error { return link.MakePair(l, *other, c.files[space]) })
	c.refused[device{space, other.Index}] = c.refused[at]
}

func (c *machine) makeChild(at device, l link.Saved) {
	space, below := c.from.Other(at.space, l)
	if err, tried := c.refused[device{space, below.Index}]; !tried || err != nil {
		c.refused[at] = errNoParent
		return
	}
	make := func() error { return link.MakeLink(l, c.files[at.space]) }
	c.try(at, space, make)
	if _, ok := c.survey.trunks[at]; ok && c.refused[at] != nil {
		// Rules and routes name it by name and index, not by kind.
		delete(c.survey.trunks, at)
		if below.Kind == "bridge" || c.from.Spaces[space].Nft.Hooks(below.Name) {
			c.lack(at.space, "device "+l.Name+" is a card in place of a VLAN", l.Name, c.refused[at])
		}
		c.makeCard(at, l)
		return
	}
	if err := c.refused[at]; err != nil && strings.HasPrefix(l.Kind, "ipvlan") {
		// On the wire, a macvlan differs from an ipvlan only in its MAC address.
		l.Kind, l.MAC, l.Data = "macvlan", nil, link.MacvlanBridge
		if c.try(at, space, make); c.refused[at] == nil {
			c.lack(at.space, "device "+l.Name+" is a macvlan in place of an ipvlan", l.Name, err)
		}
	}
}

// raise makes and sets up the other ends of a segment's VLANs, or of its cards, except those of
// devices without a carrier.
func (c *machine) raise(s *segment, vlans bool) error {
	var errs []error
	for _, l := range s.cards {
		at := device{s.space, l.Index}
		trunk, is := c.survey.trunks[at]
		if is != vlans {
			continue
		}
		name := end(at)
		if is {
			other := c.survey.segmentOf(trunk).world.ns
			errs = append(errs, other.Do(func() error {
				return link.AddVLAN(l, name, end(trunk), s.world.file)
			}))
		}
		errs = append(errs, s.world.ns.Do(func() (err error) {
			if len(s.cards) > 1 {
				err = link.SetMaster(name, hall)
			}
			if l.NoARP {
				err = errors.Join(err, link.NoARP(name))
			}
			if l.Lower || !l.Up {
				err = errors.Join(err, link.Up(name))
			}
			return err
		}))
	}
	return errors.Join(errs...)
}

// setLinks sets the devices' settings. Ports come before bridges, because a bridge's MTU follows
// its ports, and VLANs on bridges after them, because they can be up only on a device that is.
func (c *machine) setLinks(space int) {
	const others, bridges, onBridges = 0, 1, 2
	for turn := others; turn <= onBridges; turn++ {
		for _, l := range c.from.Spaces[space].Links {
			at, own := device{space, l.Index}, others
			_, below := c.from.Other(space, l)
			switch {
			case l.Kind == "bridge":
				own = bridges
			case l.Kind == "vlan" && below != nil && below.Kind == "bridge":
				own = onBridges
			}
			if own != turn {
				continue
			}
			if err := c.refused[at]; err != nil {
				c.lack(space, "device "+l.Name, l.Name, err)
				continue
			}
			c.runs[at] = l.Up && l.Lower && (own != bridges || c.hasPorts(space, l))
			if c.survey.roles[device{space, l.Master}] != native {
				l.Master = 0
			}
			if c.survey.roles[at] == card {
				l.Kind = "veth"
			}
			c.lack(space, "settings of "+l.Name, l.Name, link.SetLink(l))
		}
	}
}

// hasPorts reports whether a bridge has ports. The kernel gives a new bridge a carrier, and takes it
// with the last port, so without ports the copy's may have none.
func (c *machine) hasPorts(space int, bridge link.Saved) bool {
	return slices.ContainsFunc(c.from.Spaces[space].Links, func(l link.Saved) bool {
		return l.Master == bridge.Index
	})
}

// How long the copy waits for what the kernel does with a delay of up to a second, and how often it
// checks: ever more rarely.
const (
	patience = 2 * time.Second
	shortest = 2 * time.Millisecond
	longest  = 16 * time.Millisecond
)

func longer(pause time.Duration) time.Duration { return min(pause+pause/2, longest) }

// errNoCarrier means that the copy of a device that carries packets does not, or not yet.
var errNoCarrier = errors.New("its copy has no carrier")

// await waits until the devices that carry packets on the machine also do so in the copy: the
// kernel notices a carrier with a delay, that of both ends of a pair at once. It returns those that
// still do not after some time. Lists of containers' devices are short, so those of the machine, the
// first namespace, come last.
func (c *machine) await() (late []device, err error) {
	until := time.Now().Add(patience)
	for i, ns := range slices.Backward(c.spaces) {
		for pause := shortest; ; pause = longer(pause) {
			waits, err := c.waiting(ns, i)
			if err != nil {
				return late, err
			}
			if len(waits) == 0 {
				break
			}
			if time.Now().After(until) {
				for _, at := range waits {
					c.runs[at] = false
				}
				late = append(late, waits...)
				break
			}
			time.Sleep(pause)
		}
	}
	return late, nil
}

// awaitRoutes waits until the kernel delivers packets to all IPv6 addresses of the calling thread's
// namespace: it adds the route to an address a moment after the address.
func awaitRoutes() error {
	const patience = 10 * time.Second // nothing else is done if it does not
	until := time.Now().Add(patience)
	for pause := shortest; ; pause = longer(pause) {
		late, err := link.Unrouted()
		if err != nil || len(late) == 0 {
			return err
		}
		if time.Now().After(until) {
			return fmt.Errorf("the kernel does not yet deliver packets to %v", late)
		}
		time.Sleep(pause)
	}
}

func (c *machine) waiting(ns *netns.NS, space int) (out []device, err error) {
	var carrying map[int]bool
	err = ns.Do(func() (err error) { carrying, err = link.Carrying(); return err })
	for at, runs := range c.runs {
		if runs && at.space == space && !carrying[at.index] {
			out = append(out, at)
		}
	}
	return out, err
}
