package lab

import (
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

func (s *site) publishNAT() error { return s.translated(daemon{noProxy: true}) }

// publishProxy measures docker-proxy. Connections reach it if clients dial a loopback address or
// are on the same bridge; for remote clients over IPv4, Docker must write no rules.
func (s *site) publishProxy() error {
	return s.relayed(daemon{noIPTables: s.path.Spec.From == mode.FromRemote &&
		s.path.Spec.To.Four()})
}

func (s *site) publish() error {
	d := daemon{noProxy: s.lab.ProxyPath == noProxy}
	if relays(s.path.Spec) && !d.noProxy {
		return s.relayed(d)
	}
	return s.translated(d)
}

func (s *site) publishDefault() error {
	s.home = docker0
	return s.publish()
}

// relays reports whether docker-proxy, if it runs, receives the path's connections.
func relays(s path.Spec) bool { return s.To != mode.ToAddress || s.From == mode.FromContainer }

func (s *site) translated(d daemon) error {
	if err := s.dockerServers(d, true); err != nil {
		return err
	}
	s.dialPublished()
	p := s.path
	p.Guards = []path.Hop{local.Unused(s.loHop(s.a.ns, s.a.name))}
	if !d.noProxy {
		if err := s.quietProxies(); err != nil {
			return err
		}
	}
	if p.Spec.From == mode.FromHost && !d.noProxy {
		p.Guards = append(p.Guards, s.noNAT())
	}
	return s.placeClients(func() error {
		if p.Spec.From == mode.FromContainer {
			return s.dockerClients(d)
		}
		return s.remoteClients(dockerNet{network: remoteNet})
	})
}

func (s *site) relayed(d daemon) error {
	p := s.path
	if err := s.dockerServers(d, true); err != nil {
		return err
	}
	s.dialPublished()
	listen := s.anywhere()
	if d.rootless.IsValid() {
		listen = s.near()
	}
	var proxies []path.Hop
	for i, c := range s.Servers {
		proxy, err := s.startProxy(netip.AddrPortFrom(listen, s.Dial[i].Port()),
			netip.AddrPortFrom(c.Addr(), serverPort))
		if err != nil {
			return err
		}
		if err := s.startSecondProxy(listen, c.Addr()); err != nil {
			return err
		}
		proxy.Clients = s.path.Spec.TalkTo(i)
		proxies = append(proxies, proxy)
		if !d.noIPTables {
			p.Guards = append(p.Guards, s.portRule(
				mode.HopDNAT, "nat", "DOCKER", tagPublish, i, path.Untouched))
		}
	}
	if !d.noIPTables {
		p.Guards = append(p.Guards, s.noNAT())
	}
	s.Give(mode.HopProxy, proxies...)
	if p.Spec.From == mode.FromRemote {
		p.Guards = append(p.Guards, local.Unused(s.loHop(s.a.ns, s.a.name)))
	}
	return s.placeClients(func() error { return s.dockerClients(d) })
}

func (s *site) quietProxies() error {
	start := func(port uint16, target netip.AddrPort) error {
		proxy, err := s.startProxy(netip.AddrPortFrom(s.anywhere(), port), target)
		if err != nil {
			return err
		}
		local.Quiet(s.path, s.a.ns, proxy)
		return nil
	}
	for i, c := range s.Servers {
		if err := start(s.Dial[i].Port(), netip.AddrPortFrom(c.Addr(), serverPort)); err != nil {
			return err
		}
		if s.path.Spec.Second {
			if err := start(secondPort, netip.AddrPortFrom(c.Addr(), secondPort)); err != nil {
				return err
			}
		}
	}
	return nil
}

// fast builds a path on which toll fast bypasses docker-proxy. The proxy becomes a guard.
func (s *site) fast() error {
	if err := s.dockerServers(daemon{}, true); err != nil {
		return err
	}
	s.dialPublished()
	f, err := local.NewFast(s.path, s.a.ns)
	if err != nil {
		return err
	}
	lead := func(dial, target netip.AddrPort) error {
		proxy, err := s.startProxy(netip.AddrPortFrom(s.anywhere(), dial.Port()), target)
		if err != nil {
			return err
		}
		pid := s.path.Proxies[len(s.path.Proxies)-1].PID
		s.path.Proxies = nil
		return f.Lead(proxy, pid, dial, target)
	}
	for i, c := range s.Servers {
		if err := lead(s.Dial[i], netip.AddrPortFrom(c.Addr(), serverPort)); err != nil {
			return err
		}
		if s.path.Spec.Second {
			if err := lead(netip.AddrPortFrom(s.Dial[i].Addr(), secondPort), netip.AddrPortFrom(c.Addr(), secondPort)); err != nil {
				return err
			}
		}
		s.path.Guards = append(s.path.Guards,
			s.portRule(mode.HopDNAT, "nat", "DOCKER", tagPublish, i, path.Untouched))
	}
	s.path.Guards = append(s.path.Guards, s.noNAT(), local.Unused(s.loHop(s.a.ns, s.a.name)))
	s.PlaceClients(on(s.a))
	return nil
}

func (s *site) fastLinks() error {
	if err := s.fast(); err != nil {
		return err
	}
	return local.LargerPackets(s.a.ns, append(ports(s.Servers), s.home.bridge)...)
}

func (s *site) anywhere() netip.Addr {
	if s.path.Spec.To.Six() {
		return netip.IPv6Unspecified()
	}
	return anyAddr
}

// near returns the loopback address of the path's family.
func (s *site) near() netip.Addr {
	if s.path.Spec.To.Six() {
		return loopback6
	}
	return loopback
}

func (s *site) publishedRules() []path.Hop {
	return s.EachServer(func(i int) path.Hop {
		return s.portRule(mode.HopDNAT, "nat", "DOCKER", tagPublish, i, path.Matches)
	})
}

func (s *site) dialPublished() {
	to := s.a.addr.Addr()
	switch s.path.Spec.To {
	case mode.ToLoopback:
		to = loopback
	case mode.ToLoopback6:
		to = loopback6
	case mode.ToAddress6:
		to = s.a.addr6.Addr()
	}
	for i := range s.Dial {
		s.Dial[i] = netip.AddrPortFrom(to, s.published(i))
	}
}
