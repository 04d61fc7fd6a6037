package observe

import (
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
)

// ported has what came to bridges' ports. Where iptables sees bridged frames, it changes the
// addresses of those for the bridge there. So the bridge has them with other addresses than its own
// packets of the same connection.
type ported struct {
	came map[arrival]ends // that a bridge may have later
	was  map[homed]ends   // of what comes to clients: what the bridges' ports had
	now  map[homed]ends   // of what servers send: the other way of what came to their bridges
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

// arrival is a packet that opens a connection, or a datagram, in a network namespace.
type arrival struct {
	space    int
	udp      bool
	seq, ack uint32
	sum      uint64
}

// mostBridged bounds the arrivals that are kept: of frames that a bridge passes on, all.
const mostBridged = 10_000

// restore gives a packet that came to a bridge for a client the addresses that it had at the
// bridge's port, and one that a server sends over a bridge those that it has before it is sent.
func (b *ported) restore(space int, p *capture.Packet) {
	k := homed{space, p.UDP, ends{p.Src, p.Dst}}
	if !p.Out && (p.UDP || p.Flags&capture.SYN != 0) {
		b.note(k, p)
	}
	of := b.was
	if p.Out {
		of = b.now
	}
	if e, ok := of[k]; ok && !p.Bridged {
		p.Src, p.Dst = e.src, e.dst
	}
}

// note notes a datagram, or the packet that opens one way of a connection.
func (b *ported) note(k homed, p *capture.Packet) {
	of := arrival{space: k.space, udp: p.UDP, seq: p.Seq, ack: p.Ack}
	if p.UDP {
		of.sum = tokens.SumOf(p)
	}
	if p.Bridged {
		if b.came == nil || len(b.came) >= mostBridged {
			b.came = map[arrival]ends{}
		}
		b.came[of] = k.ends
		return
	}
	was, ok := b.came[of]
	if !ok {
		return
	}
	delete(b.came, of)
	back := homed{k.space, k.udp, was.back()}
	delete(b.was, k)
	delete(b.now, back)
	switch {
	case was == k.ends:
	case p.UDP || p.Flags&capture.ACK != 0:
		if b.was == nil {
			b.was = map[homed]ends{}
		}
		b.was[k] = was
	default:
		if b.now == nil {
			b.now = map[homed]ends{}
		}
		b.now[back] = k.ends.back()
	}
}
