package docker

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/paths/rootless"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

func (s *site) ownRules() { s.path.Facts["rules"] = s.engine.Version() + "'s own" }

func (s *site) native() error {
	s.ownRules()
	if s.engine.rootless {
		s.path.Facts["rules"] = "none of " + s.engine.words().product + "'s, which is rootless"
	}
	s.at = s.engine.machine
	return s.onMachine(func(int) path.Place { return s.machine() })
}

func (s *site) host() error {
	s.ownRules()
	s.at = s.engine.hosts
	if s.path.Spec.To.Outside() {
		return s.hostOutside()
	}
	if err := s.addServers(func(int) (wanted, error) {
		return wanted{network: "host"}, nil
	}); err != nil {
		return err
	}
	s.path.Servers, s.Dial = nil, nil
	return s.onMachine(func(i int) path.Place { return s.Servers[i].Place() })
}

func (s *site) hostOutside() error {
	s.at = s.engine.machine
	if err := s.serveOutside(); err != nil {
		return err
	}
	if s.path.Spec.From == mode.FromHost {
		s.PlaceClients(s.machine())
		return nil
	}
	err := s.addClients(func(int) wanted { return wanted{network: "host"} })
	if err != nil || s.engine.hosts == s.engine.machine {
		return err
	}
	return s.throughTap(s.engine.spot, rootless.Tap)
}

// onMachine places the servers on the machine, each with a port of its own.
func (s *site) onMachine(server func(i int) path.Place) (err error) {
	n, _ := s.path.Spec.Count()
	for i := range n {
		dial := s.path.Spec.Loopback()
		if r := s.remote(); r != nil {
			dial = r.at(s.path.Spec.To.Six())
		}
		port, err := s.freePort(s.path.Spec.Anywhere())
		if err != nil {
			return err
		}
		s.Listen(server(i), port, netip.AddrPortFrom(dial, port))
	}
	if s.path.Spec.Second {
		if s.path.Second, err = s.freePort(anyAddr); err != nil {
			return err
		}
	}
	return s.placeClients(func() error {
		return s.addClients(func(int) wanted { return wanted{network: "host"} })
	})
}

func (s *site) ownNetwork() error { return s.addUserNetwork(nil) }

func (s *site) addUserNetwork(options map[string]string) (err error) {
	s.userNetwork()
	s.network, err = s.addNetwork("bridge", options)
	return err
}

func (s *site) userNetwork() {
	s.ownRules()
	s.path.Facts["network"] = "a user-defined bridge network of toll's, as by " +
		s.engine.words().command + " network create"
	if s.dual() {
		s.path.Facts["network"] += " --ipv6"
	}
}

func (s *site) useDefaultNetwork() (err error) {
	s.ownRules()
	if s.network, err = s.engine.network(s.ctx, defaultNetwork); err != nil {
		return err
	}
	s.reached(s.network)
	s.path.Facts["network"] = s.engine.words().product + "'s default bridge network (" +
		s.network.bridge + ")"
	return nil
}

// shared places clients in their server's network namespace, as in a pod.
func (s *site) shared() error {
	if err := s.ownNetwork(); err != nil {
		return err
	}
	if err := s.addServers(s.plain); err != nil {
		return err
	}
	for i, b := range s.Servers {
		s.Dial[i] = netip.AddrPortFrom(s.path.Spec.Loopback(), serverPort)
		s.path.Guards = append(s.path.Guards, local.Unused(b.Hop(true)))
	}
	return s.addClients(func(i int) wanted {
		return wanted{network: "container:" + s.Servers[i%len(s.Servers)].id}
	})
}

func (s *site) plain(int) (wanted, error) { return wanted{network: s.network.name}, nil }

func (s *site) plainClients() error {
	if err := s.addClients(func(int) wanted {
		return wanted{network: s.network.name}
	}); err != nil {
		return err
	}
	return s.findPorts(s.Clients)
}

func (s *site) addressed(boxes []*box) error {
	for _, b := range boxes {
		if !b.addr.Is4() {
			return fmt.Errorf("%s: %w", b.what, errNoAddress)
		}
		if s.dual() && !b.addr6.IsValid() {
			return fmt.Errorf("%s: the engine gave the container no IPv6 address", b.what)
		}
	}
	return nil
}

func (s *site) findPorts(boxes []*box) error {
	if err := s.addressed(boxes); err != nil {
		return err
	}
	for _, b := range boxes {
		if err := s.findPort(b); err != nil {
			return err
		}
	}
	return nil
}

func (s *site) bridge() error {
	if err := s.ownNetwork(); err != nil {
		return err
	}
	if err := s.onBridge(); err != nil || s.path.Spec.To.Outside() {
		return err
	}
	if err := s.noMasquerade(); err != nil || s.path.Spec.From == mode.FromHost {
		return err
	}
	// Packets are switched, so the machine's own stack must not see them.
	s.path.Guards = append(s.path.Guards, local.Unused(s.bridgeHop(s.network, true)))
	return nil
}

