package observe

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// between says what lies between two points, as far as the devices of their namespaces tell.
func (w *Watch) between(from, to tokens.Point, routed bool) (l tokens.Leg, ok bool) {
	a, ok1 := w.port(from)
	b, ok2 := w.port(to)
	if !ok1 || !ok2 {
		return l, false
	}
	return between(a, b, routed)
}

// port is a point with its device.
type port struct {
	tokens.Point
	link.Tie
	master link.Tie
}

// port returns a point's device. ok is false if it cannot be read.
func (w *Watch) port(at tokens.Point) (p port, ok bool) {
	if _, known := w.ties[at.Space]; !known {
		_ = w.spaces[at.Space].Visit(func() (err error) {
			w.ties[at.Space], err = link.Ties()
			return err
		})
	}
	all := w.ties[at.Space]
	p = port{Point: at, Tie: all[at.Device]}
	p.master = all[p.Master]
	return p, p.Name != ""
}

const (
	loopback = "loopback"
	bridge   = "bridge"
	ovs      = "openvswitch"
)

// toPort reports whether a packet came to a bridge's port: it is for the bridge, also if its
// address there is the port's.
func (w *Watch) toPort(space int, p *capture.Packet) bool {
	if p.Out {
		return false
	}
	at, ok := w.port(tokens.Point{Space: space, Device: p.Device})
	return ok && at.isPort()
}

// onBridge returns the name of the bridge which the device is or whose port it is, or "".
func (p port) onBridge() string {
	switch bridge {
	case p.Kind:
		return p.Name
	case p.master.Kind:
		return p.master.Name
	}
	return ""
}

// Kinds of devices of which two are connected, those that share a device below, and those with the
// wire between two.
var (
	peers   = []string{"veth", "netkit"}
	besides = []string{"macvlan", "macvtap", "ipvlan", "ipvtap"}
	tunnels = []string{"vxlan", "geneve"}
)

// between returns what lies between two points that packets passed one after the other.
func between(a, b port, routed bool) (l tokens.Leg, ok bool) {
	through := !a.Out && b.Out && a.Space == b.Space
	switch {
	case routed:
		return tokens.Leg{Kind: sample.LegRouting}, through && !a.isPort() && !b.isPort()
	case a.Out && !b.Out:
		return crossed(a, b)
	case a.Out && a.over(b):
		return a.leg(), true
	case !b.Out && b.over(a):
		return b.leg(), true
	case a.Space != b.Space:
		return l, false
	case through && a.master.Kind == ovs && a.Master == b.Master:
		return tokens.Leg{Kind: "Open vSwitch"}, true
	case through && a.isPort() || a.Out && b.isPort() || !b.Out && a.isPort():
		name := a.onBridge()
		return tokens.Leg{Kind: sample.LegBridge, Device: name},
			name == b.onBridge() && (through || a.isPort() != b.isPort())
	}
	return l, false
}

// isPort reports whether the device is a bridge's port.
func (p port) isPort() bool { return p.master.Kind == bridge }

// over reports whether the device has another one below it, in which its packets are, too.
func (p port) over(below port) bool {
	if slices.Contains(peers, p.Kind) {
		return false
	}
	of := p.Space == below.Space && below.Master == p.Device && p.Kind != bridge && p.Kind != ovs
	return of || p.Under != 0 && p.Under == below.Device
}

// names reports whether a pair has the device's name rather than that of its other end, both ways:
// a bridge's port does, and not a container's device.
func (p port) names(o port) bool {
	const inContainers = "eth0"
	if p.isPort() != o.isPort() {
		return p.isPort()
	}
	if p.Name == inContainers || o.Name == inContainers {
		return p.Name != inContainers
	}
	return p.Name < o.Name
}

func (p port) leg() tokens.Leg { return tokens.Leg{Kind: p.Kind, Device: p.Name} }

// crossed returns what lies between a device that sent packets and one that received them.
func crossed(a, b port) (l tokens.Leg, ok bool) {
	switch {
	case a.Kind != b.Kind:
	case a.Kind == loopback:
		return tokens.Leg{Kind: sample.LegLoopback}, a.Space == b.Space
	case slices.Contains(peers, a.Kind) && a.Under == b.Device && b.Under == a.Device:
		if b.names(a) {
			return b.leg(), true
		}
		return a.leg(), true
	case slices.Contains(besides, a.Kind):
		return tokens.Leg{Kind: a.Kind}, a.Under == b.Under
	case slices.Contains(tunnels, a.Kind):
		return tokens.Leg{Kind: a.Kind}, true
	}
	return l, false
}
