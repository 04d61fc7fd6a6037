package lab

import (
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/path"
)

// routed is a network with gateway_mode_ipv4=routed and a published container
// port: no NAT, and routes on the peers (Docker Engine 28.5.2).
func (s *site) routed() error {
	p := s.path
	d := userNetwork(dockerNet{network: tollNet, routed: true, publish: publishTarget()})
	if p.Spec.From == mode.FromContainer {
		d.networks = append(d.networks, dockerNet{network: secondNet, routed: true})
	}
	if err := s.install(s.a, d); err != nil {
		return err
	}
	server, err := s.bridged(s.a, tollNet, serverHost, serverBox, serverPortName)
	if err != nil {
		return err
	}
	s.serve(server)
	last := []path.Hop{s.bridgeHop(s.a, tollNet.bridge, true), s.hop(server, true)}
	// Docker writes no rule that would rewrite this network's packets; the one
	// that is left is the default network's.
	p.Guards = []path.Hop{s.noDefaultNAT(),
		unused(s.loHop(s.a.ns, s.a.name))}
	switch p.Spec.From {
	case mode.FromHost:
		p.Client = on(s.a)
		p.Hops = last
	case mode.FromContainer:
		client, err := s.bridged(s.a, secondNet, clientHost, clientBox, clientPortName)
		if err != nil {
			return err
		}
		p.Client = in(client)
		p.Hops = append([]path.Hop{s.hop(client, false), s.bridgeHop(s.a, secondNet.bridge, false)}, last...)
	case mode.FromRemote:
		if err := route(s.b, tollNet, s.a); err != nil {
			return err
		}
		p.Client = on(s.b)
		p.Hops = append([]path.Hop{s.wireHop()}, last...)
	case mode.FromRemoteContainer:
		client, err := s.remoteClient(dockerNet{network: remoteNet, routed: true})
		if err != nil {
			return err
		}
		if err := route(s.b, tollNet, s.a); err != nil {
			return err
		}
		if err := route(s.a, remoteNet, s.b); err != nil {
			return err
		}
		p.Hops = append([]path.Hop{s.hop(client, false), s.bridgeHop(s.b, remoteNet.bridge, false), s.wireHop()}, last...)
	}
	return nil
}

// route tells a machine that a network is behind another machine.
func route(m *machine, to network, via *machine) error {
	return m.ns.Do(func() error { return link.AddRoute(to.subnet, via.addr.Addr()) })
}
