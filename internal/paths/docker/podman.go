package docker

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Podman's network programs, netavark and before it CNI, write NAT rules for published ports.
// conmon also binds each port, but only so that no other process can take it. netavark's rules (as
// of 1.14) have no counters, so a table of toll's own counts what they rewrite.

func podmanLacks(what, remedy string) modeRecipe {
	return modeRecipe{lacks: &machine.UnsupportedError{Missing: what, Remedy: remedy}}
}

var podmanRecipes = map[mode.Name]modeRecipe{
	mode.Native:        {build: (*site).native, alone: true},
	mode.Host:          {build: (*site).host, alone: true},
	mode.Shared:        {build: (*site).shared, alone: true},
	mode.Bridge:        {build: (*site).podmanBridge},
	mode.BridgeDefault: {build: (*site).podmanBridgeDefault, check: (*engine).checkPodmanDefault},
	mode.Publish:       {build: onPorts((*site).rewrittenPorts), check: (*engine).checkRewritten},
	mode.PublishDefault: {build: onDefaultPorts((*site).rewrittenPorts),
		check: (*engine).checkRewritten},
	mode.PublishNAT:    {build: onPorts((*site).rewrittenPorts), check: (*engine).checkRewritten},
	mode.Pipework:      {build: (*site).pipework, check: (*engine).checkBridge, no6: plugged4},
	mode.OVS:           {build: (*site).vswitch, check: (*engine).checkSwitch, no6: plugged4},
	mode.MacvlanBridge: {build: (*site).subInterfaces, check: (*engine).checkParent},
	mode.MacvlanVEPA:   {build: (*site).subInterfaces, check: (*engine).checkVEPA},
	mode.IPvlanL2:      {build: (*site).subInterfaces, check: (*engine).checkParent},
	mode.IPvlanL3:      {build: (*site).subInterfaces, check: (*engine).checkParent},
	mode.IPvlanL3S:     {build: (*site).subInterfaces, check: (*engine).checkParent},

	mode.Pasta:        {build: (*site).publishByUser},
	mode.Slirp4netns:  {build: (*site).publishByUser},
	mode.RootlessPort: {build: (*site).publishByUser},

	mode.PublishProxy: podmanLacks("Podman has no docker-proxy",
		"publish, which measures what this Podman does"),
	mode.Fast: podmanLacks("toll fast bypasses docker-proxy, which Podman lacks",
		"--on docker"),
	mode.FastLinks: podmanLacks("toll fast bypasses docker-proxy, which Podman lacks",
		"--on docker"),
	mode.Routed: podmanLacks("Podman has no routed networks: it rewrites the source addresses of all its bridge networks",
		"--on docker or lab"),
	mode.Link:    podmanLacks("Podman has no --link", "--on docker or lab"),
	mode.Overlay: podmanLacks("overlay networks need a swarm, and Podman has none", "--on swarm or lab"),
	mode.OverlayEncrypted: podmanLacks("overlay networks need a swarm, and Podman has none",
		"--on lab"),
	mode.PublishIngress: podmanLacks("the routing mesh needs a swarm, and Podman has none",
		"--on swarm or lab"),
	mode.RootlessPublish: podmanLacks("RootlessKit belongs to rootless Docker, and Podman does not use it",
		"pasta or rootlessport, or --on docker"),
	mode.RootlessPublishTap: podmanLacks("RootlessKit belongs to rootless Docker, and Podman does not use it",
		"slirp4netns before Podman 6, or --on docker"),
	mode.RootlessPublishNAT: podmanLacks("RootlessKit belongs to rootless Docker, and Podman does not use it",
		"pasta or rootlessport, or --on docker"),
	mode.GvisorTapVsock: podmanLacks("Podman uses gvisor-tap-vsock only for its virtual machines",
		"--on lab"),

	mode.NATAlias: podmanLacks(
		"toll adds no alias to a card that the machine uses, and no NAT rules to Podman's",
		"--on lab"),
	mode.Netkit:          podmanLacks("Podman has no netkit networks", "--on lab"),
	mode.MacvlanPrivate:  recipes[mode.MacvlanPrivate],
	mode.MacvlanPassthru: recipes[mode.MacvlanPassthru],
}

