package lab

import (
	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// device is a network device of a hop.
type device = local.TunedDevice

// madeOf records a hop's devices, for tunes.
func (s *site) madeOf(h path.Hop, devices ...device) path.Hop { return s.tuned.MadeOf(h, devices...) }

// loHop returns the hop of a namespace's loopback device.
func (s *site) loHop(ns *space, where string) path.Hop {
	return s.madeOf(local.LoopbackHop(ns, where), device{Space: ns, Name: "lo"})
}

// wireHop returns the hop of A's end of the wire.
func (s *site) wireHop() path.Hop {
	return path.Hop{Kind: mode.HopWire, Name: wireName, Where: s.a.name, Read: local.Device(s.a.ns, wireName, true)}
}

// Hop returns the hop of the container's own device.
func (c *container) Hop(toServer bool) path.Hop {
	devices := []device{{Space: c.ns, Name: inside, Inside: true}}
	if c.port != "" {
		devices = append(devices, device{Space: c.portNS, Name: c.port})
	}
	return c.site.madeOf(local.ContainerHop(c.kind, c.ns, c.name, inside, c.port, toServer), devices...)
}

// bridgeHop returns the hop of a bridge as its machine's own device.
func (s *site) bridgeHop(m *machine, bridge string, toServer bool) path.Hop {
	return s.madeOf(local.BridgeHop(m.ns, m.name, bridge, toServer), device{Space: m.ns, Name: bridge})
}

// bridgeLeg returns the hop of the network's bridge on machine A, to a proxy or from it.
func (s *site) bridgeLeg(leg string) path.Hop {
	return s.madeOf(local.BridgeLegHop(s.a.ns, s.a.name, s.home.bridge, leg), device{Space: s.a.ns, Name: s.home.bridge})
}

// switchedHop returns the hop of a bridge as a switch between ports.
func (s *site) switchedHop(ns *space, where, bridge string, clientPorts, serverPorts []string) path.Hop {
	sent := func(ports []string) local.Reader {
		var all []local.Reader
		for _, p := range ports {
			all = append(all, local.Device(ns, p, false))
		}
		return local.Sum(all...)
	}
	return s.madeOf(local.SwitchHop(where, bridge, sent(clientPorts), sent(serverPorts)), device{Space: ns, Name: bridge})
}

// ruleHop returns the hop of a machine's rule, of the family that the path's packets have there.
func (s *site) ruleHop(m *machine, kind mode.HopKind, table, chain, tag string, e path.Expect) path.Hop {
	return ruleOf(s.family(), m, kind, table, chain, tag, e)
}

func ruleOf(family nft.Family, m *machine, kind mode.HopKind, table, chain, tag string, e path.Expect) path.Hop {
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

// noNAT returns the rule that a path without NAT must not hit.
func (s *site) noNAT() path.Hop {
	return s.ruleHop(s.a, mode.HopSNAT, "nat", "POSTROUTING", s.homeTag(tagMasq), path.Untouched)
}

// homeTag returns the tag of the servers' network's rule of a kind.
func (s *site) homeTag(tag string) string { return tag + tagOf(dockerNet{network: s.home}) }

// noDefaultNAT returns the only rule that could rewrite packets on a machine whose Docker has only
// the default network: the path must not hit it.
func (s *site) noDefaultNAT() path.Hop {
	if s.family() == nft.IPv6 && s.path.Spec.Mode == mode.Routed {
		return ruleOf(nft.IPv4, s.a, mode.HopSNAT, "nat", "POSTROUTING", tagMasq+"-default", path.Untouched)
	}
	return s.ruleHop(s.a, mode.HopSNAT, "nat", "POSTROUTING", tagMasq+"-default", path.Untouched)
}
