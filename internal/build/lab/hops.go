package lab

import (
	"github.com/bridgetoll/bridgetoll/internal/build/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/build/path"
	"github.com/bridgetoll/bridgetoll/internal/build/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// device is one network device that a hop is made of.
type device struct {
	ns   *space
	name string
	// inside says that it is a container's own.
	inside bool
	// setMTU sets the device's MTU if another program manages it; else nil.
	setMTU func(mtu int) error
}

// hopID tells a site's hops apart.
type hopID struct {
	kind        mode.HopKind
	name, where string
}

func idOf(h path.Hop) hopID { return hopID{h.Kind, h.Name, h.Where} }

// madeOf remembers the devices that a hop is made of, for tunes.
func (s *site) madeOf(h path.Hop, devices ...device) path.Hop {
	s.devices[idOf(h)] = devices
	return h
}

// loHop is a namespace's loopback device.
func (s *site) loHop(ns *space, where string) path.Hop {
	return s.madeOf(local.LoopbackHop(ns, where), device{ns: ns, name: "lo"})
}

// wireHop is A's end of the wire.
func (s *site) wireHop() path.Hop {
	return path.Hop{Kind: mode.HopWire, Name: wireName, Where: s.a.name, Read: local.Device(s.a.ns, wireName, true)}
}

// Hop is the container's own device.
func (c *container) Hop(toServer bool) path.Hop {
	devices := []device{{ns: c.ns, name: inside, inside: true}}
	if c.port != "" {
		devices = append(devices, device{ns: c.portNS, name: c.port})
	}
	return c.site.madeOf(local.ContainerHop(c.kind, c.ns, c.name, inside, c.port, toServer), devices...)
}

// bridgeHop is a bridge as its machine's own device.
func (s *site) bridgeHop(m *machine, bridge string, toServer bool) path.Hop {
	return s.madeOf(local.BridgeHop(m.ns, m.name, bridge, toServer), device{ns: m.ns, name: bridge})
}

// bridgeLeg is the network's bridge on machine A, up to a proxy or down from it.
func (s *site) bridgeLeg(leg string) path.Hop {
	return s.madeOf(local.BridgeLegHop(s.a.ns, s.a.name, tollNet.bridge, leg), device{ns: s.a.ns, name: tollNet.bridge})
}

// switchedHop is a bridge as a switch between ports.
func (s *site) switchedHop(ns *space, where, bridge string, clientPorts, serverPorts []string) path.Hop {
	sent := func(ports []string) local.Reader {
		var all []local.Reader
		for _, p := range ports {
			all = append(all, local.Device(ns, p, false))
		}
		return local.Sum(all...)
	}
	return s.madeOf(local.SwitchHop(where, bridge, sent(clientPorts), sent(serverPorts)), device{ns: ns, name: bridge})
}

// ruleHop is a rule of a machine.
func ruleHop(m *machine, kind mode.HopKind, table, chain, tag string, e path.Expect) path.Hop {
	return path.Hop{Kind: kind, Name: table + " " + chain + " " + tag, Where: m.name, Expect: e,
		Read: func() (out sample.Counters, err error) {
			err = m.ns.Do(func() error {
				n, err := nft.Hits(table, chain, tag)
				out.Hits = n.Packets
				return err
			})
			return out, err
		}}
}

// noNAT is the rule that a path without NAT must not hit.
func (s *site) noNAT() path.Hop {
	return ruleHop(s.a, mode.HopSNAT, "nat", "POSTROUTING", tagMasq, path.Untouched)
}

// noDefaultNAT is the only rule that could rewrite packets on a machine whose
// Docker has no network but the default one: the path must not hit it.
func (s *site) noDefaultNAT() path.Hop {
	return ruleHop(s.a, mode.HopSNAT, "nat", "POSTROUTING", tagMasq+"-default", path.Untouched)
}
