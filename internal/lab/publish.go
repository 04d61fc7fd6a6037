package lab

import (
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/path"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// publishNAT is a published port that the kernel rewrites: a daemon with
// "userland-proxy": false.
func (l *Lab) publishNAT(s *site, p *path.Path) error {
	target := netip.AddrPortFrom(serverAddr.Addr(), serverPort)
	server, err := s.dockerContainer(p, daemon{noProxy: true, publish: target})
	if err != nil {
		return err
	}
	s.serve(p, server)
	dnat := s.ruleHop(mode.HopDNAT, "DOCKER", tagPublish, path.Matches)
	masq := s.ruleHop(mode.HopSNAT, "POSTROUTING", tagLocalMasq, path.Matches)
	switch p.Spec.From {
	case mode.FromHost:
		p.Client = s.in(s.a)
		p.Hops = []path.Hop{dnat, masq, s.bridgeHop(true), server.vethHop(true)}
		p.Guards = []path.Hop{unused(loHop(s.a.ns, s.a.name)), unused(s.wireHop())}
	case mode.FromContainer:
		client, err := s.clientContainer()
		if err != nil {
			return err
		}
		p.Client = s.inside(client.ns, client.name)
		// With bridge-nf-call-iptables the rewritten frame never leaves the
		// bridge: it is switched to the server's port.
		p.Hops = []path.Hop{client.vethHop(false), dnat, s.switchedHop(client, server), server.vethHop(true)}
		p.Guards = []path.Hop{unused(loHop(s.a.ns, s.a.name)), unused(s.wireHop())}
	case mode.FromRemote:
		p.Client = s.in(s.b)
		p.Hops = []path.Hop{s.wireHop(), dnat, s.bridgeHop(true), server.vethHop(true)}
		p.Guards = []path.Hop{unused(loHop(s.a.ns, s.a.name))}
	}
	return nil
}

// publishProxy is a published port that docker-proxy relays: for clients on
// the machine that dial a loopback address, for containers on the same
// bridge, and for everybody if the daemon writes no rules.
func (l *Lab) publishProxy(s *site, p *path.Path) error {
	target := netip.AddrPortFrom(serverAddr.Addr(), serverPort)
	d := daemon{publish: target, noIPTables: p.Spec.From == mode.FromRemote}
	server, err := s.dockerContainer(p, d)
	if err != nil {
		return err
	}
	s.serve(p, server)
	listen := netip.AddrPortFrom(anyAddr, publishedPort)
	if p.Spec.To == mode.ToLoopback6 {
		listen = netip.AddrPortFrom(netip.IPv6Unspecified(), publishedPort)
	}
	proxy, err := l.startProxy(s, p, listen, target)
	if err != nil {
		return err
	}
	rest := []path.Hop{proxy, s.bridgeHop(true), server.vethHop(true)}
	if !d.noIPTables {
		p.Guards = s.natGuards(d)
	}
	switch p.Spec.From {
	case mode.FromHost:
		p.Client = s.in(s.a)
		p.Hops = append([]path.Hop{loHop(s.a.ns, s.a.name)}, rest...)
		p.Guards = append(p.Guards, unused(s.wireHop()))
	case mode.FromContainer:
		client, err := s.clientContainer()
		if err != nil {
			return err
		}
		p.Client = s.inside(client.ns, client.name)
		p.Hops = []path.Hop{client.vethHop(false), s.bridgeLeg("in"), proxy, s.bridgeLeg("out"), server.vethHop(true)}
	case mode.FromRemote:
		p.Client = s.in(s.b)
		p.Hops = append([]path.Hop{s.wireHop()}, rest...)
		p.Guards = append(p.Guards, unused(loHop(s.a.ns, s.a.name)))
	}
	return nil
}

// serve places the server in its container and the client's target on the
// published port.
func (s *site) serve(p *path.Path, server *container) {
	p.Server = s.inside(server.ns, server.name)
	p.Listen = netip.AddrPortFrom(anyAddr, serverPort)
	to := wireA.Addr()
	switch p.Spec.To {
	case mode.ToLoopback:
		to = loopback
	case mode.ToLoopback6:
		to = loopback6
	}
	p.Dial = netip.AddrPortFrom(to, publishedPort)
}

// bridgeLeg is a bridge that the load crosses twice, up to the proxy and down
// to the server: what the machine took in from the bridge, and what it sent
// out to it. Each counts both directions of the load, once a leg.
func (s *site) bridgeLeg(way string) path.Hop {
	read := counters(s.a.ns, bridgeA, way == "in")
	return path.Hop{Kind: mode.HopBridge, Name: bridgeA + " " + way, Where: s.a.name, Expect: path.CarriesBoth,
		Read: func() (sample.Counters, error) {
			c, err := read()
			c.BackwardBytes, c.BackwardPackets = 0, 0
			return c, err
		}}
}
