package lab

import (
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

var (
	podsOnA = network{bridge: "cni0", subnet: netip.MustParsePrefix("10.244.1.0/24"),
		first: firstDocker}
	podsOnB = network{bridge: "cni0", subnet: netip.MustParsePrefix("10.244.2.0/24"),
		first: firstDocker}
)

// ofPods reports whether the network belongs to a plug-in, whose containers have no Docker DNS
// server.
func (n network) ofPods() bool { return n == podsOnA || n == podsOnB }

// pod builds only what every packet between pods crosses, without Docker and kube-proxy.
//
// A node has what the plug-in bridge makes with isDefaultGateway and hairpinMode
// (containernetworking/plugins 1.1.1), and routes to the other node's pods, as with flannel's
// host-gw or Calico without encapsulation.
func (s *site) pod() error {
	p := s.path
	p.Facts["network plug-in"] = "none: a bridge and veth pairs like those of the plug-in bridge"
	p.Facts["data path"] = "veth pair, bridge " + podsOnA.bridge
	s.home = podsOnA
	if err := s.node(s.a, podsOnA); err != nil {
		return err
	}
	if err := s.addServers(s.podOn(s.a, podsOnA)); err != nil {
		return err
	}
	p.Guards = []path.Hop{local.Unused(s.loHop(s.a.ns, s.a.name))}
	if p.Spec.From == mode.FromRemote || p.Spec.To.Outside() {
		p.Facts["data path"] += ", a route between the machines"
		if err := route(s.b, podsOnA, s.a); err != nil {
			return err
		}
	}
	return s.placeClients(s.clientPods)
}

func (s *site) clientPods() error {
	if s.path.Spec.From == mode.FromRemoteContainer {
		s.path.Facts["data path"] += ", routes between the machines"
		s.away = podsOnB
		if err := s.node(s.b, podsOnB); err != nil {
			return err
		}
		if err := s.addClients(s.b, s.podOn(s.b, podsOnB)); err != nil {
			return err
		}
		return s.routeBoth(podsOnA, podsOnB)
	}
	if !s.path.Spec.To.Outside() { // switched, not routed
		s.path.Guards = append(s.path.Guards,
			local.Unused(s.bridgeHop(s.a, podsOnA.bridge, true)))
	}
	return s.addClients(s.a, s.podOn(s.a, podsOnA))
}

func (s *site) node(m *hostMachine, n network) error {
	return m.ns.Do(func() error {
		if err := sysctl.Set(ipForward, "1"); err != nil {
			return err
		}
		if err := link.AddBridge(n.bridge); err != nil {
			return err
		}
		return link.AddAddr(n.bridge, n.gateway())
	})
}

func (s *site) podOn(m *hostMachine, n network) func(seat) (*container, error) {
	return func(at seat) (*container, error) {
		c, err := s.bridged(m, n, at)
		if err == nil {
			err = m.ns.Do(func() error { return link.SetHairpin(c.port) })
		}
		return c, err
	}
}
