package lab

import (
	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/path"
	"github.com/bridgetoll/bridgetoll/internal/path/local"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// device is one network device that a hop is made of.
type device struct {
	ns   *space
	name string
	// setMTU sets the device's MTU if somebody else manages it; else nil.
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

// loHop is a namespace's loopback device, which counts both directions as
// one.
func (s *site) loHop(ns *space, where string) path.Hop {
	return s.madeOf(path.Hop{Kind: mode.HopLoopback, Name: "lo", Where: where, Expect: path.CarriesBoth,
		Read: local.OneWay(local.Device(ns, "lo", true))}, device{ns: ns, name: "lo"})
}

// wireHop is A's end of the wire.
func (s *site) wireHop() path.Hop {
	return path.Hop{Kind: mode.HopWire, Name: wireName, Where: s.a.name, Read: local.Device(s.a.ns, wireName, true)}
}

// hop is the container's own device.
func (s *site) hop(c *container, server bool) path.Hop {
	h := path.Hop{Kind: c.kind, Name: inside, Where: c.name, Read: local.Device(c.ns, inside, server)}
	devices := []device{{ns: c.ns, name: inside}}
	if c.port != "" {
		h.Name = c.port + "⇄" + inside
		devices = append(devices, device{ns: c.portNS, name: c.port})
	}
	return s.madeOf(h, devices...)
}

// bridgeHop is a bridge as its machine's own device: it counts what goes
// between the machine's stack and the containers.
func (s *site) bridgeHop(m *machine, bridge string, toServer bool) path.Hop {
	return s.madeOf(path.Hop{Kind: mode.HopBridge, Name: bridge, Where: m.name,
		Read: local.Device(m.ns, bridge, !toServer)}, device{ns: m.ns, name: bridge})
}

// switchedHop is a bridge as a switch: what it sent out of the ports towards
// the servers and out of those towards the clients. (A bridge's own counters
// do not count frames that it only forwards.)
func (s *site) switchedHop(ns *space, where, bridge string, clientPorts, serverPorts []string) path.Hop {
	return s.madeOf(path.Hop{Kind: mode.HopBridge, Name: bridge + " ports", Where: where,
		Read: local.SentBy(together(ns, serverPorts), together(ns, clientPorts))}, device{ns: ns, name: bridge})
}

// together adds up what devices count; what they send is forward.
func together(ns *space, devices []string) func() (sample.Counters, error) {
	return func() (sum sample.Counters, err error) {
		for _, d := range devices {
			c, err := local.Device(ns, d, false)()
			if err != nil {
				return sum, err
			}
			sum = sum.Add(c)
		}
		return sum, nil
	}
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

// unused turns a hop into a guard.
func unused(h path.Hop) path.Hop {
	h.Expect = path.Untouched
	return h
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
