package trace

import (
	"fmt"
	"slices"
	"strings"

	kernel "github.com/bridgetoll/bridgetoll/internal/kernel/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// unknown is the kind of a device that is not on the path.
const unknown = "unknown"

var names = map[kernel.Kind]string{
	0:              "clock_gettime",
	kernel.Send:    "tcp_sendmsg_locked",
	kernel.Queue:   "net_dev_queue",
	kernel.Xmit:    "net_dev_start_xmit",
	kernel.Rx:      "netif_rx",
	kernel.Receive: "netif_receive_skb",
	kernel.Softirq: "softirq_entry",
	kernel.Route:   "fib_table_lookup",
	kernel.TCP:     "tcp_probe",
	kernel.Ready:   "sk_data_ready",
	kernel.Waking:  "sched_waking",
	kernel.IPI:     "ipi_send_cpu",
	kernel.Switch:  "sched_switch",
	kernel.Copy:    "skb_copy_datagram_iovec",
	kernel.Read:    "sock_recv_length",
	kernel.Sent:    "sock_send_length",
	kernel.HookIn:  "hook",
	kernel.HookOut: "end of hook",
	kernel.NATIn:   "NAT in",
	kernel.NATOut:  "end of NAT in",
}

func hookName(number uint32) string {
	if number < uint32(len(sample.Hooks)) {
		return sample.Hooks[number]
	}
	return fmt.Sprint(number)
}

// link returns the description of a device, also of one that is not on the path.
func (c *Cell) link(d Device) sample.Link {
	if l, ok := c.Devices[d]; ok {
		return l
	}
	return sample.Link{Kind: unknown,
		Name: fmt.Sprintf("interface %d of namespace %d", d.Index, d.NetNS)}
}

func nameOf(e kernel.Event) string {
	name := names[e.Kind]
	if e.Kind.Hook() {
		name += " " + hookName(e.Dev)
	}
	return name
}

// describe returns the words for a step and its device.
func (c *Cell) describe(e kernel.Event) string {
	name, d := nameOf(e), deviceOf(e)
	if d == (Device{}) {
		return name
	}
	l := c.link(d)
	name += " " + l.Name
	if l.Where != "" {
		name += " (" + l.Where + ")"
	}
	return name
}

func (c *Cell) is(d Device, kinds ...string) bool {
	l, ok := c.Devices[d]
	return ok && slices.Contains(kinds, l.Kind)
}

var (
	switches = []string{"bridge", "openvswitch"}
	tunnels  = []string{"vxlan", "geneve", "ipip", "sit", "gre", "gretap", "ip6tnl", "wireguard"}
)

// namer names gaps, by what all trips show about the devices.
type namer struct {
	*Cell
	bridges map[uint32][]Device // by namespace
	ports   map[Device]bool     // of bridges
}

func newNamer(c *Cell) *namer {
	n := &namer{Cell: c, bridges: map[uint32][]Device{}, ports: map[Device]bool{}}
	for d := range c.Devices {
		if n.is(d, switches...) {
			n.bridges[d.NetNS] = append(n.bridges[d.NetNS], d)
		}
	}
	return n
}

// learn records which devices are ports of bridges. It is called for all gaps before key.
func (n *namer) learn(g gap) {
	switch {
	case g.copied:
	case g.from == kernel.Xmit && g.to == kernel.Queue && n.is(g.a, switches...):
		n.ports[g.b] = true
	case g.from == kernel.Receive && g.to == kernel.Receive && n.is(g.b, switches...):
		n.ports[g.a] = true
	case g.from == kernel.Receive && g.to == kernel.Queue && !n.is(g.b, switches...):
		if part, _ := n.across(g); part == sample.PartBridge {
			n.ports[g.a], n.ports[g.b] = true, true
		}
	}
}

func (n *namer) key(g gap) sample.SegmentKey {
	part, at := n.part(g)
	k := sample.SegmentKey{Reply: g.direction.reply, Part: part}
	switch {
	case at != Device{}:
		l := n.link(at)
		k.Hop, k.Device, k.Where = l.Kind, l.Name, l.Where
	case n.byRelay(g):
		k.Hop = string(mode.HopProxy)
	case g.copied:
		k.Hop = string(mode.HopOVS)
	}
	switch {
	case g.nat:
		k.Part = sample.PartNAT
	case g.hook > 0:
		k.Part = sample.PartHook + sample.Part(hookName(g.hook-1))
	}
	return k
}

// readsPackets reports whether a gap ends when a process that reads from a device got a CPU.
func readsPackets(g gap) bool {
	return g.to == kernel.Switch && (g.copied || g.from == kernel.Xmit)
}

func (n *namer) byRelay(g gap) bool {
	if g.relayed {
		return true
	}
	if g.to != 0 && placeOf(g.to) <= placeOf(kernel.Queue) {
		return g.direction.from == relay
	}
	return g.direction.to == relay
}

// part returns a gap's part of the trip and its device. The device is zero for a process's own
// work.
func (n *namer) part(g gap) (sample.Part, Device) {
	from, to := placeOf(g.from), placeOf(g.to)
	onDevices := g.a != Device{} && g.b != Device{}
	switch {
	case readsPackets(g):
		return sample.PartWake, Device{}
	case g.copied:
		return sample.PartBridge, Device{}
	case g.relayed && g.to == kernel.Receive: // into its tap device
		return sample.PartRelay, Device{}
	case g.relayed:
		return joined(append([]sample.Part{sample.PartRelay}, span(0, to)...)...), Device{}
	case onDevices && from < to:
		at := g.a
		if g.from == kernel.Rx {
			at = g.b
		}
		return joined(span(from, to)...), at
	case onDevices:
		return n.across(g)
	case g.from == kernel.Ready && (g.to == kernel.Copy || g.to == kernel.Read):
		return sample.PartWake, Device{} // the reader was awake
	case g.to != 0 && from < to:
		return joined(span(from, to)...), Device{}
	}
	own := sample.PartProgram
	switch {
	case g.to == 0:
		own, to = sample.PartReturn, 0
	case g.from == 0:
		own = sample.PartCall
	}
	parts := append(span(from, len(order)-1), own)
	return joined(append(parts, span(0, to)...)...), Device{}
}

// across returns the part and the device of a gap between two devices.
func (n *namer) across(g gap) (sample.Part, Device) {
	switch {
	case g.from == kernel.Xmit && n.is(g.a, switches...):
		return sample.PartBridge, g.a
	case g.from == kernel.Xmit && n.is(g.a, tunnels...):
		return sample.PartTunnel, g.a
	case g.from == kernel.Xmit || g.from == kernel.Queue:
		return sample.PartDriver, g.a
	case g.a == g.b:
		return sample.PartHandover, g.b
	case g.to != kernel.Queue && n.is(g.b, tunnels...):
		return sample.PartTunnel, g.b
	case g.to == kernel.Receive && n.is(g.b, switches...):
		return sample.PartBridge, g.b
	case g.to == kernel.Receive:
		return sample.PartHandover, g.b
	}
	bridges := n.bridges[g.a.NetNS]
	switch {
	case len(bridges) == 0 || g.a.NetNS != g.b.NetNS || n.is(g.a, switches...):
	case n.is(g.b, switches...):
		if n.ports[g.a] { // NAT of bridged frames
			return sample.PartBridge, g.b
		}
	case len(bridges) == 1:
		return sample.PartBridge, bridges[0]
	default:
		return sample.PartBridge, g.a
	}
	return sample.PartForward, g.a
}

// routes reports whether the catalogue's hops explain a route lookup between two devices. For
// bridged frames only NAT does.
func (n *namer) routes(bridged bool) bool {
	nodes := 0
	for _, h := range n.Hops {
		switch mode.HopKind(h) {
		case mode.HopDNAT, mode.HopSNAT, mode.HopIPVS:
			return true
		case mode.HopWire, mode.HopBridge, mode.HopNetkit, mode.HopIPvlan, mode.HopTunnel:
			nodes++
		}
	}
	return !bridged && nodes > 1
}

// odd returns the indexes of steps that the path's devices and hops do not explain, in order.
func (n *namer) odd(steps []step) (out []int) {
	last := step{}
	var routed []int
	for i, s := range steps {
		if s.minor {
			if s.Kind == kernel.Route {
				routed = append(routed, i)
			}
			continue
		}
		a, b := deviceOf(last.Event), deviceOf(s.Event)
		if a != (Device{}) && b != (Device{}) && last.Kind == kernel.Receive &&
			s.Kind == kernel.Queue && !s.copied {
			switch part, _ := n.across(gap{from: last.Kind, to: s.Kind, a: a, b: b}); {
			case part == sample.PartBridge && !n.routes(true):
				out = append(out, routed...)
			case part == sample.PartForward && !n.routes(false):
				out = append(out, i)
			}
		}
		if _, known := n.Devices[b]; b != (Device{}) && !known &&
			(len(out) == 0 || out[len(out)-1] != i) {
			out = append(out, i)
		}
		last, routed = s, nil
	}
	return out
}

func joined(parts ...sample.Part) sample.Part {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = string(p)
	}
	return sample.Part(strings.Join(names, " + "))
}
