package lab

import (
	"net/netip"
	"slices"
	"strconv"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

const firstAlias = 100

const (
	tagAlias     = "alias"
	tagAliasSNAT = "alias-snat"
)

type alias struct{ addr, container netip.Addr }

// natAlias follows "Giving Docker/LXC containers a routable IP address" (blog.codeaholics.org,
// 2013). Each container gets a macvlan alias of the machine's card, and NAT of all ports between
// alias and container.
func (s *site) natAlias() error {
	s.home = docker0
	var d daemon
	for i, c := range s.addresses(docker0) {
		d.aliases = append(d.aliases, alias{outer.nth(firstAlias + i).Addr(), c.Addr()})
	}
	tid, err := s.a.ns.TID()
	if err != nil {
		return err
	}
	if err := s.a.ns.Do(func() error { return addAliases(tid, d.aliases) }); err != nil {
		return err
	}
	if err := s.dockerServers(d, false); err != nil {
		return err
	}
	for i := range s.Dial {
		s.Dial[i] = netip.AddrPortFrom(d.aliases[i].addr, serverPort)
	}
	s.path.Guards = []path.Hop{s.noNAT(), local.Unused(s.loHop(s.a.ns, s.a.name))}
	if err := s.placeClients(func() error { return s.dockerClients(d) }); err != nil {
		return err
	}
	s.Give(mode.HopDNAT, s.EachServer(func(i int) path.Hop {
		return s.ruleHop(s.a, mode.HopDNAT, "nat", aliasChain(i), tagAlias, path.Matches)
	})...)
	s.Give(mode.HopSNAT, s.EachClient(func(i int) path.Hop {
		return s.ruleHop(s.a, mode.HopSNAT, "nat", "POSTROUTING",
			numbered(tagAliasSNAT, len(s.Servers)+i), path.Matches)
	})...)
	return nil
}

func aliasChain(i int) string { return "BRIDGE-VIRTUAL" + strconv.Itoa(i) }

func addAliases(tid int, all []alias) error {
	for i, a := range all {
		name := "virtual" + strconv.Itoa(i)
		if err := link.AddMacvlan(link.SubInterface{Name: name, Parent: wireName, TID: tid}, "bridge"); err != nil {
			return err
		}
		if err := addressed(name, netip.PrefixFrom(a.addr, outer.subnet.Bits())); err != nil {
			return err
		}
	}
	return nil
}

// withAliases adds the administrator's rules for the aliases to Docker's chains, or to new ones
// where Docker has none of iptables'.
func (d daemon) withAliases(chains []nft.Chain) []nft.Chain {
	if d.engine == mode.NFTables && len(d.aliases) > 0 {
		chains = append(chains, nft.Chain{Table: "nat", Name: "PREROUTING", Hook: nft.Prerouting},
			nft.Chain{Table: "nat", Name: "OUTPUT", Hook: nft.Output},
			nft.Chain{Table: "nat", Name: "POSTROUTING", Hook: nft.Postrouting})
	}
	for i, a := range d.aliases {
		jump := rule(nft.Jump(aliasChain(i)), nft.Dst(single(a.addr)))
		snat := tagged(numbered(tagAliasSNAT, i), nft.SNAT(a.addr), nft.Src(single(a.container)))
		for k, c := range chains {
			switch {
			case c.Table != "nat":
			case c.Name == "PREROUTING", c.Name == "OUTPUT":
				chains[k].Rules = append(c.Rules, jump)
			case c.Name == "POSTROUTING":
				chains[k].Rules = slices.Insert(c.Rules, 0, snat)
			}
		}
		chains = append(chains, nft.Chain{Table: "nat", Name: aliasChain(i),
			Rules: []nft.Rule{tagged(tagAlias, nft.DNATAddr(a.container))}})
	}
	return chains
}
