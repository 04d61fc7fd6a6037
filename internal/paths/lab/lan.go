package lab

import (
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
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
		kind: mode.HopBridge,
		between: func(m *hostMachine, toServer, toClient []string) path.Hop {
			if len(toClient) == 0 {
				return s.bridgeHop(m, outer.bridge, true)
			}
			return s.switchedHop(m.ns, m.name, outer.bridge, toClient, toServer)
		},
	})
}

type lan struct {
	foreign []string
	prepare func(*hostMachine) error
	attach  func(m *hostMachine, at seat) (*container, error)
	// between returns the hop of the kind between the clients' ports and the servers' ports. No
	// client port means the machine itself. A nil between means that there is no such hop.
	kind    mode.HopKind
	between func(m *hostMachine, toServer, toClient []string) path.Hop
}

func (s *site) onLAN(l lan) error {
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
	err := s.placeClients(func() error {
		if s.path.Spec.From == mode.FromContainer {
			return s.addClients(s.a, attachTo(s.a))
		}
		if err := ready(s.b); err != nil {
			return err
		}
		return s.addClients(s.b, attachTo(s.b))
	})
	if err != nil {
		return err
	}
	if l.between != nil {
		s.GiveAt(l.kind, func(at recipe.At) []path.Hop { return []path.Hop{s.between(l, at)} })
	}
	s.path.Guards = []path.Hop{s.noDefaultNAT(), local.Unused(s.loHop(s.a.ns, s.a.name))}
	return nil
}

func (s *site) between(l lan, at recipe.At) path.Hop {
	m, toServer, toClient := s.a, ports(s.Servers), ports(s.Clients)
	card := []string{wireName}
	switch {
	case at.Away():
		m, toServer = s.b, card
	case at.To.Outside():
		toServer = card
	case at.After(mode.HopWire):
		toClient = card
	}
	return l.between(m, toServer, toClient)
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