func (d *Docker) recipes() map[mode.Name]modeRecipe {
	if d.Podman {
		return podmanRecipes
	}
	return recipes
}

func (e *engine) recipe(m mode.Name) modeRecipe {
	if e.Podman != nil {
		return podmanRecipes[m]
	}
	return recipes[m]
}

// words has an engine's names for messages.
type words struct{ command, product, daemon string }

func (e *engine) words() words {
	if e.Podman != nil {
		return words{"podman", "Podman", "the Podman service"}
	}
	return words{"docker", "Docker", "the Docker daemon"}
}

func (e *engine) checkPodmanDefault(ctx context.Context, s path.Spec, _ *trial) error {
	if !recipe.Dual(s) {
		return nil
	}
	n, err := e.network(ctx, defaultNetwork)
	if err != nil || n.subnet6.IsValid() {
		return err
	}
	return &machine.UnsupportedError{Missing: "this Podman's default network has no IPv6",
		Remedy: "bridge, or publish-nat of root's Podman, whose networks toll makes"}
}

func (e *engine) checkRewritten(ctx context.Context, s path.Spec, t *trial) error {
	switch {
	case s.To == mode.ToLoopback6:
		return &machine.UnsupportedError{
			Missing: "a port that Podman publishes does not answer on ::1: the kernel does not route packets from ::1 to another device",
			Remedy:  "--to loopback,address"}
	case s.To == mode.ToAddress6 && !recipe.Dual(s):
		return &machine.UnsupportedError{
			Missing: "Podman publishes ports over IPv6 only for networks with IPv6",
			Remedy:  "publish-nat, whose network has IPv6"}
	}
	if s.Mode == mode.PublishDefault {
		if err := e.checkPodmanDefault(ctx, s, t); err != nil {
			return err
		}
	}
	if err := e.ns.Do(func() error {
		m, err := nft.NewMeter(nft.IPv4, "toll-"+e.ID, nil)
		if err != nil {
			return err
		}
		return m.Close()
	}); err != nil {
		return &machine.UnsupportedError{
			Missing: "Podman's rules have no counters, and toll cannot count what they rewrite",
			Remedy:  "Linux 5.12 with nf_tables, or later", Err: err}
	}
	return e.checkAddress(s)
}

// hostPortMark marks packets whose source address is rewritten: those from the network itself and
// from 127.0.0.1.
const hostPortMark = 0x2000

func (s *site) rewrittenPorts() error {
	masq := metered{kind: mode.HopSNAT, name: fmt.Sprintf("nat mark %#x to %s", hostPortMark,
		s.servers())}
	var all []metered
	for i, p := range s.Dial {
		server := s.Servers[i].Addr()
		m := metered{kind: mode.HopDNAT, clients: s.path.Spec.TalkTo(i),
			name: fmt.Sprintf("nat %s to %s", p, netip.AddrPortFrom(server, serverPort))}
		for _, port := range s.Ports(i) {
			m.rules = append(m.rules, s.rewrites(port.Dial, port.Target))
		}
		all = append(all, m)
		masq.rules = append(masq.rules, []nft.Match{nft.Marked(hostPortMark), to(server)})
	}
	if s.path.Spec.To == mode.ToLoopback || s.path.Spec.From == mode.FromContainer {
		all = append(all, masq)
	}
	rewritten, err := s.meter(all)
	if err != nil {
		return err
	}
	s.Give(mode.HopDNAT, rewritten[:len(s.Dial)]...)
	s.Give(mode.HopSNAT, rewritten[len(s.Dial):]...)
	if s.path.Spec.From == mode.FromContainer && s.switchesRewritten() {
		s.GiveAt(mode.HopBridge, func(at recipe.At) []path.Hop {
			if at.Before(mode.HopDNAT) {
				return nil
			}
			return s.crossed(at)
		})
	}
	return s.placeClients(s.plainClients)
}

