package ports

import (
	"net/netip"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// follow replaces the hops before the last one with those that the packet was seen to take.
func (o *outcome) follow() {
	steps := o.q.answer.Steps
	if len(steps) == 0 || o.out.Kind == ByShortcut {
		return
	}
	var end []Hop
	if n := len(o.out.Hops); n > 0 && (o.out.Hops[n-1].Kind == "server" ||
		o.out.Hops[n-1].Kind == "socket") {
		end = o.out.Hops[n-1:]
	}
	var proxy, unseen []Hop
	for _, h := range o.out.Hops {
		switch h.Kind {
		case "proxy":
			proxy = append(proxy, h)
		case "DNAT": // perhaps no device shows it
			unseen = []Hop{h}
		}
	}
	o.out.Hops = []Hop{}
	src, dst := netip.AddrPort{}, o.q.at
	left := false // the client's namespace
	for _, s := range steps {
		if s.Reply {
			continue
		}
		switch {
		case dst != s.Dst && len(proxy) > 0:
			o.out.Hops, proxy = append(o.out.Hops, proxy[0]), proxy[1:]
		case dst != s.Dst:
			o.hop("DNAT", "to "+s.Dst.String())
			unseen = nil
		case src.IsValid() && src.Addr() != s.Src.Addr():
			o.hop("MASQ", "the server sees "+s.Src.Addr().String())
		}
		src, dst = s.Src, s.Dst
		if left = left || s.Space >= 0; left && s.Space < 0 {
			continue // another machine's device
		}
		if h, ok := o.at(s); ok && (len(o.out.Hops) == 0 || h != o.out.Hops[len(o.out.Hops)-1]) {
			o.out.Hops = append(o.out.Hops, h)
		}
	}
	o.out.Hops = slices.Concat(o.out.Hops, proxy, unseen, end)
}

// at returns the hop of a packet at a device. ok is false for a bridge's ports.
func (o *outcome) at(s replica.Step) (h Hop, ok bool) {
	switch d := o.f.device(s.Device); {
	case s.Device == "":
	case s.Space < 0:
		return Hop{"veth", "the client container's " + s.Device}, o.q.client.Bridge != ""
	case s.Space > 0 && s.Space == o.q.client.Space:
		return Hop{"veth", "the client container's " + s.Device}, s.Device != "lo"
	case s.Space > 0:
		return Hop{"veth", "the container's " + s.Device}, s.Device != "lo"
	case d.Kind == "loopback":
		return Hop{"lo", "this machine"}, true
	case o.f.hosts(d):
		return Hop{"bridge", s.Device}, true
	case d.Name != "" && d.Master == "":
		return Hop{"wire", s.Device}, true
	}
	return h, false
}
