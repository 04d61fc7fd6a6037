package docker

import (
	"net/netip"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/build/kernel/bigtcp"
	"github.com/bridgetoll/bridgetoll/internal/build/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/build/path"
	"github.com/bridgetoll/bridgetoll/internal/build/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// published makes the servers' containers with published ports, bound to the one
// address that clients dial, and returns the machine's ports.
func (s *site) published() ([]netip.AddrPort, error) {
	at := loopback
	switch s.path.Spec.To {
	case mode.ToLoopback6:
		at = loopback6
	case mode.ToAddress, mode.ToAddress6:
		if r := s.engine.docker.Remote; r != nil {
			at = r.Addr
			break
		}
		var err error
		if at, err = ownAddress(s.engine.ns, s.path.Spec.To.Six()); err != nil {
			return nil, err
		}
	}
	if err := s.addUserNetwork(nil); err != nil {
		return nil, err
	}
	var out []netip.AddrPort
	err := s.addServers(func(int) (order, error) {
		port, err := s.freePort(at)
		if err != nil {
			return order{}, err
		}
		out = append(out, netip.AddrPortFrom(at, port))
		o := order{network: s.network.name, publish: []bound{{netip.AddrPortFrom(at, port), serverPort}}}
		if s.path.Spec.Second {
			if s.path.Second, err = s.freePort(at); err != nil {
				return order{}, err
			}
			o.publish = append(o.publish, bound{netip.AddrPortFrom(at, s.path.Second), s.path.Second})
		}
		return o, nil
	})
	if err != nil {
		return nil, err
	}
	s.Dial = slices.Clone(out)
	return out, s.findPorts(s.Servers)
}

// publishNAT is a published port that the kernel rewrites: a daemon with
// "userland-proxy": false.
func (s *site) publishNAT() error {
	ports, err := s.published()
	if err != nil {
		return err
	}
	var dnat []path.Hop
	for i, p := range ports {
		h, err := s.portRule(mode.HopDNAT, "nat", "DOCKER", p.Port(), s.path.Second, func(port uint16) []string {
			inner := port // the second's is the same inside and outside
			if port == p.Port() {
				inner = serverPort
			}
			return []string{s.dport(port), "-j DNAT", "--to-destination " + netip.AddrPortFrom(s.Servers[i].Addr(), inner).String()}
		})
		if err != nil {
			return err
		}
		h.Clients = s.path.Spec.TalkTo(i)
		dnat = append(dnat, h)
	}
	if s.path.Spec.From == mode.FromContainer {
		if err := s.plainClients(); err != nil {
			return err
		}
		// With bridge-nf-call-iptables the rewritten frame never leaves the
		// bridge: it is switched to the server's port.
		s.path.Hops = slices.Concat(s.ClientHops(), dnat, []path.Hop{s.switchedHop(s.network)}, s.ServerHops())
		return nil
	}
	if r := s.engine.docker.Remote; r != nil {
		s.placeRemote(r)
		s.path.Hops = slices.Concat([]path.Hop{r.Wire}, dnat, []path.Hop{s.bridgeHop(s.network, true)}, s.ServerHops())
		return nil
	}
	masq, err := s.ruleHop(mode.HopSNAT, path.Matches, "nat", "POSTROUTING", "-o "+s.network.bridge, "--src-type LOCAL", "-j MASQUERADE")
	if err != nil {
		return err
	}
	s.PlaceClients(s.machine())
	s.path.Hops = slices.Concat(dnat, []path.Hop{masq, s.bridgeHop(s.network, true)}, s.ServerHops())
	return nil
}

// publishProxy is a published port that docker-proxy relays: for clients on
// the machine that dial a loopback address, and for containers on the same
// bridge.
func (s *site) publishProxy() error {
	ports, err := s.published()
	if err != nil {
		return err
	}
	var proxies []path.Hop
	for i, p := range ports {
		h, err := s.proxyHop(p, netip.AddrPortFrom(s.Servers[i].Addr(), serverPort))
		if err != nil {
			return err
		}
		h.Clients = s.path.Spec.TalkTo(i)
		proxies = append(proxies, h)
		if err := s.guardRule(mode.HopDNAT, "nat", "DOCKER", s.dport(p.Port()), "-j DNAT"); err != nil {
			return err
		}
		if err := s.secondProxy(p.Addr()); err != nil {
			return err
		}
	}
	if err := s.noMasquerade(); err != nil {
		return err
	}
	if s.path.Spec.From == mode.FromContainer {
		if err := s.plainClients(); err != nil {
			return err
		}
		s.path.Hops = slices.Concat(s.ClientHops(), []path.Hop{s.bridgeLeg(s.network, "in")}, proxies,
			[]path.Hop{s.bridgeLeg(s.network, "out")}, s.ServerHops())
		return nil
	}
	s.PlaceClients(s.machine())
	s.path.Hops = slices.Concat([]path.Hop{local.LoopbackHop(s.engine.ns, thisMachine)}, proxies,
		[]path.Hop{s.bridgeHop(s.network, true)}, s.ServerHops())
	return nil
}

// fast is a published port on a loopback address whose docker-proxy clients on the machine
// are led past, as toll fast does it. The proxy must stay quiet.
func (s *site) fast() error {
	ports, err := s.published()
	if err != nil {
		return err
	}
	f, err := local.NewFast(s.path, s.engine.ns)
	if err != nil {
		return err
	}
	lead := func(dial, target netip.AddrPort) error {
		proxy, err := s.proxyHop(dial, target)
		if err != nil {
			return err
		}
		pid := s.path.Proxies[len(s.path.Proxies)-1].PID
		s.path.Proxies = nil // it relays nothing
		if err := f.Lead(proxy, pid, dial, target); err != nil {
			return err
		}
		return s.guardRule(mode.HopDNAT, "nat", "DOCKER", s.dport(dial.Port()), "-j DNAT")
	}
	for i, p := range ports {
		if err := lead(p, netip.AddrPortFrom(s.Servers[i].Addr(), serverPort)); err != nil {
			return err
		}
		if n := s.path.Second; n != 0 {
			if err := lead(netip.AddrPortFrom(p.Addr(), n), netip.AddrPortFrom(s.Servers[i].Addr(), n)); err != nil {
				return err
			}
		}
	}
	if err := s.noMasquerade(); err != nil {
		return err
	}
	s.PlaceClients(s.machine())
	s.path.Hops = append([]path.Hop{s.bridgeHop(s.network, true)}, s.ServerHops()...)
	return nil
}

// fastLinks is the same with the network's links raised, as toll fast does it. They go with
// the network.
func (s *site) fastLinks() error {
	if err := s.fast(); err != nil {
		return err
	}
	names := []string{s.network.bridge}
	for _, b := range s.Servers {
		names = append(names, b.port)
	}
	return s.engine.ns.Do(func() error {
		for _, name := range names {
			if err := link.SetMaxSize(name, bigtcp.Size); err != nil {
				return err
			}
		}
		return nil
	})
}

// secondProxy finds the docker-proxy of the second port, if there is one. Its
// sockets are no hop of their own: the machine's count of what was relayed has
// them.
func (s *site) secondProxy(at netip.Addr) error {
	if !s.path.Spec.Second {
		return nil
	}
	n := s.path.Second
	if _, err := s.proxyHop(netip.AddrPortFrom(at, n), netip.AddrPortFrom(s.Servers[0].Addr(), n)); err != nil {
		return err
	}
	return s.guardRule(mode.HopDNAT, "nat", "DOCKER", s.dport(n), "-j DNAT")
}
