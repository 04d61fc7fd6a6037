package observe

import (
	"net/netip"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
)

// ported knows the addresses of what came to bridges' ports. Where iptables sees bridged frames, it
// changes the addresses of those for the bridge there. So the bridge has them with other addresses
// than its own packets of the same connection.
type ported struct {
	came       map[arrival]ends // at ports: a bridge may have it later, with other addresses
	answered   map[homed]ends   // by what comes to a client: the addresses at the bridge's port
	redirected map[homed]ends   // by what leaves for a client: the addresses at the server
}

// ends are a packet's addresses.
type ends struct{ src, dst netip.AddrPort }

func (e ends) back() ends { return ends{e.dst, e.src} }

// homed is a connection, in a network namespace.
type homed struct {
	space int
	udp   bool
	ends
}

// arrival is a packet that opens a connection, or a datagram, in a network namespace. Its sender's
// address is the same at the port and at the bridge.
type arrival struct {
	space    int
	udp      bool
	src      netip.AddrPort
	seq, ack uint32
	sum      uint64
}

// mostBridged bounds each map. Most arrivals that are kept are of frames that a bridge passes on.
const mostBridged = 10_000

// restore gives a packet that came to a bridge for a client the addresses that it had at the
// bridge's port, and one that a server sends over a bridge those that it has before it is sent.
// serves reports whether a server of the route is at a port of a namespace.
func (b *ported) restore(space int, p *capture.Packet, serves func(space int, port uint16) bool) {
	k := homed{space, p.UDP, ends{p.Src, p.Dst}}
	if !p.Out && (p.UDP || p.Flags&capture.SYN != 0) {
		b.note(k, p, serves)
	}
	of := b.answered
	if p.Out {
		of = b.redirected
	}
	if e, ok := of[k]; ok && !p.Bridged {
		p.Src, p.Dst = e.src, e.dst
	}
}

// note notes a datagram, or the packet that opens one way of a connection.
func (b *ported) note(k homed, p *capture.Packet, serves func(int, uint16) bool) {
	of := arrival{k.space, p.UDP, p.Src, p.Seq, p.Ack, 0}
	if p.UDP {
		of.sum = tokens.SumOf(p)
	}
	if p.Bridged {
		b.came = keep(b.came, of, k.ends)
		return
	}
	was, ok := b.came[of]
	delete(b.came, of)
	request := !p.UDP && p.Flags&capture.ACK == 0 || p.UDP && serves(k.space, k.dst.Port())
	if ok || !p.UDP { // other datagrams of the connection may have been changed
		delete(b.answered, k)
	}
	back := homed{k.space, k.udp, was.back()}
	delete(b.redirected, back)
	switch {
	case !ok || was == k.ends:
	case request:
		b.redirected = keep(b.redirected, back, k.back())
	default:
		b.answered = keep(b.answered, k, was)
	}
}

// keep puts a value into a map, which it empties if it is full.
func keep[K comparable](all map[K]ends, k K, e ends) map[K]ends {
	if all == nil || len(all) >= mostBridged {
		all = map[K]ends{}
	}
	all[k] = e
	return all
}

// serves reports whether a hop of a route is at a port of a namespace.
func (w *Watch) serves(space int, port uint16) bool {
	for _, r := range w.routes {
		if slices.ContainsFunc(r.hops, func(h hop) bool {
			return h.space == space && h.to.Port() == port
		}) {
			return true
		}
	}
	return false
}
