package lab

import (
	"net/netip"
	"slices"
	"strconv"

	"github.com/bridgetoll/bridgetoll/internal/build/kernel/bigtcp"
	"github.com/bridgetoll/bridgetoll/internal/build/path"
	"github.com/bridgetoll/bridgetoll/internal/build/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// publishNAT is a published port that the kernel rewrites: a daemon with
// "userland-proxy": false (Docker Engine 28.5.2).
func (s *site) publishNAT() error {
	d := daemon{noProxy: true}
	if err := s.dockerServers(d, true); err != nil {
		return err
	}
	s.publish()
	p := s.path
	dnat := s.EachServer(func(i int) path.Hop {
		return s.portRule(mode.HopDNAT, "nat", "DOCKER", tagPublish, i, path.Matches)
	})
	masq := s.ruleHop(s.a, mode.HopSNAT, "nat", "POSTROUTING", tagLocalMasq, path.Matches)
	last := append([]path.Hop{s.bridgeHop(s.a, tollNet.bridge, true)}, s.ServerHops()...)
	p.Guards = []path.Hop{local.Unused(s.loHop(s.a.ns, s.a.name))}
	switch p.Spec.From {
	case mode.FromHost:
		s.PlaceClients(on(s.a))
		p.Hops = slices.Concat(dnat, []path.Hop{masq}, last)
	case mode.FromContainer:
		if err := s.dockerClients(d); err != nil {
			return err
		}
		// With bridge-nf-call-iptables the rewritten frame never leaves the
		// bridge: it is switched to the server's port.
		p.Hops = slices.Concat(s.ClientHops(), dnat, []path.Hop{s.switched(tollNet)}, s.ServerHops())
	case mode.FromRemote:
		s.PlaceClients(on(s.b))
		p.Hops = slices.Concat([]path.Hop{s.wireHop()}, dnat, last)
	case mode.FromRemoteContainer:
		if err := s.remoteClients(dockerNet{network: remoteNet}); err != nil {
			return err
		}
		p.Hops = slices.Concat(s.ClientHops(), []path.Hop{s.bridgeHop(s.b, remoteNet.bridge, false),
			s.ruleHop(s.b, mode.HopSNAT, "nat", "POSTROUTING", tagMasq, path.Matches), s.wireHop()}, dnat, last)
	}
	return nil
}

// publishProxy is a published port that docker-proxy relays: for clients on
// the machine that dial a loopback address, for containers on the same
// bridge, and for everybody if the daemon writes no rules (Docker Engine 28.5.2).
func (s *site) publishProxy() error {
	p := s.path
	d := daemon{noIPTables: p.Spec.From == mode.FromRemote && p.Spec.To.Four()}
	if err := s.dockerServers(d, true); err != nil {
		return err
	}
	s.publish()
	anywhere := anyAddr
	if p.Spec.To.Six() {
		anywhere = netip.IPv6Unspecified()
	}
	var proxies []path.Hop
	for i, c := range s.Servers {
		proxy, err := s.startProxy(netip.AddrPortFrom(anywhere, s.Dial[i].Port()), netip.AddrPortFrom(c.Addr(), serverPort))
		if err != nil {
			return err
		}
		if err := s.startSecondProxy(anywhere, c.Addr()); err != nil {
			return err
		}
		proxy.Clients = s.path.Spec.TalkTo(i)
		proxies = append(proxies, proxy)
		if !d.noIPTables {
			p.Guards = append(p.Guards, s.portRule(mode.HopDNAT, "nat", "DOCKER", tagPublish, i, path.Untouched))
		}
	}
	if !d.noIPTables {
		p.Guards = append(p.Guards, s.noNAT())
	}
	rest := slices.Concat(proxies, []path.Hop{s.bridgeHop(s.a, tollNet.bridge, true)}, s.ServerHops())
	switch p.Spec.From {
	case mode.FromHost:
		s.PlaceClients(on(s.a))
		p.Hops = append([]path.Hop{s.loHop(s.a.ns, s.a.name)}, rest...)
	case mode.FromContainer:
		if err := s.dockerClients(d); err != nil {
			return err
		}
		p.Hops = slices.Concat(s.ClientHops(), []path.Hop{s.bridgeLeg("in")}, proxies, []path.Hop{s.bridgeLeg("out")}, s.ServerHops())
	case mode.FromRemote:
		s.PlaceClients(on(s.b))
		p.Hops = append([]path.Hop{s.wireHop()}, rest...)
		p.Guards = append(p.Guards, local.Unused(s.loHop(s.a.ns, s.a.name)))
	}
	return nil
}

// fast is a published port on a loopback address whose docker-proxy clients on the machine
// are led past (toll fast). The proxy runs, and must stay quiet.
func (s *site) fast() error {
	if err := s.dockerServers(daemon{}, true); err != nil {
		return err
	}
	s.publish()
	anywhere := anyAddr
	if s.path.Spec.To == mode.ToLoopback6 {
		anywhere = netip.IPv6Unspecified()
	}
	f, err := local.NewFast(s.path, s.a.ns)
	if err != nil {
		return err
	}
	lead := func(dial, target netip.AddrPort) error {
		proxy, err := s.startProxy(netip.AddrPortFrom(anywhere, dial.Port()), target)
		if err != nil {
			return err
		}
		pid := s.path.Proxies[len(s.path.Proxies)-1].PID
		s.path.Proxies = nil // it relays nothing
		return f.Lead(proxy, pid, dial, target)
	}
	for i, c := range s.Servers {
		if err := lead(s.Dial[i], netip.AddrPortFrom(c.addr.Addr(), serverPort)); err != nil {
			return err
		}
		if s.path.Spec.Second {
			if err := lead(netip.AddrPortFrom(s.Dial[i].Addr(), secondPort), netip.AddrPortFrom(c.addr.Addr(), secondPort)); err != nil {
				return err
			}
		}
		s.path.Guards = append(s.path.Guards, s.portRule(mode.HopDNAT, "nat", "DOCKER", tagPublish, i, path.Untouched))
	}
	s.path.Guards = append(s.path.Guards, s.noNAT(), local.Unused(s.loHop(s.a.ns, s.a.name)))
	s.PlaceClients(on(s.a))
	s.path.Hops = append([]path.Hop{s.bridgeHop(s.a, tollNet.bridge, true)}, s.ServerHops()...)
	return nil
}

// fastLinks is the same with links raised, as toll fast does it.
func (s *site) fastLinks() error {
	if err := s.fast(); err != nil {
		return err
	}
	return s.tuned.Set(s.path, mode.Tune{Key: mode.BigTCP, Value: strconv.Itoa(bigtcp.Size)}, nil)
}

// publish lets clients dial the published ports.
func (s *site) publish() {
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
		s.Dial[i] = netip.AddrPortFrom(to, uint16(publishedPort+i))
	}
}