// switchesRewritten reports whether rules see bridged frames. If so, rewritten frames are switched
// to the server's port; otherwise the machine routes them back to the bridge.
func (s *site) switchesRewritten() bool {
	if t, ok := s.path.Spec.Tune.Get(mode.BridgeNF); ok {
		return t.Value != "off"
	}
	key, value := bridgeNF, ""
	if s.dual() {
		key = bridgeNF6
	}
	err := s.engine.ns.Do(func() (err error) { value, err = sysctl.Get(key); return err })
	return err == nil && (value == "1" || s.engine.exempting())
}

func to(a netip.Addr) nft.Match { return nft.Dst(single(a)) }

// servers returns the servers' addresses. They distinguish the names of several paths' hops.
func (s *site) servers() string {
	var all []string
	for _, b := range s.Servers {
		all = append(all, b.Addr().String())
	}
	return strings.Join(all, ", ")
}

func (s *site) rewrites(dialled, server netip.AddrPort) []nft.Match {
	port := nft.TCPDport(server.Port())
	if s.path.Spec.UDP {
		port = nft.UDPDport(server.Port())
	}
	return []nft.Match{port, nft.Dialled(dialled), to(server.Addr())}
}

// guardRewritten adds guards against rules that rewrite the connections.
func (s *site) guardRewritten() error {
	m := metered{kind: mode.HopDNAT, name: "nat to " + s.servers(), guards: true}
	for _, b := range s.Servers {
		m.rules = append(m.rules, []nft.Match{nft.Rewritten(), to(b.Addr())},
			[]nft.Match{nft.Marked(hostPortMark), to(b.Addr())})
	}
	guard, err := s.meter([]metered{m})
	s.path.Guards = append(s.path.Guards, guard...)
	return err
}

// leaving returns the hop that counts connections out of the network. Podman rewrites their source
// address.
func (s *site) leaving() (path.Hop, error) {
	subnet := s.network.subnet
	if s.six() {
		subnet = s.network.subnet6
	}
	hops, err := s.meter([]metered{{kind: mode.HopSNAT,
		name:  fmt.Sprintf("nat from %s, not to %s", subnet, s.network.bridge),
		rules: [][]nft.Match{{nft.Src(subnet), nft.NotOut(s.network.bridge)}}}})
	if err != nil {
		return path.Hop{}, err
	}
	return hops[0], nil
}

// metered describes a hop, or with guards a guard, that counts the connections that match any of
// its rules.
type metered struct {
	kind    mode.HopKind
	name    string
	guards  bool
	clients []int
	rules   [][]nft.Match
}

func (s *site) meter(all []metered) ([]path.Hop, error) {
	family, of := nft.IPv4, ""
	if s.six() {
		family, of = nft.IPv6, "ip6 "
	}
	var rules [][]nft.Match
	for _, m := range all {
		rules = append(rules, m.rules...)
	}
	var meter *nft.Meter
	err := s.engine.ns.Do(func() (err error) {
		meter, err = nft.NewMeter(family, s.name("table"), rules)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.path.Undo.Push("remove the counting table", meter.Close)
	var out []path.Hop
	first := 0
	for _, m := range all {
		from, to := first, first+len(m.rules)
		first = to
		h := path.Hop{Kind: m.kind, Name: of + m.name, Where: thisMachine, Expect: path.Matches,
			Clients: m.clients, Read: func() (c sample.Counters, err error) {
				var counts []uint64
				err = s.engine.ns.Do(func() (err error) { counts, err = meter.Counts(); return err })
				if err == nil && len(counts) < to {
					err = errNoRule
				}
				if err != nil {
					return c, err
				}
				for _, n := range counts[from:to] {
					c.Hits += n
				}
				return c, nil
			}}
		if m.guards {
			h = local.Unused(h)
		}
		out = append(out, h)
	}
	return out, nil
}
