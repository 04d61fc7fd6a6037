package lab

import (
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
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
	if recipe.Proxied(s.path.Spec) && !d.noProxy {
		return s.relayed(d)
	}
	return s.translated(d)
}

func (s *site) publishDefault() error {
	s.home = docker0
	return s.publish()
}

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
	listen := s.path.Spec.Anywhere()
	if d.rootless.IsValid() {
		listen = s.path.Spec.Loopback()
	}
	var proxies []path.Hop
	for i := range s.Servers {
		for n, port := range s.Ports(i) {
			proxy, err := s.startProxy(listen, port)
			if err != nil {
				return err
			}
			if n == 0 { // the second port's proxy counts with it
				proxy.Clients = p.Spec.TalkTo(i)
				proxies = append(proxies, proxy)
			}
		}
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
	for i := range s.Servers {
		for _, port := range s.Ports(i) {
			proxy, err := s.startProxy(s.path.Spec.Anywhere(), port)
			if err != nil {
				return err
			}
			local.Quiet(s.path, s.a.ns, proxy)
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
	for i := range s.Servers {
		for _, port := range s.Ports(i) {
			proxy, err := s.startProxy(s.path.Spec.Anywhere(), port)
			if err == nil {
				err = f.Lead(proxy, port.Dial, port.Target)
			}
			if err != nil {
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

func (s *site) publishedRules() []path.Hop {
	return s.EachServer(func(i int) path.Hop {
		return s.portRule(mode.HopDNAT, "nat", "DOCKER", tagPublish, i, path.Matches)
	})
}

// dialled returns the address of the server's machine that the path's clients dial.
func (s *site) dialled() netip.Addr {
	if s.path.Spec.To.Over4() == mode.ToLoopback {
		return s.path.Spec.Loopback()
	}
	return s.a.Addr()
}

func (s *site) dialPublished() {
	for i := range s.Dial {
		s.Dial[i] = netip.AddrPortFrom(s.dialled(), s.published(i))
	}
}