// bridgeDefault sets no guards, because other containers may use the default bridge.
func (s *site) bridgeDefault() error {
	if err := s.useDefaultNetwork(); err != nil {
		return err
	}
	return s.onBridge()
}

func (s *site) onBridge() error {
	if s.path.Spec.To.Outside() {
		if err := s.rewritten(); err != nil {
			return err
		}
		return s.outside()
	}
	if err := s.addServers(s.plain); err != nil {
		return err
	}
	if err := s.findPorts(s.Servers); err != nil {
		return err
	}
	return s.placeClients(s.plainClients)
}

func (s *site) noMasquerade() error {
	if s.engine.Podman != nil {
		return s.guardRewritten()
	}
	return s.guard(s.masquerade(path.Untouched))
}

// rewritten gives the path the hop of the rule that rewrites the source address of packets that
// leave the network.
func (s *site) rewritten() error {
	h, err := s.masquerade(path.Matches)
	if errors.Is(err, errNoRule) {
		err = &machine.UnsupportedError{Missing: "this Docker writes no rule that rewrites its containers' addresses (\"iptables\", \"ip-masq\")",
			Remedy: "routed, which needs none", Err: err}
	}
	if err == nil {
		s.Give(mode.HopSNAT, h)
	}
	return err
}

func (s *site) masquerade(expect path.Expect) (path.Hop, error) {
	if s.engine.Podman != nil {
		return s.leaving()
	}
	subnet := s.network.subnet
	if s.dual() {
		subnet = s.network.subnet6
	}
	return s.ruleHop(mode.HopSNAT, expect, "nat", "POSTROUTING", "-s "+subnet.String(),
		"! -o "+s.network.bridge, "-j MASQUERADE")
}

// routed uses a network with gateway_mode_ipv4=routed, without NAT.
func (s *site) routed() error {
	options := map[string]string{routedOption: "routed"}
	if s.dual() {
		options[routed6Option] = "routed"
	}
	var err error
	if Apart(s.path.Spec) {
		err = s.routedTo(s.engine.docker.Remote, options)
	} else {
		err = s.addUserNetwork(options)
	}
	if err != nil {
		return err
	}
	if s.path.Spec.To.Outside() {
		if err := s.noMasquerade(); err != nil {
			return err
		}
		return s.outside()
	}
	err = s.addServers(func(int) (wanted, error) {
		o := wanted{network: s.network.name, publish: []bound{{container: serverPort}}}
		if s.path.Spec.Second {
			o.publish = append(o.publish, bound{container: secondPort})
		}
		return o, nil
	})
	if err != nil {
		return err
	}
	if err := s.findPorts(s.Servers); err != nil {
		return err
	}
	if err := s.noMasquerade(); err != nil {
		return err
	}
	return s.placeClients(func() error {
		if s.away, err = s.addNetwork("bridge", options); err != nil {
			return err
		}
		err := s.addClients(func(int) wanted { return wanted{network: s.away.name} })
		if err != nil {
			return err
		}
		return s.findPorts(s.Clients)
	})
}

const routedOption = "com.docker.network.bridge.gateway_mode_ipv4"

// linked needs a daemon with "icc": false.
func (s *site) linked() error {
	if err := s.useDefaultNetwork(); err != nil {
		return err
	}
	err := s.addServers(func(int) (wanted, error) {
		o := wanted{network: defaultNetwork, expose: []uint16{serverPort}}
		if s.path.Spec.Second {
			o.expose = append(o.expose, secondPort)
		}
		return o, nil
	})
	if err != nil {
		return err
	}
	if err := s.addClients(func(i int) wanted {
		return wanted{network: defaultNetwork,
			links: []string{s.Servers[i%len(s.Servers)].id + ":db"}}
	}); err != nil {
		return err
	}
	if err := s.findPorts(slices.Concat(s.Servers, s.Clients)); err != nil {
		return err
	}
	var rules []path.Hop
	for i, c := range s.Clients {
		server := s.Servers[i%len(s.Servers)]
		h, err := s.portRule(mode.HopAccept, "filter", "DOCKER", serverPort, secondPort,
			func(port uint16) []string {
				return []string{"-s " + c.addr.String() + "/32",
					"-d " + server.addr.String() + "/32",
					s.dport(port), "-j ACCEPT"}
			})
		if err != nil {
			return err
		}
		h.Clients = s.path.Spec.Alone(i)
		rules = append(rules, h)
	}
	s.Give(mode.HopAccept, rules...)
	return nil
}

const defaultNetwork = "bridge"

func (s *site) dport(n uint16) string { return fmt.Sprintf("--dport %d", n) }
