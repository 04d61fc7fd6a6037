package lab

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"

	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

type device = local.TunedDevice

// Hops returns the hops at a place of a route that every mode has in the same form.
func (s *site) Hops(at recipe.At) []path.Hop {
	switch at.Kind() {
	case mode.HopLoopback:
		return s.loopbacks(at)
	case mode.HopWire:
		return []path.Hop{s.wireHop()}
	case mode.HopBridge:
		return []path.Hop{s.crossed(at)}
	case mode.HopDNAT:
		return s.publishedRules()
	case mode.HopSNAT:
		return s.masquerade(at)
	case mode.HopAccept:
		return s.EachClient(func(i int) path.Hop {
			return s.portRule(mode.HopAccept, "filter", "DOCKER", tagLink, i, path.Matches)
		})
	}
	return nil
}

func (s *site) loopbacks(at recipe.At) []path.Hop {
	switch {
	case at.Last() && len(s.Servers) > 0:
		return s.EachServer(func(i int) path.Hop {
			return s.loHop(s.Servers[i].ns, s.Servers[i].name)
		})
	case at.First():
		return []path.Hop{s.loHop(s.a.ns, s.a.name)}
	}
	return []path.Hop{s.loHop(s.engine.ns, s.engine.name)}
}

func (s *site) crossed(at recipe.At) path.Hop {
	switch at.Crosses(s.away.bridge != "") {
	case recipe.Switched:
		return s.switchedHop(s.a.ns, s.a.name, s.home.bridge, ports(s.Clients), ports(s.Servers))
	case recipe.FirstLeg:
		return s.bridgeLeg("in")
	case recipe.SecondLeg:
		return s.bridgeLeg("out")
	case recipe.Leaving:
		m, n := s.clientsNetwork(at)
		return s.bridgeHop(m, n.bridge, false)
	}
	return s.bridgeHop(s.engine, s.home.bridge, true)
}

// clientsNetwork returns the network of clients in containers, and its machine.
func (s *site) clientsNetwork(at recipe.At) (*hostMachine, network) {
	m, n := s.engine, s.home
	if at.Away() {
		m = s.b
	}
	if s.away.bridge != "" {
		n = s.away
	}
	return m, n
}

// masquerade returns the hop of the rule that rewrites the source addresses of what leaves the
// clients' network, or of what the machine itself sends to a published port. Docker writes the
// latter rule only without docker-proxy.
func (s *site) masquerade(at recipe.At) []path.Hop {
	m, n, tag := s.engine, s.home, tagLocalMasq
	if at.Before(mode.HopWire) {
		tag = tagMasq
		m, n = s.clientsNetwork(at)
	} else if at.From == mode.FromContainer || s.preserved {
		return nil
	}
	tag += tagOf(dockerNet{network: n})
	if !m.has(s.family(), tag) {
		return nil
	}
	return []path.Hop{s.ruleHop(m, mode.HopSNAT, "nat", "POSTROUTING", tag, path.Matches)}
}

func (s *site) madeOf(h path.Hop, devices ...device) path.Hop {
	return s.tuned.MadeOf(h, devices...)
}

func (s *site) loHop(ns *space, where string) path.Hop {
	return s.madeOf(local.LoopbackHop(ns, where), device{Space: ns, Name: "lo"})
}

func (s *site) wireHop() path.Hop {
	return path.Hop{Kind: mode.HopWire, Name: wireName, Where: s.a.name,
		Read: local.Device(s.a.ns, wireName, !s.path.Spec.To.Outside())}
}

func (c *container) Hop(toServer bool) path.Hop {
	own := cmp.Or(c.device, inside)
	devices := []device{{Space: c.ns, Name: own, Inside: true}}
	if c.port != "" {
		devices = append(devices, device{Space: c.portNS, Name: c.port})
	}
	return c.site.madeOf(local.ContainerHop(c.kind, c.ns, c.name, own, c.port, toServer),
		devices...)
}

func (s *site) bridgeHop(m *hostMachine, bridge string, toServer bool) path.Hop {
	return s.madeOf(local.BridgeHop(m.ns, m.name, bridge, toServer),
		device{Space: m.ns, Name: bridge})
}

func (s *site) bridgeLeg(leg string) path.Hop {
	return s.madeOf(local.BridgeLegHop(s.a.ns, s.a.name, s.home.bridge, leg),
		device{Space: s.a.ns, Name: s.home.bridge})
}

func (s *site) switchedHop(ns *space, where, bridge string,
	clientPorts, serverPorts []string) path.Hop {
	sent := func(ports []string) local.Reader {
		var all []local.Reader
		for _, p := range ports {
			all = append(all, local.Device(ns, p, false))
		}
		return local.Sum(all...)
	}
	return s.madeOf(local.SwitchHop(where, bridge, sent(clientPorts), sent(serverPorts)),
		device{Space: ns, Name: bridge})
}

