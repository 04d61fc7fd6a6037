package lab

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// pipework follows the script's veth form (jpetazzo/pipework at 9ba97f1). The administrator makes
// the bridge and the rules that accept its traffic before Docker's.
func (s *site) pipework() error {
	return s.onLAN(lan{
		foreign: []string{outer.bridge},
		prepare: s.outerBridge,
		attach: func(m *hostMachine, at seat) (*container, error) {
			c, err := s.bridged(m, outer, at)
			if err != nil {
				return nil, err
			}
			return c, s.cardMTU(c)
		},
		between: func(m *hostMachine, toServer, toClient []string) []path.Hop {
			if toClient == nil {
				return []path.Hop{s.bridgeHop(m, outer.bridge, true)}
			}
			return []path.Hop{s.switchedHop(m.ns, m.name, outer.bridge, toClient, toServer)}
		},
	})
}

type lan struct {
	foreign []string
	prepare func(*hostMachine) error
	attach  func(m *hostMachine, at seat) (*container, error)
	// between returns the hops from the clients' ports to the servers' ports. No client port means
	// the machine itself.
	between func(m *hostMachine, toServer, toClient []string) []path.Hop
}

func (s *site) onLAN(l lan) error {
	p := s.path
	ready := func(m *hostMachine) error {
		if err := s.install(m, daemon{foreign: l.foreign}); err != nil {
			return err
		}
		return l.prepare(m)
	}
	if err := ready(s.a); err != nil {
		return err
	}
	attachTo := func(m *hostMachine) func(seat) (*container, error) {
		return func(at seat) (*container, error) { return l.attach(m, at) }
	}
	if err := s.addServers(attachTo(s.a)); err != nil {
		return err
	}
	toServer, card := ports(s.Servers), []string{wireName}
	if p.Spec.To.Outside() {
		toServer = card
	}
	switch p.Spec.From {
	case mode.FromHost:
		s.PlaceClients(on(s.a))
		p.Hops = l.between(s.a, toServer, nil)
	case mode.FromContainer:
		if err := s.addClients(s.a, attachTo(s.a)); err != nil {
			return err
		}
		p.Hops = append(s.ClientHops(), l.between(s.a, toServer, ports(s.Clients))...)
	case mode.FromRemote:
		s.PlaceClients(on(s.b))
		p.Hops = append([]path.Hop{s.wireHop()}, l.between(s.a, toServer, card)...)
	case mode.FromRemoteContainer:
		if err := ready(s.b); err != nil {
			return err
		}
		if err := s.addClients(s.b, attachTo(s.b)); err != nil {
			return err
		}
		p.Hops = slices.Concat(s.ClientHops(), l.between(s.b, card, ports(s.Clients)),
			[]path.Hop{s.wireHop()}, l.between(s.a, toServer, card))
	}
	if p.Spec.To.Outside() {
		p.Hops = append(p.Hops, s.wireHop())
	}
	p.Hops = append(p.Hops, s.ServerHops()...)
	p.Guards = []path.Hop{s.noDefaultNAT(), local.Unused(s.loHop(s.a.ns, s.a.name))}
	return nil
}

// cardMTU sets the container's MTU to the card's, because a switch drops larger packets.
func (s *site) cardMTU(c *container) error {
	mtu := s.lab.Wire.MTU
	if mtu == 0 {
		return nil
	}
	return c.setMTU(mtu)
}

func (s *site) outerBridge(m *hostMachine) error {
	return m.ns.Do(func() error {
		if err := link.AddBridge(outer.bridge); err != nil {
			return err
		}
		if err := link.SetMaster(wireName, outer.bridge); err != nil {
			return err
		}
		return moveAddress(m)
	})
}

func moveAddress(m *hostMachine) error {
	if err := link.DelAddr(wireName, m.addr); err != nil {
		return err
	}
	if err := addressed(outer.bridge, m.addr); err != nil || !m.addr6.IsValid() {
		return err
	}
	if err := link.DelAddr(wireName, m.addr6); err != nil {
		return err
	}
	return link.AddAddr(outer.bridge, m.addr6)
}
