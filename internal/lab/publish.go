package lab

import (
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/path"
)

// publishNAT is a published port that the kernel rewrites: a daemon with
// "userland-proxy": false (Docker Engine 28.5.2).
func (s *site) publishNAT() error {
	server, err := s.dockerServer(daemon{noProxy: true}, publishTarget())
	if err != nil {
		return err
	}
	s.publish(server)
	p := s.path
	dnat := ruleHop(s.a, mode.HopDNAT, "nat", "DOCKER", tagPublish, path.Matches)
	masq := ruleHop(s.a, mode.HopSNAT, "nat", "POSTROUTING", tagLocalMasq, path.Matches)
	bridge := s.bridgeHop(s.a, tollNet.bridge, true)
	p.Guards = []path.Hop{unused(s.loHop(s.a.ns, s.a.name))}
	switch p.Spec.From {
	case mode.FromHost:
		p.Client = on(s.a)
		p.Hops = []path.Hop{dnat, masq, bridge, s.hop(server, true)}
	case mode.FromContainer:
		client, err := s.dockerClient()
		if err != nil {
			return err
		}
		// With bridge-nf-call-iptables the rewritten frame never leaves the
		// bridge: it is switched to the server's port.
		p.Hops = []path.Hop{s.hop(client, false), dnat, s.switched(client, server), s.hop(server, true)}
	case mode.FromRemote:
		p.Client = on(s.b)
		p.Hops = []path.Hop{s.wireHop(), dnat, bridge, s.hop(server, true)}
	case mode.FromRemoteContainer:
		client, err := s.remoteClient(dockerNet{network: remoteNet, containers: []netip.Prefix{remoteNet.nth(clientHost)}})
		if err != nil {
			return err
		}
		p.Hops = []path.Hop{s.hop(client, false), s.bridgeHop(s.b, remoteNet.bridge, false),
			ruleHop(s.b, mode.HopSNAT, "nat", "POSTROUTING", tagMasq, path.Matches),
			s.wireHop(), dnat, bridge, s.hop(server, true)}
	}
	return nil
}

// publishProxy is a published port that docker-proxy relays: for clients on
// the machine that dial a loopback address, for containers on the same
// bridge, and for everybody if the daemon writes no rules (Docker Engine 28.5.2).
func (s *site) publishProxy() error {
	p := s.path
	d := daemon{noIPTables: p.Spec.From == mode.FromRemote}
	server, err := s.dockerServer(d, publishTarget())
	if err != nil {
		return err
	}
	s.publish(server)
	listen := netip.AddrPortFrom(anyAddr, publishedPort)
	if p.Spec.To == mode.ToLoopback6 {
		listen = netip.AddrPortFrom(netip.IPv6Unspecified(), publishedPort)
	}
	proxy, err := s.startProxy(listen, publishTarget())
	if err != nil {
		return err
	}
	rest := []path.Hop{proxy, s.bridgeHop(s.a, tollNet.bridge, true), s.hop(server, true)}
	if !d.noIPTables {
		p.Guards = []path.Hop{s.noNAT(), ruleHop(s.a, mode.HopDNAT, "nat", "DOCKER", tagPublish, path.Untouched)}
	}
	switch p.Spec.From {
	case mode.FromHost:
		p.Client = on(s.a)
		p.Hops = append([]path.Hop{s.loHop(s.a.ns, s.a.name)}, rest...)
	case mode.FromContainer:
		client, err := s.dockerClient()
		if err != nil {
			return err
		}
		p.Hops = []path.Hop{s.hop(client, false), s.bridgeLeg("in"), proxy, s.bridgeLeg("out"), s.hop(server, true)}
	case mode.FromRemote:
		p.Client = on(s.b)
		p.Hops = append([]path.Hop{s.wireHop()}, rest...)
		p.Guards = append(p.Guards, unused(s.loHop(s.a.ns, s.a.name)))
	}
	return nil
}

// publishTarget is what the published port leads to.
func publishTarget() netip.AddrPort {
	return netip.AddrPortFrom(tollNet.nth(serverHost).Addr(), serverPort)
}

// publish places the server in its container and the client's target on the
// published port.
func (s *site) publish(server *container) {
	s.serve(server)
	to := s.a.addr.Addr()
	switch s.path.Spec.To {
	case mode.ToLoopback:
		to = loopback
	case mode.ToLoopback6:
		to = loopback6
	}
	s.path.Dial = netip.AddrPortFrom(to, publishedPort)
}

// bridgeLeg is a bridge that the load crosses twice, up to the proxy and down
// to the server: what the machine took in from the bridge, and what it sent
// out to it. Each counts both directions of the load, once a leg.
func (s *site) bridgeLeg(way string) path.Hop {
	h := path.Hop{Kind: mode.HopBridge, Name: tollNet.bridge + " " + way, Where: s.a.name, Expect: path.CarriesBoth,
		Read: oneWay(counters(s.a.ns, tollNet.bridge, way == "in"))}
	return s.madeOf(h, device{ns: s.a.ns, name: tollNet.bridge})
}
