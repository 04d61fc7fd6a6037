package docker

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// published makes servers with published ports and returns their addresses. Each port is bound only
// to the address that clients dial.
func (s *site) published() ([]netip.AddrPort, error) {
	at := loopback
	switch s.path.Spec.To {
	case mode.ToLoopback6:
		at = loopback6
	case mode.ToAddress, mode.ToAddress6:
		if r := s.remote(); r != nil {
			at = r.at(s.path.Spec.To.Six())
			break
		}
		var err error
		if at, err = ownAddress(s.at.ns, s.path.Spec.To.Six()); err != nil {
			return nil, err
		}
	}
	var out []netip.AddrPort
	err := s.addServers(func(int) (wanted, error) {
		port, err := s.freePort(at)
		if err != nil {
			return wanted{}, err
		}
		out = append(out, netip.AddrPortFrom(at, port))
		o := wanted{network: s.network.name, publish: []bound{
			{netip.AddrPortFrom(at, port), serverPort}}}
		if s.path.Spec.Second {
			if s.path.Second, err = s.freePort(at); err != nil {
				return wanted{}, err
			}
			o.publish = append(o.publish, bound{
				netip.AddrPortFrom(at, s.path.Second), s.path.Second})
		}
		return o, nil
	})
	if err != nil {
		return nil, err
	}
	s.Dial = slices.Clone(out)
	if _, relayed := userRelays[s.path.Spec.Mode]; relayed { // the servers' own addresses are not dialled
		return out, nil
	}
	return out, s.findPorts(s.Servers)
}

func (s *site) publish() error {
	if err := s.addUserNetwork(nil); err != nil {
		return err
	}
	return s.publishedAnyhow()
}

func (s *site) publishDefault() error {
	if err := s.useDefaultNetwork(); err != nil {
		return err
	}
	return s.publishedAnyhow()
}

func (s *site) publishedAnyhow() error {
	ports, err := s.published()
	if err != nil {
		return err
	}
	_, err = s.engine.findProxy(s.proto(), ports[0], netip.AddrPortFrom(s.Servers[0].Addr(), serverPort))
	switch {
	case errors.Is(err, errNoProxy):
		return s.translated(ports)
	case err != nil:
		return err
	case s.relays():
		return s.relayed(ports)
	}
	return s.translated(ports)
}

// relays reports whether docker-proxy, if it listens on the port, receives the path's connections.
func relays(s path.Spec) bool { return s.To != mode.ToAddress || s.From == mode.FromContainer }

// relays reports whether docker-proxy, if it listens on the port, receives the path's connections.
// Over IPv6, rules handle connections to a network with IPv6.
func (s *site) relays() bool {
	byRules := s.path.Spec.To == mode.ToAddress6 && s.path.Spec.From == mode.FromHost && s.dual()
	return relays(s.path.Spec) && !byRules
}

// publishNAT builds a path without docker-proxy: the daemon has "userland-proxy": false, or clients
// dial the machine's own address.
func (s *site) publishNAT() error {
	if err := s.addUserNetwork(nil); err != nil {
		return err
	}
	ports, err := s.published()
	if err != nil {
		return err
	}
	return s.translated(ports)
}

// translated builds the path to ports that rules rewrite. If a docker-proxy listens on a port, it
// becomes a guard.
func (s *site) translated(ports []netip.AddrPort) error {
	dnat, err := s.dnatHops(ports)
	if err != nil {
		return err
	}
	s.Give(mode.HopDNAT, dnat...)
	if s.path.Spec.From != mode.FromHost {
		return s.placeClients(s.plainClients)
	}
	// Docker writes this rule if it starts no docker-proxy.
	ofHost := func(expect path.Expect) (path.Hop, error) {
		return s.ruleHop(mode.HopSNAT, expect, "nat", "POSTROUTING", "-o "+s.network.bridge,
			"--src-type LOCAL", "-j MASQUERADE")
	}
	if s.path.Spec.Mode == mode.RootlessPublishTap {
		if err := s.taps(ports); err != nil {
			return err
		}
	} else {
		s.kits(ports, false)
	}
	if preserved, err := s.firstClient(ports[0]); err != nil {
		return err
	} else if preserved || s.path.Spec.Mode == mode.RootlessPublishTap {
		if err := s.guard(ofHost(path.Untouched)); err != nil {
			return err
		}
	} else if masq, err := ofHost(path.Matches); err == nil {
		s.Give(mode.HopSNAT, masq)
	} else if !errors.Is(err, errNoRule) {
		return err
	}
	s.PlaceClients(s.machine())
	return nil
}

// dnatHops returns the rules of the ports, and makes guards of docker-proxies that listen on them.
func (s *site) dnatHops(ports []netip.AddrPort) (hops []path.Hop, err error) {
	for i, p := range ports {
		h, err := s.portRule(mode.HopDNAT, "nat", "DOCKER", p.Port(), s.path.Second,
			func(port uint16) []string {
				inner := port // the second port has the same number in the container
				if port == p.Port() {
					inner = serverPort
				}
				return []string{s.dport(port), "-j DNAT",
					"--to-destination " + netip.AddrPortFrom(s.Servers[i].Addr(), inner).String()}
			})
		if err != nil {
			return nil, err
		}
		h.Clients = s.path.Spec.TalkTo(i)
		hops = append(hops, h)
		if err := s.quietProxy(p, netip.AddrPortFrom(s.Servers[i].Addr(), serverPort)); err != nil {
			return nil, err
		}
		if n := s.path.Second; n != 0 {
			if err := s.quietProxy(netip.AddrPortFrom(p.Addr(), n), netip.AddrPortFrom(s.Servers[i].Addr(), n)); err != nil {
				return nil, err
			}
		}
	}
	return hops, nil
}

func (s *site) quietProxy(at, to netip.AddrPort) error {
	h, err := s.proxyHop(at, to)
	if errors.Is(err, errNoProxy) {
		return nil
	}
	if err == nil {
		local.Quiet(s.path, s.engine.ns, h)
	}
	return err
}

// publishProxy builds a path through docker-proxy: clients dial a loopback address or are on the
// same bridge.
func (s *site) publishProxy() error {
	if err := s.addUserNetwork(nil); err != nil {
		return err
	}
	ports, err := s.published()
	if err != nil {
		return err
	}
	return s.relayed(ports)
}

func (s *site) relayed(ports []netip.AddrPort) error {
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
	if s.network.name != defaultNetwork { // the default network carries others' traffic
		if err := s.noMasquerade(); err != nil {
			return err
		}
	}
	s.Give(mode.HopProxy, proxies...)
	err := s.placeClients(s.plainClients)
	if err != nil || s.path.Spec.From == mode.FromContainer {
		return err
	}
	if _, err := s.firstClient(ports[0]); err != nil {
		return err
	}
	s.kits(ports, true)
	return nil
}

// fast builds a path on which toll fast bypasses docker-proxy. The proxy becomes a guard.
func (s *site) fast() error {
	if err := s.addUserNetwork(nil); err != nil {
		return err
	}
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
		s.path.Proxies = nil
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
	return nil
}

func (s *site) fastLinks() error {
	if err := s.fast(); err != nil {
		return err
	}
	names := []string{s.network.bridge}
	for _, b := range s.Servers {
		names = append(names, b.port)
	}
	return local.LargerPackets(s.engine.ns, names...)
}

// secondProxy adds the docker-proxy of the second port. It needs no hop: the machine's count of
// relayed connections includes its sockets.
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
