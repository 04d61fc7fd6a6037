package docker

import (
	"cmp"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/path"
	"github.com/bridgetoll/bridgetoll/internal/path/local"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// thisMachine is where Docker's own devices and rules are.
const thisMachine = "this machine"

// loHop is a namespace's loopback device, which counts both directions as
// one.
func loHop(ns *netns.NS, where string) path.Hop {
	return path.Hop{Kind: mode.HopLoopback, Name: "lo", Where: where, Expect: path.CarriesBoth, Read: local.OneWay(local.Device(ns, "lo", true))}
}

// hop is the container's own device.
func (b *box) hop(kind mode.HopKind, server bool) path.Hop {
	h := path.Hop{Kind: kind, Name: b.device, Where: b.what, Read: local.Device(b.ns, b.device, server)}
	if b.port != "" {
		h.Name = b.port + "⇄" + b.device
	}
	return h
}

// bridgeHop is a bridge as its machine's own device: it counts what goes
// between the machine's stack and the containers.
func (s *site) bridgeHop(n *bridgeNet, toServer bool) path.Hop {
	s.spans(n)
	return path.Hop{Kind: mode.HopBridge, Name: n.bridge, Where: thisMachine, Read: local.Device(s.engine.ns, n.bridge, !toServer)}
}

// switchedHop is a bridge as a switch: what it sent out of the ports towards
// the servers and out of those towards the clients. (A bridge's own counters
// do not count frames that it only forwards.)
func (s *site) switchedHop(n *bridgeNet) path.Hop {
	s.spans(n)
	return path.Hop{Kind: mode.HopBridge, Name: n.bridge + " ports", Where: cmp.Or(n.where, thisMachine),
		Read: local.SentBy(together(s.servers), together(s.clients))}
}

// together adds up what the outer ends of containers' pairs count; what they
// send is forward.
func together(boxes []*box) func() (sample.Counters, error) {
	return func() (sum sample.Counters, err error) {
		for _, b := range boxes {
			c, err := local.Device(b.portNS, b.port, false)()
			if err != nil {
				return sum, err
			}
			sum = sum.Add(c)
		}
		return sum, nil
	}
}

// bridgeLeg is a bridge that the load crosses twice, up to the proxy and down
// to the server: what the machine took in from the bridge, and what it sent
// out to it. Each counts both directions of the load, once a leg.
func (s *site) bridgeLeg(n *bridgeNet, way string) path.Hop {
	s.spans(n)
	return path.Hop{Kind: mode.HopBridge, Name: n.bridge + " " + way, Where: thisMachine, Expect: path.CarriesBoth,
		Read: local.OneWay(local.Device(s.engine.ns, n.bridge, way == "in"))}
}

// unused turns a hop into a guard.
func unused(h path.Hop) path.Hop {
	h.Expect = path.Untouched
	return h
}
