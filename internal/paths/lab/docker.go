package lab

import (
	"net/netip"
	"slices"
	"strconv"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// rulesOf maps the values of Lab.Engine to the engines whose rules and settings this file and
// nftables.go reproduce. A test in internal/paths/docker compares them with those of real engines.
var rulesOf = map[string]string{
	mode.Engine28: "Docker Engine 28.5.2",
	mode.Engine29: "Docker Engine 29.8",
	mode.NFTables: "Docker Engine 29.8 with nftables",
}

const (
	tagPublish   = "publish" // DNAT of the published port
	tagLocalMasq = "local-masq"
	tagMasq      = "masq"
	tagLink      = "link"
)

type daemon struct {
	engine     string // "" in namespaces without an engine
	family     nft.Family
	noIPTables bool // "iptables": false
	noProxy    bool // "userland-proxy": false
	noICC      bool // "icc": false, for the default network
	// rootless is the address in the engine's network that RootlessKit dials; invalid: the engine
	// is not rootless.
	rootless  netip.Addr
	udp       bool // published, exposed and linked ports are UDP
	links     []pair
	others    []netip.Prefix // unlinked containers on the default network
	published []published
	ipv6      bool // "ipv6": true, for the default network
	networks  []dockerNet
	aliases   []alias
	encrypted bool
	ingress   []published // in the order of their services
	// foreign lists devices that are not Docker's. The administrator accepts their packets in
	// DOCKER-USER: where these packets are routed, or br_netfilter is loaded, Docker's FORWARD
	// policy would drop them.
	foreign []string
}

type dockerNet struct {
	network
	ipv6       bool        // in addition to IPv4
	routed     bool        // gateway_mode_ipv4=routed and gateway_mode_ipv6=routed
	published  []published // in the order of their containers' starts
	containers []netip.Prefix
}

// withOthers returns the network with count more containers, started earlier, that publish a port
// each.
func (n dockerNet) withOthers(count int) dockerNet {
	var ports []published
	var containers []netip.Prefix
	for i := range count {
		a := n.subnet.Addr().As4()
		a[2], a[3] = byte(1+i/256), byte(i)
		addr := netip.AddrFrom4(a)
		ports = append(ports, published{uint16(otherPorts + i), netip.AddrPortFrom(addr, serverPort),
			true})
		containers = append(containers, single(addr))
	}
	n.published, n.containers = append(ports, n.published...), append(containers, n.containers...)
	return n
}

const otherPorts = 20000

type published struct {
	port  uint16
	to    netip.AddrPort
	other bool // not the path's
}

type pair struct {
	client netip.Addr
	server netip.AddrPort
}

func (s *site) install(m *hostMachine, d daemon) error {
	d.engine, d.udp = s.rules(), s.path.Spec.UDP
	d.ipv6 = s.dual() && (s.path.Spec.Mode == mode.BridgeDefault ||
		s.path.Spec.Mode == mode.PublishDefault)
	d.networks = slices.Clone(d.networks)
	for i := range d.networks {
		d.networks[i].ipv6 = s.dual()
	}
	if m == s.engine {
		s.addOthers(&d)
	}
	s.path.Facts["rules"] = rulesOf[d.engine]
	if d.noIPTables {
		s.path.Facts["rules"] = `none ("iptables": false)`
	}
	if err := m.ns.Do(func() error { return sysctl.Set(ipForward, "1") }); err != nil {
		return err
	}
	if d.noICC { // as Docker does, so that rules see bridged frames
		if err := m.ns.Do(func() error { return sysctl.Set(bridgeNF, "1") }); err != nil {
			return err
		}
	}
	for _, n := range d.all() {
		err := m.ns.Do(func() error {
			if err := link.AddBridge(n.bridge); err != nil {
				return err
			}
			if err := link.AddAddr(n.bridge, n.gateway()); err != nil {
				return err
			}
			if n.ipv6 {
				if err := bridge6(n.network); err != nil {
					return err
				}
			}
			if !d.noProxy {
				return nil
			}
			return sysctl.Set("net.ipv4.conf."+n.bridge+".route_localnet", "1")
		})
		if err != nil {
			return err
		}
	}
	if d.noIPTables {
		return nil
	}
	rules, maps := d.rules()
	rules = d.withAliases(d.withMesh(append(rules, d.encryption()...)))
	if recipe.Dual(s.path.Spec) {
		six, maps6 := d.six().rules()
		rules, maps = append(rules, six...), append(maps, maps6...)
	}
	m.rules = rules
	return m.ns.Do(func() error { return nft.Apply(rules, maps...) })
}

// addOthers adds the other published ports to the path's network, or to the default one.
func (s *site) addOthers(d *daemon) {
	count := s.otherPorts()
	if count == 0 {
		return
	}
	s.path.Facts["other published ports"] = strconv.Itoa(count)
	for i, n := range d.networks {
		if n.bridge == s.home.bridge && !n.routed {
			d.networks[i] = n.withOthers(count)
			return
		}
	}
	def := dockerNet{network: docker0, published: d.published, containers: d.others}.withOthers(count)
	d.published, d.others = def.published, def.containers
}

// rules returns the engine's rules for one family.
func (d daemon) rules() ([]nft.Chain, []nft.Map) {
	if d.engine == mode.NFTables {
		return d.bridges()
	}
	return slices.Concat(d.nat(), d.filter(), d.raw()), nil
}

func (d daemon) all() []dockerNet {
	if d.family == nft.IPv6 && !d.ipv6 {
		return d.networks
	}
	def := dockerNet{network: docker0, ipv6: d.ipv6, containers: slices.Clone(d.others),
		published: d.published}
	for _, l := range d.links {
		if server := single(l.server.Addr()); !slices.Contains(def.containers, server) {
			def.containers = append(def.containers, server)
		}
	}
	for _, l := range d.links { // clients start after the servers
		if client := single(l.client); !slices.Contains(def.containers, client) {
			def.containers = append(def.containers, client)
		}
	}
	if d.family == nft.IPv6 {
		def = def.six()
	}
	return append([]dockerNet{def}, d.networks...)
}

// newest returns the networks, newest first: Docker inserts rules at the top.
func (d daemon) newest() []dockerNet {
	all := slices.Clone(d.all())
	slices.Reverse(all)
	return all
}

func rule(v nft.Verdict, m ...nft.Match) nft.Rule { return nft.Rule{Match: m, Verdict: v} }
func tagged(tag string, v nft.Verdict, m ...nft.Match) nft.Rule {
	return nft.Rule{Match: m, Verdict: v, Tag: tag}
}

func (d daemon) nat() []nft.Chain {
	var docker, postrouting, hairpin, dnat []nft.Rule
	for _, n := range d.newest() {
		if !d.noProxy && d.engine == mode.Engine28 {
			docker = append(docker, rule(nft.Return(), nft.In(n.bridge)))
		}
		if n.routed {
			continue
		}
		if d.noProxy {
			postrouting = append(postrouting, tagged(
				tagLocalMasq+tagOf(n), nft.Masquerade(), nft.Out(n.bridge), nft.SrcLocal()))
		}
		postrouting = append(postrouting, tagged(
			tagMasq+tagOf(n), nft.Masquerade(), nft.NotOut(n.bridge), nft.Src(n.subnet)))
		hairpin, dnat = append(hairpin, d.hairpin(n)...), append(dnat, d.dnat(n)...)
	}
	chains := []nft.Chain{
		{Family: d.family, Table: "nat", Name: "DOCKER", Rules: append(docker, dnat...)},
		{Family: d.family, Table: "nat", Name: "PREROUTING", Hook: nft.Prerouting,
			Rules: []nft.Rule{
				rule(nft.Jump("DOCKER"), nft.DstLocal())}},
		{Family: d.family, Table: "nat", Name: "OUTPUT", Hook: nft.Output, Rules: []nft.Rule{
			rule(nft.Jump("DOCKER"), d.fromMachine()...)}},
	}
	// iptables creates a built-in chain only when it adds the first rule.
	if rules := append(postrouting, hairpin...); len(rules) > 0 {
		chains = append(chains, nft.Chain{Family: d.family, Table: "nat", Name: "POSTROUTING",
			Hook: nft.Postrouting, Rules: rules})
	}
	return chains
}

// fromMachine matches the machine's own packets that DNAT of published ports sees.
func (d daemon) fromMachine() []nft.Match {
	switch {
	case d.noProxy:
		return []nft.Match{nft.DstLocal()}
	case d.family == nft.IPv6:
		return []nft.Match{nft.NotDst(single(loopback6)), nft.DstLocal()}
	}
	return []nft.Match{nft.NotDst(netip.PrefixFrom(loopback, 8).Masked()), nft.DstLocal()}
}

// dnat returns the rules of the network's published ports.
func (d daemon) dnat(n dockerNet) (rules []nft.Rule) {
	if n.routed {
		return nil
	}
	own := 0
	for _, p := range n.published {
		match := []nft.Match{d.dport(p.port)}
		if d.rootless.IsValid() {
			match = append([]nft.Match{nft.Dst(single(d.rootless))}, match...)
		}
		if d.family == nft.IPv6 {
			match = append([]nft.Match{nft.NotSrc(linkLocal)}, match...)
		}
		if !d.noProxy {
			match = append([]nft.Match{nft.NotIn(n.bridge)}, match...)
		}
		if p.other {
			rules = append(rules, rule(nft.DNAT(p.to), match...))
			continue
		}
		rules = append(rules, tagged(numbered(tagPublish, own), nft.DNAT(p.to), match...))
		own++
	}
	return rules
}

// hairpin returns the rules for containers that dial their own published ports.
func (d daemon) hairpin(n dockerNet) (rules []nft.Rule) {
	if !d.noProxy || n.routed {
		return nil
	}
	for _, p := range n.published {
		self := single(p.to.Addr())
		rules = append(rules, rule(nft.Masquerade(), nft.Src(self), nft.Dst(self),
			d.dport(p.to.Port())))
	}
	return rules
}

func numbered(tag string, i int) string {
	if i == 0 {
		return tag
	}
	return tag + strconv.Itoa(i+1)
}

func tagOf(n dockerNet) string {
	if n.bridge == docker0.bridge {
		return "-default"
	}
	return ""
}

func (d daemon) icmp() nft.Match {
	if d.family == nft.IPv6 {
		return nft.ICMPv6()
	}
	return nft.ICMP()
}

func (d daemon) filter() []nft.Chain {
	var (
		docker, inner         []nft.Rule // rules inserted into and appended to chain DOCKER
		toBridge, established []nft.Rule
		user, from            []nft.Rule
	)
	for _, n := range d.all() {
		b := n.bridge
		for _, p := range slices.Backward(n.published) { // each rule was inserted at the top
			docker = append(docker, rule(nft.Accept(), nft.NotIn(b), nft.Out(b),
				nft.Dst(single(p.to.Addr())), d.dport(p.to.Port())))
		}
		if n.routed {
			inner = append(inner, rule(nft.Accept(), nft.Out(b), d.icmp()))
		}
		inner = append(inner, rule(nft.Drop(), nft.NotIn(b), nft.Out(b)))
		toBridge = append(toBridge, rule(nft.Jump("DOCKER"), nft.Out(b)))
		established = append(established, rule(nft.Accept(), nft.Out(b), nft.Established()))
		if d.noICC && b == docker0.bridge || b == gwbridge.bridge {
			from = append(from, rule(nft.Drop(), nft.In(b), nft.Out(b)),
				rule(nft.Accept(), nft.In(b), nft.NotOut(b)))
		} else {
			from = append(from, rule(nft.Accept(), nft.In(b)))
		}
	}
	inner = append(inner, d.linkRules()...)
	for _, dev := range d.foreign {
		user = append(user, rule(nft.Accept(), nft.In(dev)), rule(nft.Accept(), nft.Out(dev)))
	}
	isolation, between := d.isolation()
	forward := append([]nft.Rule{rule(nft.Jump("DOCKER-CT")), rule(nft.Jump(isolation)),
		rule(nft.Jump("DOCKER-BRIDGE"))}, from...)
	return append(between,
		nft.Chain{Family: d.family, Table: "filter", Name: "DOCKER",
			Rules: append(docker, inner...)},
		nft.Chain{Family: d.family, Table: "filter", Name: "DOCKER-BRIDGE", Rules: toBridge},
		nft.Chain{Family: d.family, Table: "filter", Name: "DOCKER-CT", Rules: established},
		nft.Chain{Family: d.family, Table: "filter", Name: "DOCKER-USER", Rules: user},
		nft.Chain{Family: d.family, Table: "filter", Name: "DOCKER-FORWARD", Rules: forward},
		nft.Chain{Family: d.family, Table: "filter", Name: "FORWARD", Hook: nft.Forward,
			Drop: len(d.all()) > 0, Rules: []nft.Rule{
				rule(nft.Jump("DOCKER-USER")), rule(nft.Jump("DOCKER-FORWARD"))}})
}

// isolation returns the chains that keep networks apart, the first of them by name. Engine 29 has
// one, whose rules are those of internal networks.
func (d daemon) isolation() (first string, chains []nft.Chain) {
	if d.engine != mode.Engine28 {
		const internal = "DOCKER-INTERNAL"
		return internal, []nft.Chain{{Family: d.family, Table: "filter", Name: internal}}
	}
	const stage1, stage2 = "DOCKER-ISOLATION-STAGE-1", "DOCKER-ISOLATION-STAGE-2"
	var routed, leaving, drop []nft.Rule
	for _, n := range d.newest() {
		drop = append(drop, rule(nft.Drop(), nft.Out(n.bridge)))
		if n.routed {
			routed = append(routed, rule(nft.Accept(), nft.In(n.bridge), nft.Established()),
				rule(nft.Return(), nft.Out(n.bridge)))
		}
	}
	for _, n := range d.all() {
		leaving = append(leaving, rule(nft.Jump(stage2), nft.In(n.bridge), nft.NotOut(n.bridge)))
	}
	return stage1, []nft.Chain{
		{Family: d.family, Table: "filter", Name: stage2, Rules: drop},
		{Family: d.family, Table: "filter", Name: stage1, Rules: append(routed, leaving...)}}
}

// linkRules returns the rules of legacy links between containers.
func (d daemon) linkRules() (rules []nft.Rule) {
	b := docker0.bridge
	for i, l := range d.links {
		from, to := nft.Src(single(l.client)), nft.Dst(single(l.server.Addr()))
		answer, back := nft.Src(single(l.server.Addr())), nft.Dst(single(l.client))
		port, tag := l.server.Port(), numbered(tagLink, i)
		if d.engine == mode.NFTables {
			rules = append(rules, tagged(tag, nft.Accept(), from, to, d.dport(port)),
				rule(nft.Accept(), answer, d.sport(port), back))
			continue
		}
		rules = append(rules,
			tagged(tag, nft.Accept(), nft.In(b), nft.Out(b), from, to, d.dport(port)),
			rule(nft.Accept(), nft.In(b), nft.Out(b), answer, back, d.sport(port)))
	}
	return rules
}

// raw returns the chain that drops packets from other devices to containers' addresses.
func (d daemon) raw() []nft.Chain {
	rules := d.direct()
	if rules == nil {
		return nil
	}
	return []nft.Chain{{Family: d.family, Table: "raw", Name: "PREROUTING", Hook: nft.Prerouting,
		Rules: rules}}
}

func (d daemon) direct() (rules []nft.Rule) {
	for _, n := range d.all() {
		for _, c := range n.containers {
			match := []nft.Match{nft.NotIn(n.bridge), nft.Dst(single(c.Addr()))}
			if d.engine == mode.NFTables {
				slices.Reverse(match)
			}
			if !n.routed {
				rules = append(rules, rule(nft.Drop(), match...))
			}
		}
	}
	return rules
}
