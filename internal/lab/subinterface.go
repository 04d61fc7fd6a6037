package lab

import (
	"fmt"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/path"
)

// macvlan is Docker's macvlan driver, and the macvlan form of pipework:
// `ip link add link eth0 … type macvlan mode MODE`, moved to the container
// (Docker Engine 28.5.2, libnetwork/drivers/macvlan; jpetazzo/pipework at
// 9ba97f1). Neither sets anything else, on the card or in the rules.
func (s *site) macvlan() error {
	kind := strings.TrimPrefix(string(s.path.Spec.Mode), "macvlan-")
	if kind == "vepa" && s.path.Spec.From == mode.FromContainer {
		if err := s.reflect(); err != nil {
			return err
		}
	}
	return s.subInterfaces(mode.HopMacvlan, func(si link.SubInterface) error { return link.AddMacvlan(si, kind) }, false)
}

// ipvlan is Docker's ipvlan driver (Docker Engine 28.5.2,
// libnetwork/drivers/ipvlan). In its routed modes the container's network is
// its own and everything leaves by the device; peers have a route.
func (s *site) ipvlan() error {
	kind := strings.TrimPrefix(string(s.path.Spec.Mode), "ipvlan-")
	return s.subInterfaces(mode.HopIPvlan, func(si link.SubInterface) error { return link.AddIPvlan(si, kind) }, kind != "l2")
}

// subInterfaces builds the path from sub-interfaces of the machines' cards,
// which add makes. If routed, the containers' networks are behind the
// machines; else their addresses are of the outer network.
func (s *site) subInterfaces(kind mode.HopKind, add func(link.SubInterface) error, routed bool) error {
	p := s.path
	attach := func(m *machine, n network, host byte, name string) (*container, error) {
		c, err := s.box(m, name)
		if err != nil {
			return nil, err
		}
		c.kind = kind
		tid, err := c.ns.TID()
		if err != nil {
			return nil, err
		}
		// It is born with a name of its own: eth0 is the card's.
		born := fmt.Sprintf("sub%d", host)
		if err := m.ns.Do(func() error { return add(link.SubInterface{Name: born, Parent: wireName, TID: tid}) }); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err := c.ns.Do(func() error { return link.Rename(born, inside) }); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if !routed {
			return c, c.address(outer.nth(host), none)
		}
		if err := c.address(n.nth(host), none); err != nil {
			return nil, err
		}
		return c, c.ns.Do(func() error { return link.AddDeviceRoute(anyPrefix, inside) })
	}
	if err := s.install(s.a, daemon{foreign: []string{wireName}}); err != nil {
		return err
	}
	server, err := attach(s.a, tollNet, outerServer, serverBox)
	if err != nil {
		return err
	}
	s.serve(server)
	last := s.hop(server, true)
	p.Guards = []path.Hop{s.noDefaultNAT(), unused(s.loHop(s.a.ns, s.a.name))}
	switch p.Spec.From {
	case mode.FromContainer:
		client, err := attach(s.a, tollNet, outerClient, clientBox)
		if err != nil {
			return err
		}
		p.Client = in(client)
		p.Hops = []path.Hop{s.hop(client, false), last}
		if p.Spec.Mode == mode.MacvlanVEPA {
			p.Hops = []path.Hop{s.hop(client, false), s.reflectedHop(), last}
		} else {
			p.Guards = append(p.Guards, unused(s.wireHop()))
		}
	case mode.FromRemote:
		p.Client = on(s.b)
		p.Hops = []path.Hop{s.wireHop(), last}
	case mode.FromRemoteContainer:
		if err := s.install(s.b, daemon{foreign: []string{wireName}}); err != nil {
			return err
		}
		client, err := attach(s.b, remoteNet, outerClient, remoteBox)
		if err != nil {
			return err
		}
		p.Client = in(client)
		p.Hops = []path.Hop{s.hop(client, false), s.wireHop(), last}
	}
	if !routed {
		return nil
	}
	if err := route(s.b, tollNet, s.a); err != nil {
		return err
	}
	return route(s.a, remoteNet, s.b)
}

// reflect makes machine B the switch that vepa asks for: a bridge that sends
// frames back out of the port that they came from (IEEE 802.1Qbg's reflective
// relay).
func (s *site) reflect() error {
	s.path.Facts["switch"] = "machine B is a bridge that reflects frames"
	if err := s.outerBridge(s.b); err != nil {
		return err
	}
	return s.b.ns.Do(func() error { return link.SetHairpin(wireName) })
}

// reflectedHop is the wire as a path to the switch and back: what A sent has
// both directions of the load, and so has what came back.
func (s *site) reflectedHop() path.Hop {
	sent := oneWay(counters(s.a.ns, wireName, false))
	return path.Hop{Kind: mode.HopWire, Name: wireName, Where: s.a.name, Expect: path.CarriesBoth, Read: sent}
}
