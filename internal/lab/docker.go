package lab

import (
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/path"
)

// rulesRead names the source of the rules in this file: `iptables-save` and
// `nft list ruleset` (iptables-nft 1.8.9) of a running Docker Engine with one
// user-defined network and one published port, and the kernel settings that
// it changed.
const rulesRead = "Docker Engine 28.5.2"

// Tags of the rules that the witness reads.
const (
	tagPublish   = "publish"    // DNAT of the published port
	tagLocalMasq = "local-masq" // the machine's own address becomes the bridge's
	tagMasq      = "masq"       // containers' traffic to the outside
)

// daemon is how dockerd is configured and what it runs.
type daemon struct {
	noIPTables bool           // "iptables": false
	noProxy    bool           // "userland-proxy": false
	publish    netip.AddrPort // a container's published port; invalid: none
	containers []netip.Prefix // on the user-defined network
}

// install puts on a machine what the daemon puts there: forwarding, two
// bridges, the rules. It runs in the machine's namespace and before the
// containers are made.
func (d daemon) install(p *path.Path) error {
	p.Facts["rules"] = rulesRead
	if d.noIPTables {
		p.Facts["rules"] = `none ("iptables": false)`
	}
	if err := sysctl.Set(ipForward, "1"); err != nil {
		return err
	}
	for _, b := range []struct {
		name string
		addr netip.Prefix
	}{{docker0, defaultGate}, {bridgeA, gateway}} {
		if err := link.AddBridge(b.name); err != nil {
			return err
		}
		if err := link.AddAddr(b.name, b.addr); err != nil {
			return err
		}
		if d.noProxy {
			if err := sysctl.Set("net.ipv4.conf."+b.name+".route_localnet", "1"); err != nil {
				return err
			}
		}
	}
	if d.noIPTables {
		return nil
	}
	return nft.Apply(append(d.nat(), append(d.filter(), d.raw()...)...))
}

func (d daemon) nat() []nft.Chain {
	post := func(b string, n netip.Prefix, local, masq string) []nft.Rule {
		var out []nft.Rule
		if d.noProxy {
			out = append(out, nft.Rule{Match: []nft.Match{nft.Out(b), nft.SrcLocal()}, Verdict: nft.Masquerade(), Tag: local})
		}
		return append(out, nft.Rule{Match: []nft.Match{nft.NotOut(b), nft.Src(n)}, Verdict: nft.Masquerade(), Tag: masq})
	}
	postrouting := append(post(bridgeA, subnet, tagLocalMasq, tagMasq), post(docker0, defaultNet, "", "")...)

	var docker []nft.Rule
	output := []nft.Match{nft.DstLocal()}
	if !d.noProxy {
		output = []nft.Match{nft.NotDst(netip.PrefixFrom(loopback, 8).Masked()), nft.DstLocal()}
		docker = append(docker,
			nft.Rule{Match: []nft.Match{nft.In(bridgeA)}, Verdict: nft.Return()},
			nft.Rule{Match: []nft.Match{nft.In(docker0)}, Verdict: nft.Return()})
	}
	if d.publish.IsValid() {
		match := []nft.Match{nft.TCPDport(publishedPort)}
		if !d.noProxy {
			match = append([]nft.Match{nft.NotIn(bridgeA)}, match...)
		} else {
			self := netip.PrefixFrom(d.publish.Addr(), 32)
			postrouting = append(postrouting, nft.Rule{
				Match: []nft.Match{nft.Src(self), nft.Dst(self), nft.TCPDport(d.publish.Port())}, Verdict: nft.Masquerade()})
		}
		docker = append(docker, nft.Rule{Match: match, Verdict: nft.DNAT(d.publish), Tag: tagPublish})
	}
	return []nft.Chain{
		{Table: "nat", Name: "DOCKER", Rules: docker},
		{Table: "nat", Name: "PREROUTING", Hook: nft.Prerouting, Rules: []nft.Rule{
			{Match: []nft.Match{nft.DstLocal()}, Verdict: nft.Jump("DOCKER")}}},
		{Table: "nat", Name: "OUTPUT", Hook: nft.Output, Rules: []nft.Rule{
			{Match: output, Verdict: nft.Jump("DOCKER")}}},
		{Table: "nat", Name: "POSTROUTING", Hook: nft.Postrouting, Rules: postrouting},
	}
}

func (d daemon) filter() []nft.Chain {
	jump := func(chain string, m ...nft.Match) nft.Rule {
		return nft.Rule{Match: m, Verdict: nft.Jump(chain)}
	}
	accept := func(m ...nft.Match) nft.Rule { return nft.Rule{Match: m, Verdict: nft.Accept()} }
	drop := func(m ...nft.Match) nft.Rule { return nft.Rule{Match: m, Verdict: nft.Drop()} }
	var docker []nft.Rule
	if d.publish.IsValid() {
		docker = append(docker, accept(nft.NotIn(bridgeA), nft.Out(bridgeA),
			nft.Dst(netip.PrefixFrom(d.publish.Addr(), 32)), nft.TCPDport(d.publish.Port())))
	}
	docker = append(docker,
		drop(nft.NotIn(docker0), nft.Out(docker0)),
		drop(nft.NotIn(bridgeA), nft.Out(bridgeA)))
	return []nft.Chain{
		{Table: "filter", Name: "DOCKER", Rules: docker},
		{Table: "filter", Name: "DOCKER-BRIDGE", Rules: []nft.Rule{
			jump("DOCKER", nft.Out(docker0)), jump("DOCKER", nft.Out(bridgeA))}},
		{Table: "filter", Name: "DOCKER-CT", Rules: []nft.Rule{
			accept(nft.Out(docker0), nft.Established()), accept(nft.Out(bridgeA), nft.Established())}},
		{Table: "filter", Name: "DOCKER-ISOLATION-STAGE-2", Rules: []nft.Rule{
			drop(nft.Out(bridgeA)), drop(nft.Out(docker0))}},
		{Table: "filter", Name: "DOCKER-ISOLATION-STAGE-1", Rules: []nft.Rule{
			jump("DOCKER-ISOLATION-STAGE-2", nft.In(docker0), nft.NotOut(docker0)),
			jump("DOCKER-ISOLATION-STAGE-2", nft.In(bridgeA), nft.NotOut(bridgeA))}},
		{Table: "filter", Name: "DOCKER-USER"},
		{Table: "filter", Name: "DOCKER-FORWARD", Rules: []nft.Rule{
			jump("DOCKER-CT"), jump("DOCKER-ISOLATION-STAGE-1"), jump("DOCKER-BRIDGE"),
			accept(nft.In(docker0)), accept(nft.In(bridgeA))}},
		{Table: "filter", Name: "FORWARD", Hook: nft.Forward, Drop: true, Rules: []nft.Rule{
			jump("DOCKER-USER"), jump("DOCKER-FORWARD")}},
	}
}

// raw closes the way to containers' addresses from other devices.
func (d daemon) raw() []nft.Chain {
	var rules []nft.Rule
	for _, c := range d.containers {
		rules = append(rules, nft.Rule{
			Match: []nft.Match{nft.NotIn(bridgeA), nft.Dst(netip.PrefixFrom(c.Addr(), 32))}, Verdict: nft.Drop()})
	}
	return []nft.Chain{{Table: "raw", Name: "PREROUTING", Hook: nft.Prerouting, Rules: rules}}
}