// ruleHop returns the hop of the rules with the tag. table and chain are iptables'; an engine that
// writes nftables has the rules elsewhere. Their family is the one that the path's packets have on
// the machine.
func (s *site) ruleHop(m *hostMachine, kind mode.HopKind, table, chain, tag string,
	e path.Expect) path.Hop {
	return ruleOf(s.family(), m, kind, table, chain, tag, e)
}

func ruleOf(family nft.Family, m *hostMachine, kind mode.HopKind, table, chain, tag string,
	e path.Expect) path.Hop {
	table, chain = m.find(family, table, chain, tag)
	name := table + " " + chain + " " + tag
	if family == nft.IPv6 {
		name = "ip6 " + name
	}
	return path.Hop{Kind: kind, Name: name, Where: m.name, Expect: e,
		Read: func() (out sample.Counters, err error) {
			err = m.ns.Do(func() error {
				n, err := nft.Hits(family, table, chain, tag)
				out.Hits = n.Packets
				return err
			})
			return out, err
		}}
}

// has reports whether Docker wrote a rule with the tag.
func (m *hostMachine) has(family nft.Family, tag string) bool {
	return slices.ContainsFunc(m.rules, func(c nft.Chain) bool {
		return c.Family == family && slices.ContainsFunc(c.Rules, func(r nft.Rule) bool {
			return r.Tag == tag
		})
	})
}

// find returns the table and the chain in which Docker wrote the rules with the tag, or the given
// ones if it wrote no nftables of its own.
func (m *hostMachine) find(family nft.Family, table, chain, tag string) (inTable, inChain string) {
	for _, c := range m.rules {
		if c.Table != bridgesTable || c.Family != family {
			continue
		}
		if slices.ContainsFunc(c.Rules, func(r nft.Rule) bool { return r.Tag == tag }) {
			return c.Table, c.Name
		}
	}
	return table, chain
}

func (s *site) noNAT() path.Hop {
	return s.ruleHop(s.engine, mode.HopSNAT, "nat", "POSTROUTING", s.homeTag(tagMasq), path.Untouched)
}

func (s *site) homeTag(tag string) string { return tag + tagOf(dockerNet{network: s.home}) }

func (s *site) noDefaultNAT() path.Hop {
	if s.family() == nft.IPv6 && s.path.Spec.Mode == mode.Routed {
		return ruleOf(nft.IPv4, s.a, mode.HopSNAT, "nat", "POSTROUTING", tagMasq+"-default",
			path.Untouched)
	}
	return s.ruleHop(s.a, mode.HopSNAT, "nat", "POSTROUTING", tagMasq+"-default", path.Untouched)
}

func (d daemon) dport(number uint16) nft.Match {
	if d.udp {
		return nft.UDPDport(number)
	}
	return nft.TCPDport(number)
}

func (d daemon) sport(number uint16) nft.Match {
	if d.udp {
		return nft.UDPSport(number)
	}
	return nft.TCPSport(number)
}

// firstPktinfo is the Docker Engine whose docker-proxy first answers UDP from the dialled address
// (moby/moby#48571). Earlier ones answer a container on the machine from the bridge's address,
// which the client's socket does not accept.
const firstPktinfo = 28

var majorVersion = regexp.MustCompile(` (\d+)\.`)

func (l *Lab) tryUDPProxy() error {
	file, name := l.findProxy()
	if file == "" {
		return nil
	}
	if m := majorVersion.FindStringSubmatch(name); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil && n >= firstPktinfo {
			return nil
		}
	}
	return &machine.UnsupportedError{
		Missing: fmt.Sprintf(
			"%s (%s) does not answer a container's datagrams from the dialled address, as no docker-proxy before Docker Engine %d does", name, file, firstPktinfo),
		Remedy: "--proxy own, or --proxy with the docker-proxy of a later Docker Engine",
	}
}

// Some programs use a second port and send its number to the other end. So the port must have the
// same number inside and outside of the container, and the path has one server.

func (s *site) ports(server netip.Addr, first uint16) []published {
	out := []published{{port: first, to: netip.AddrPortFrom(server, serverPort)}}
	if s.path.Spec.Second {
		out = append(out, published{port: secondPort,
			to: netip.AddrPortFrom(server, secondPort)})
	}
	return out
}

// portRule returns the hop of the rules for server i's port and for the second port.
func (s *site) portRule(kind mode.HopKind, table, chain, tag string, i int,
	e path.Expect) path.Hop {
	h := s.ruleHop(s.engine, kind, table, chain, numbered(tag, i), e)
	if !s.path.Spec.Second {
		return h
	}
	h.Read = local.Sum(h.Read, s.ruleHop(s.engine, kind, table, chain,
		numbered(tag, i+1), e).Read)
	return h
}
