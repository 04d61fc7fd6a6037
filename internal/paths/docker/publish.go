package docker

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// published makes servers with published ports. Each port is bound only to the address that clients
// dial.
func (s *site) published() error {
	at := s.path.Spec.Loopback()
	var err error
	if r := s.remote(); r != nil {
		at = r.at(s.path.Spec.To.Six())
	} else if s.path.Spec.To.Over4() == mode.ToAddress {
		at, err = ownAddress(s.at.ns, s.path.Spec.To.Six())
	}
	if err != nil {
		return err
	}
	var dial []netip.AddrPort
	err = s.addServers(func(int) (wanted, error) {
		port, err := s.freePort(at)
		if err != nil {
			return wanted{}, err
		}
		dial = append(dial, netip.AddrPortFrom(at, port))
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
		return err
	}
	s.Dial = dial
	if _, relayed := userRelays[s.path.Spec.Mode]; relayed { // the servers' own addresses are not dialled
		return nil
	}
	return s.findPorts(s.Servers)
}

// onPorts returns the recipe of a mode with published ports on a network of toll's.
func onPorts(build func(*site) error) func(*site) error {
	return withPorts((*site).ownNetwork, build)
}

func onDefaultPorts(build func(*site) error) func(*site) error {
	return withPorts((*site).useDefaultNetwork, build)
}

// withPorts returns the recipe of a mode with published ports on a network. build builds the path
// to them.
func withPorts(network, build func(*site) error) func(*site) error {
	return func(s *site) error {
		if err := network(s); err != nil {
			return err
		}
		if err := s.published(); err != nil {
			return err
		}
		return build(s)
	}
}

// publishedAnyhow builds the path that the engine's settings give the ports.
func (s *site) publishedAnyhow() error {
	_, err := s.engine.findProxy(s.proto(), s.Ports(0)[0])
	switch {
	case errors.Is(err, errNoProxy):
		return s.translated()
	case err != nil:
		return err
	case s.relays():
		return s.relayed()
	}
	return s.translated()
}

// relays reports whether docker-proxy, if it listens on the port, receives the path's connections.
// Over IPv6, rules handle connections to a network with IPv6.
func (s *site) relays() bool {
	byRules := s.path.Spec.To == mode.ToAddress6 && s.path.Spec.From == mode.FromHost && s.dual()
	return recipe.Proxied(s.path.Spec) && !byRules
}

// translated builds the path to ports that rules rewrite: the daemon has "userland-proxy": false,
// or clients dial the machine's own address. If a docker-proxy listens on a port, it becomes a
// guard.
func (s *site) translated() error {
	dnat, err := s.dnatHops()
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
		if err := s.taps(); err != nil {
			return err
		}
	} else {
		s.kits(false)
	}
	if preserved, err := s.firstClient(); err != nil {
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
func (s *site) dnatHops() (hops []path.Hop, err error) {
	for i, p := range s.Dial {
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
		for _, port := range s.Ports(i) {
			if err := s.quietProxy(port); err != nil {
				return nil, err
			}
		}
	}
	return hops, nil
}

func (s *site) quietProxy(p recipe.Port) error {
	h, err := s.proxyHop(p)
	if errors.Is(err, errNoProxy) {
		return nil
	}
	if err == nil {
		local.Quiet(s.path, s.engine.ns, h)
	}
	return err
}

// relayed builds a path through docker-proxy: clients dial a loopback address or are on the same
// bridge.
func (s *site) relayed() error {
	var proxies []path.Hop
	for i := range s.Dial {
		for n, port := range s.Ports(i) {
			h, err := s.proxyHop(port)
			if err != nil {
				return err
			}
			if n == 0 { // the machine's count of relayed connections includes the second port's
				h.Clients = s.path.Spec.TalkTo(i)
				proxies = append(proxies, h)
			}
			if err := s.noDNAT(port.Dial.Port()); err != nil {
				return err
			}
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
	if _, err := s.firstClient(); err != nil {
		return err
	}
	s.kits(true)
	return nil
}

// fast builds a path on which toll fast bypasses docker-proxy. The proxy becomes a guard.
func (s *site) fast() error {
	f, err := local.NewFast(s.path, s.engine.ns)
	if err != nil {
		return err
	}
	for i := range s.Dial {
		for _, port := range s.Ports(i) {
			proxy, err := s.proxyHop(port)
			if err == nil {
				err = f.Lead(proxy, port.Dial, port.Target)
			}
			if err == nil {
				err = s.noDNAT(port.Dial.Port())
			}
			if err != nil {
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

// noDNAT adds a guard against the rule that rewrites connections to a port.
func (s *site) noDNAT(port uint16) error {
	return s.guardRule(mode.HopDNAT, "nat", "DOCKER", s.dport(port), "-j DNAT")
}

// errNoProxy means that the daemon starts no docker-proxy ("userland-proxy": false).
var errNoProxy = errors.New("no docker-proxy listens on the published port")

// findProxy returns the PID of the port's docker-proxy. It looks for the arguments that dockerd
// passes to docker-proxy.
func (e *engine) findProxy(proto string, p recipe.Port) (int, error) {
	here, err := e.netns()
	if err != nil {
		return 0, err
	}
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, err
	}
	want := []string{"-proto", proto, "-host-port", strconv.Itoa(int(p.Dial.Port())),
		"-container-ip", p.Target.Addr().String(), "-container-port",
		strconv.Itoa(int(p.Target.Port()))}
	for _, f := range files {
		line, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		args := strings.Split(string(line), "\x00")
		if filepath.Base(args[0]) != "docker-proxy" || !hasPairs(args, want) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if at, nsErr := netns.ID(pid); err == nil && nsErr == nil && at == here {
			return pid, nil // only this engine's
		}
	}
	return 0, errNoProxy
}

func hasPairs(args, want []string) bool {
	for i := 0; i < len(want); i += 2 {
		at := slices.Index(args, want[i])
		if at < 0 || at+1 >= len(args) || args[at+1] != want[i+1] {
			return false
		}
	}
	return true
}

func (s *site) proto() string {
	if s.path.Spec.UDP {
		return "udp"
	}
	return "tcp"
}

func (s *site) proxyHop(p recipe.Port) (path.Hop, error) {
	pid, err := s.engine.findProxy(s.proto(), p)
	if err != nil {
		return path.Hop{}, err
	}
	name := "docker-proxy" + local.ProxyVersion("/proc/"+strconv.Itoa(pid)+"/exe")
	proxy := local.Proxy{Space: s.engine.ns, PID: pid, Listens: p.Dial.Port(), Target: p.Target,
		Beside: s.engine.kit != nil} // RootlessKit dials the proxy
	return local.ProxyHop(s.path, proxy, name, s.engine.name), nil
}
