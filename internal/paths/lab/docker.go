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

// rulesRead is the engine whose rules and settings this file reproduces. A test in
// internal/paths/docker compares them with those of real engines.
const rulesRead = "Docker Engine 28.5.2"

const (
	tagPublish   = "publish" // DNAT of the published port
	tagLocalMasq = "local-masq"
	tagMasq      = "masq"
	tagLink      = "link"
)

type daemon struct {
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

type published struct {
	port uint16
	to   netip.AddrPort
}

type pair struct {
	client netip.Addr
	server netip.AddrPort
}

func (s *site) install(m *hostMachine, d daemon) error {
	d.udp = s.path.Spec.UDP
	d.ipv6 = s.dual() && (s.path.Spec.Mode == mode.BridgeDefault ||
		s.path.Spec.Mode == mode.PublishDefault)
	d.networks = slices.Clone(d.networks)
	for i := range d.networks {
		d.networks[i].ipv6 = s.dual()
	}
	s.path.Facts["rules"] = rulesRead
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
	rules := d.withAliases(d.withMesh(slices.Concat(d.nat(), d.filter(), d.raw(), d.encryption())))
	if recipe.Dual(s.path.Spec) {
		six := d.six()
		rules = slices.Concat(rules, six.nat(), six.filter(), six.raw())
	}
	return m.ns.Do(func() error { return nft.Apply(rules) })
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
	output := []nft.Match{nft.DstLocal()}
	if !d.noProxy {
		own := netip.PrefixFrom(loopback, 8).Masked()
		if d.family == nft.IPv6 {
			own = single(loopback6)
		}
		output = []nft.Match{nft.NotDst(own), nft.DstLocal()}
	}
	for _, n := range d.newest() {
		if !d.noProxy {
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
		for i, p := range n.published {
			match := []nft.Match{d.dport(p.port)}
			if d.rootless.IsValid() {
				match = append([]nft.Match{nft.Dst(single(d.rootless))}, match...)
			}
			if d.family == nft.IPv6 {
				match = append([]nft.Match{nft.NotSrc(linkLocal)}, match...)
			}
			if d.noProxy {
				self := single(p.to.Addr())
				hairpin = append(hairpin, rule(nft.Masquerade(), nft.Src(self), nft.Dst(self),
					d.dport(p.to.Port())))
			} else {
				match = append([]nft.Match{nft.NotIn(n.bridge)}, match...)
			}
			dnat = append(dnat, tagged(numbered(tagPublish, i), nft.DNAT(p.to), match...))
		}
	}
	chains := []nft.Chain{
		{Family: d.family, Table: "nat", Name: "DOCKER", Rules: append(docker, dnat...)},
		{Family: d.family, Table: "nat", Name: "PREROUTING", Hook: nft.Prerouting,
			Rules: []nft.Rule{
				rule(nft.Jump("DOCKER"), nft.DstLocal())}},
		{Family: d.family, Table: "nat", Name: "OUTPUT", Hook: nft.Output, Rules: []nft.Rule{
			rule(nft.Jump("DOCKER"), output...)}},
	}
	// iptables creates a built-in chain only when it adds the first rule.
	if rules := append(postrouting, hairpin...); len(rules) > 0 {
		chains = append(chains, nft.Chain{Family: d.family, Table: "nat", Name: "POSTROUTING",
			Hook: nft.Postrouting, Rules: rules})
	}
	return chains
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
		routed, leaving, drop []nft.Rule
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
		leaving = append(leaving, rule(nft.Jump("DOCKER-ISOLATION-STAGE-2"), nft.In(b),
			nft.NotOut(b)))
		if d.noICC && b == docker0.bridge || b == gwbridge.bridge {
			from = append(from, rule(nft.Drop(), nft.In(b), nft.Out(b)),
				rule(nft.Accept(), nft.In(b), nft.NotOut(b)))
		} else {
			from = append(from, rule(nft.Accept(), nft.In(b)))
		}
	}
	for _, n := range d.newest() {
		drop = append(drop, rule(nft.Drop(), nft.Out(n.bridge)))
		if n.routed {
			routed = append(routed, rule(nft.Accept(), nft.In(n.bridge), nft.Established()),
				rule(nft.Return(), nft.Out(n.bridge)))
		}
	}
	inner = append(inner, d.linkRules()...)
	for _, dev := range d.foreign {
		user = append(user, rule(nft.Accept(), nft.In(dev)), rule(nft.Accept(), nft.Out(dev)))
	}
	forward := append([]nft.Rule{rule(nft.Jump("DOCKER-CT")),
		rule(nft.Jump("DOCKER-ISOLATION-STAGE-1")),
		rule(nft.Jump("DOCKER-BRIDGE"))}, from...)
	return []nft.Chain{
		{Family: d.family, Table: "filter", Name: "DOCKER", Rules: append(docker, inner...)},
		{Family: d.family, Table: "filter", Name: "DOCKER-BRIDGE", Rules: toBridge},
		{Family: d.family, Table: "filter", Name: "DOCKER-CT", Rules: established},
		{Family: d.family, Table: "filter", Name: "DOCKER-ISOLATION-STAGE-2", Rules: drop},
		{Family: d.family, Table: "filter", Name: "DOCKER-ISOLATION-STAGE-1",
			Rules: append(routed, leaving...)},
		{Family: d.family, Table: "filter", Name: "DOCKER-USER", Rules: user},
		{Family: d.family, Table: "filter", Name: "DOCKER-FORWARD", Rules: forward},
		{Family: d.family, Table: "filter", Name: "FORWARD", Hook: nft.Forward,
			Drop: len(d.all()) > 0, Rules: []nft.Rule{
				rule(nft.Jump("DOCKER-USER")), rule(nft.Jump("DOCKER-FORWARD"))}},
	}
}

// linkRules returns the rules of legacy links between containers.
func (d daemon) linkRules() (rules []nft.Rule) {
	for i, l := range d.links {
		client, server := single(l.client), single(l.server.Addr())
		b, port := docker0.bridge, l.server.Port()
		rules = append(rules,
			tagged(numbered(tagLink, i), nft.Accept(), nft.In(b), nft.Out(b), nft.Src(client),
				nft.Dst(server), d.dport(port)),
			rule(nft.Accept(), nft.In(b), nft.Out(b), nft.Src(server), nft.Dst(client),
				d.sport(port)))
	}
	return rules
}

// raw returns the rules that drop packets from other devices to containers' addresses.
func (d daemon) raw() []nft.Chain {
	var rules []nft.Rule
	for _, n := range d.all() {
		for _, c := range n.containers {
			if !n.routed {
				rules = append(rules, rule(nft.Drop(), nft.NotIn(n.bridge),
					nft.Dst(single(c.Addr()))))
			}
		}
	}
	if rules == nil {
		return nil
	}
	return []nft.Chain{{Family: d.family, Table: "raw", Name: "PREROUTING", Hook: nft.Prerouting,
		Rules: rules}}
}
