package lab

import (
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/path"
)

// pipework is the script's veth form (jpetazzo/pipework at 9ba97f1,
// 2024-11-04): a bridge of which the machine's network card is a port, a veth
// pair on it, and an address of the outer network in the container. The
// bridge, the card in it and the machine's address on it are made by the
// administrator beforehand, and so are the rules that let it past Docker's.
func (s *site) pipework() error {
	return s.lan(func(m *machine) error { return s.outerBridge(m) },
		func(m *machine, host byte, name, port string) (*container, error) {
			c, err := s.bridged(m, outer, host, name, port)
			if err != nil {
				return nil, err
			}
			return c, s.cardMTU(c)
		},
		func(m *machine, toServer, toClient string) path.Hop {
			if toClient == "" {
				return s.bridgeHop(m, outer.bridge, true)
			}
			return s.switchedHop(m.ns, m.name, outer.bridge, toClient, toServer)
		})
}

// lan builds a mode in which containers are hosts of the outer network behind
// a switch on each machine: prepare makes the machine's switch, attach a
// container on it, and between is the switch as a hop from the port of the
// client's side ("" is the machine itself) to that of the server's.
func (s *site) lan(prepare func(*machine) error,
	attach func(m *machine, host byte, name, port string) (*container, error),
	between func(m *machine, toServer, toClient string) path.Hop,
) error {
	p := s.path
	if err := s.install(s.a, daemon{foreign: []string{outer.bridge}}); err != nil {
		return err
	}
	if err := prepare(s.a); err != nil {
		return err
	}
	server, err := attach(s.a, outerServer, serverBox, serverPortName)
	if err != nil {
		return err
	}
	s.serve(server)
	last := s.hop(server, true)
	p.Guards = []path.Hop{s.noDefaultNAT(), unused(s.loHop(s.a.ns, s.a.name))}
	switch p.Spec.From {
	case mode.FromHost:
		p.Client = on(s.a)
		p.Hops = []path.Hop{between(s.a, server.port, ""), last}
		p.Guards = append(p.Guards, unused(s.wireHop()))
	case mode.FromContainer:
		client, err := attach(s.a, outerClient, clientBox, clientPortName)
		if err != nil {
			return err
		}
		p.Client = in(client)
		p.Hops = []path.Hop{s.hop(client, false), between(s.a, server.port, client.port), last}
		p.Guards = append(p.Guards, unused(s.wireHop()))
	case mode.FromRemote:
		p.Client = on(s.b)
		p.Hops = []path.Hop{s.wireHop(), between(s.a, server.port, wireName), last}
	case mode.FromRemoteContainer:
		if err := s.install(s.b, daemon{foreign: []string{outer.bridge}}); err != nil {
			return err
		}
		if err := prepare(s.b); err != nil {
			return err
		}
		client, err := attach(s.b, outerClient, remoteBox, clientPortName)
		if err != nil {
			return err
		}
		p.Client = in(client)
		p.Hops = []path.Hop{s.hop(client, false), between(s.b, wireName, client.port), s.wireHop(),
			between(s.a, server.port, wireName), last}
	}
	return nil
}

// cardMTU gives the container the MTU of the outer bridge, which is the card's:
// a switch drops what it cannot pass on.
func (s *site) cardMTU(c *container) error {
	mtu := s.lab.Wire.MTU
	if mtu == 0 {
		return nil
	}
	if err := c.portNS.Do(func() error { return link.SetMTU(c.port, mtu) }); err != nil {
		return err
	}
	return c.ns.Do(func() error { return link.SetMTU(inside, mtu) })
}

// outerBridge makes the bridge that the machine's card is a port of, and moves
// the machine's address to it.
func (s *site) outerBridge(m *machine) error {
	return m.ns.Do(func() error {
		if err := link.AddBridge(outer.bridge); err != nil {
			return err
		}
		if err := link.SetMaster(wireName, outer.bridge); err != nil {
			return err
		}
		if err := link.DelAddr(wireName, m.addr); err != nil {
			return err
		}
		return link.AddAddr(outer.bridge, m.addr)
	})
}

// noDefaultNAT is the only rule that could rewrite packets on a machine whose
// Docker has no network but the default one: the path must not hit it.
func (s *site) noDefaultNAT() path.Hop {
	return ruleHop(s.a, mode.HopSNAT, "nat", "POSTROUTING", tagMasq+"-default", path.Untouched)
}
