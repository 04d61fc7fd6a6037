package lab

import (
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// routed uses a network with gateway_mode_ipv4=routed: peers have a route to it, and there is no
// NAT.
func (s *site) routed() error {
	p := s.path
	n := dockerNet{network: tollNet, routed: true}
	for _, at := range s.serverSeats() {
		n.published = append(n.published, s.ports(tollNet.of(at).Addr(), 0)...)
	}
	d := userNetwork(n)
	if p.Spec.From == mode.FromContainer && !p.Spec.To.Outside() {
		d.networks = append(d.networks, dockerNet{network: secondNet, routed: true})
	}
	if err := s.install(s.a, d); err != nil {
		return err
	}
	if err := s.addServers(func(at seat) (*container, error) {
		return s.bridged(s.a, tollNet, at)
	}); err != nil {
		return err
	}
	// Docker writes no NAT rules for this network. The default network's rule for IPv4 remains.
	p.Guards = []path.Hop{s.noDefaultNAT(),
		local.Unused(s.loHop(s.a.ns, s.a.name))}
	if p.Spec.To.Outside() {
		if err := s.dockerClients(d); err != nil {
			return err
		}
		return route(s.b, tollNet, s.a)
	}
	switch p.Spec.From {
	case mode.FromHost:
		s.PlaceClients(on(s.a))
	case mode.FromContainer:
		s.away = secondNet
		return s.addClients(s.a, func(at seat) (*container, error) {
			return s.bridged(s.a, secondNet, at)
		})
	case mode.FromRemote:
		if err := route(s.b, tollNet, s.a); err != nil {
			return err
		}
		s.PlaceClients(on(s.b))
	case mode.FromRemoteContainer:
		if err := s.remoteClients(dockerNet{network: remoteNet, routed: true}); err != nil {
			return err
		}
		return s.routeBoth(tollNet, remoteNet)
	}
	return nil
}

// routeBoth adds routes from each machine to the other one's network.
func (s *site) routeBoth(onA, onB network) error {
	if err := route(s.b, onA, s.a); err != nil {
		return err
	}
	return route(s.a, onB, s.b)
}

func route(m *hostMachine, to network, via *hostMachine) error {
	return m.ns.Do(func() error {
		if err := link.AddRoute(to.subnet, via.addr.Addr()); err != nil || !via.addr6.IsValid() {
			return err
		}
		return link.AddRoute(to.subnet6, via.addr6.Addr())
	})
}
