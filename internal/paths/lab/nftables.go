package lab

import (
	"cmp"
	"fmt"
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// bridgesTable is the table of Docker Engine 29.8 with "firewall-backend": "nftables". Its chains
// at hooks are named after the tables and chains of iptables. Maps send a packet to the chains of
// its network; base chains and maps also exist in a family without networks.
const bridgesTable = "docker-bridges"

const (
	nftPublished = "nat-prerouting-and-output"

	toBridges   = "filter-forward-in"
	fromBridges = "filter-forward-out"
	natInto     = "nat-postrouting-in"
	natOutOf    = "nat-postrouting-out"
)

func ofBridge(chain, bridge string) string { return chain + "__" + bridge }

func byBridge(chain string) string { return chain + "-jumps" }

// bridges returns the chains and maps of Docker's nftables backend.
func (d daemon) bridges() ([]nft.Chain, []nft.Map) {
	base := func(like, name string, hook nft.Hook, rules ...nft.Rule) nft.Chain {
		return nft.Chain{Family: d.family, Table: bridgesTable, Name: like + "-" + name, Hook: hook,
			Like: like, Rules: rules}
	}
	jump := nft.Jump(nftPublished)
	published := nft.Chain{Family: d.family, Table: bridgesTable, Name: nftPublished}
	for _, n := range d.all() {
		published.Rules = append(published.Rules, d.dnat(n)...)
	}
	chains := []nft.Chain{
		base("filter", "FORWARD", nft.Forward, rule(nft.JumpByOut(byBridge(toBridges))),
			rule(nft.JumpByIn(byBridge(fromBridges)))),
		base("nat", "OUTPUT", nft.Output, rule(jump, d.fromMachine()...)),
		base("nat", "POSTROUTING", nft.Postrouting, rule(nft.JumpByIn(byBridge(natOutOf))),
			rule(nft.JumpByOut(byBridge(natInto)))),
		base("nat", "PREROUTING", nft.Prerouting, rule(jump, nft.DstLocal())),
		published,
		base("raw", "PREROUTING", nft.Prerouting, d.direct()...),
	}
	maps := make([]nft.Map, 0, 4)
	for _, kind := range []string{toBridges, fromBridges, natInto, natOutOf} {
		m := nft.Map{Family: d.family, Table: bridgesTable, Name: byBridge(kind)}
		for _, n := range d.newest() {
			name := ofBridge(kind, n.bridge)
			m.Jumps = append(m.Jumps, nft.Jumps{Device: n.bridge, Chain: name})
			chains = append(chains, nft.Chain{Family: d.family, Table: bridgesTable, Name: name,
				Rules: d.ofNetwork(kind, n)})
		}
		maps = append(maps, m)
	}
	return chains, maps
}

// ofNetwork returns the rules of one of the network's four chains.
func (d daemon) ofNetwork(kind string, n dockerNet) []nft.Rule {
	established := rule(nft.Accept(), nft.Established())
	switch kind {
	case toBridges:
		return append([]nft.Rule{established}, d.arriving(n)...)
	case fromBridges:
		return []nft.Rule{established, rule(nft.Accept())}
	case natOutOf:
		if n.routed {
			return nil
		}
		return []nft.Rule{tagged(tagMasq+tagOf(n), nft.Masquerade(), nft.NotOut(n.bridge),
			nft.Src(n.subnet))}
	}
	if !d.noProxy {
		return nil
	}
	rules := []nft.Rule{tagged(tagLocalMasq+tagOf(n), nft.Masquerade(), nft.SrcLocal())}
	return append(rules, d.hairpin(n)...)
}

// arriving returns the rules for new connections to the network.
func (d daemon) arriving(n dockerNet) (rules []nft.Rule) {
	if n.routed {
		icmp := nft.ProtocolICMP()
		if d.family == nft.IPv6 {
			icmp = nft.ICMPv6()
		}
		rules = append(rules, rule(nft.Accept(), icmp))
	}
	between := nft.Accept()
	if n.bridge == docker0.bridge {
		rules = append(rules, d.linkRules()...)
		if d.noICC {
			between = nft.Drop()
		}
	}
	rules = append(rules, rule(between, nft.In(n.bridge)))
	for _, p := range n.published {
		rules = append(rules, rule(nft.Accept(), nft.Dst(single(p.to.Addr())),
			d.dport(p.to.Port())))
	}
	return append(rules, rule(nft.Drop()))
}

// rules returns the engine whose rules the path's machines have. Those of later engines for the
// routing mesh have not been read.
func (s *site) rules() string {
	if s.path.Spec.Mode == mode.PublishIngress {
		return mode.Engine28
	}
	return s.lab.engineOf(s.path.Spec)
}

func (l *Lab) engineOf(s path.Spec) string {
	if t, ok := s.Tune.Get(mode.Engine); ok {
		return t.Value
	}
	return cmp.Or(l.Engine, mode.DefaultEngine)
}

func (s *site) otherPorts() int {
	if t, ok := s.path.Spec.Tune.Get(mode.Ports); ok {
		return t.Number()
	}
	return s.lab.Ports
}

// checkEngine returns why the path cannot have the engine or the ports it asks for, or nil.
func (l *Lab) checkEngine(s path.Spec) error {
	for _, k := range []mode.Key{mode.Engine, mode.Ports} {
		if t, ok := s.Tune.Get(k); ok && recipes[s.Mode].bare {
			return &machine.UnsupportedError{Missing: fmt.Sprintf(
				"%s=%s has no effect: the mode's machine has no Docker Engine", t.Key, t.Value),
				Remedy: "a mode of Docker's, such as " + string(mode.PublishNAT)}
		}
	}
	if l.engineOf(s) == mode.NFTables && recipes[s.Mode].swarm {
		return &machine.UnsupportedError{
			Missing: "Docker Engine 29 with nftables refuses to join a swarm, and " +
				string(s.Mode) + " needs one",
			Remedy: "--engine " + mode.Engine29}
	}
	return nil
}

var resolver = netip.AddrFrom4([4]byte{127, 0, 0, 11})

// Docker's DNS server listens on random ports. These are examples.
const (
	resolverTCP = 35407
	resolverUDP = 34009
)

// resolves adds Docker's NAT rules for DNS queries to the container. Docker has them in containers
// on all networks but the default one (Docker Engine 20.10.24 to 29.8). Because of them the kernel
// tracks each connection in the container.
func (c *container) resolves() error {
	rules := dnsRules()
	if c.site.rules() == mode.NFTables {
		rules = nftDNSRules()
	}
	if err := c.ns.Do(func() error { return nft.Apply(rules) }); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	return nil
}

func dnsRules() []nft.Chain {
	self := single(resolver)
	return []nft.Chain{
		{Table: "nat", Name: "DOCKER_OUTPUT", Rules: []nft.Rule{
			rule(dnsTo(resolverTCP), nft.Dst(self), nft.TCPDport(53)),
			rule(dnsTo(resolverUDP), nft.Dst(self), nft.UDPDport(53))}},
		{Table: "nat", Name: "OUTPUT", Hook: nft.Output, Rules: []nft.Rule{
			rule(nft.Jump("DOCKER_OUTPUT"), nft.Dst(self))}},
		{Table: "nat", Name: "DOCKER_POSTROUTING", Rules: []nft.Rule{
			rule(nft.SNATPort(53), nft.Src(self), nft.TCPSport(resolverTCP)),
			rule(nft.SNATPort(53), nft.Src(self), nft.UDPSport(resolverUDP))}},
		{Table: "nat", Name: "POSTROUTING", Hook: nft.Postrouting, Rules: []nft.Rule{
			rule(nft.Jump("DOCKER_POSTROUTING"), nft.Dst(self))}},
	}
}

func nftDNSRules() []nft.Chain {
	const table = "docker-dns"
	self := single(resolver)
	return []nft.Chain{
		{Table: table, Like: "nat", Name: "dns-dnat", Hook: nft.Output, Rules: []nft.Rule{
			rule(dnsTo(resolverUDP), nft.Dst(self), nft.UDPDport(53)),
			rule(dnsTo(resolverTCP), nft.Dst(self), nft.TCPDport(53))}},
		{Table: table, Like: "nat", Name: "dns-snat", Hook: nft.Postrouting, Rules: []nft.Rule{
			rule(nft.SNATPort(53), nft.Src(self), nft.UDPSport(resolverUDP)),
			rule(nft.SNATPort(53), nft.Src(self), nft.TCPSport(resolverTCP))}},
	}
}

func dnsTo(port uint16) nft.Verdict { return nft.DNAT(netip.AddrPortFrom(resolver, port)) }
