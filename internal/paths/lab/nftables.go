package lab

import (
	"cmp"
	"fmt"

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
