package tokens

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
)

// Point is a device that packets pass in one direction.
type Point struct {
	Space, Device int
	Out           bool
}

// pass is when a packet passed a point.
type pass struct {
	Point
	at  int64
	ttl uint8
}

// passing has what passed a point of one direction of a TCP connection. Packets may also go another
// way, so that bytes are missing.
type passing struct {
	Point
	ttl   uint8
	base  uint32 // sequence number of offset 0
	parts []part // first copies, by ascending end
}

// adds returns what a packet adds. ok is false if another one had its last byte, or it has none.
func (x *passing) adds(p *capture.Packet) (_ part, ok bool) {
	end := int64(0)
	if n := len(x.parts); n > 0 {
		end = x.parts[n-1].end
	}
	start := end + int64(int32(p.Seq-(x.base+uint32(end))))
	last := start + int64(p.Size)
	return part{start, last, p.At}, start >= 0 && last > end
}

// passed returns when the byte before an offset did.
func (x *passing) passed(offset int64) (ns int64, ok bool) {
	i := sort.Search(len(x.parts), func(i int) bool { return x.parts[i].end >= offset })
	if i == len(x.parts) || x.parts[i].start >= offset {
		return 0, false
	}
	return x.parts[i].at, true
}

// passings has where packets passed, in all namespaces that are captured.
type passings struct {
	flows map[flow]*passing
	bases map[uint32][]*passing // by the first byte's sequence number, which packet filters leave
	sums  map[uint64][]pass     // of UDP, by the sums of datagrams
	most  int                   // that are kept: packets, and directions of connections
	n     int
	full  int64 // when the first one passed that is not kept; 0: all are
}

func newPassings() passings {
	return passings{flows: map[flow]*passing{}, bases: map[uint32][]*passing{},
		sums: map[uint64][]pass{}, most: mostPasses}
}

// flow is one direction between two addresses, at a point.
type flow struct {
	Point
	pair // the sender's address and the receiver's
}

// mostPasses bounds what is kept of packets.
const mostPasses = 2_000_000

// room reports whether there is room for what is known of a packet, and takes it.
func (w *passings) room(p *capture.Packet) bool {
	if w.n == w.most {
		if w.full == 0 || p.At < w.full {
			w.full = p.At
		}
		return false
	}
	w.n++
	return true
}

// kept returns the time before which all that passed is kept.
func (w *passings) kept() int64 {
	if w.full == 0 {
		return math.MaxInt64
	}
	return w.full
}

// note notes where a packet passed.
func (w *passings) note(space int, p *capture.Packet) {
	at := Point{space, p.Device, p.Out}
	if p.UDP {
		if w.room(p) {
			sum := SumOf(p)
			w.sums[sum] = append(w.sums[sum], pass{at, p.At, p.TTL})
		}
		return
	}
	k := flow{at, pair{p.Src, p.Dst}}
	x := w.flows[k]
	if p.Flags&capture.SYN != 0 {
		if x == nil || x.base != p.Seq+1 {
			if delete(w.flows, k); !w.room(p) {
				return
			}
			x = &passing{Point: at, ttl: p.TTL, base: p.Seq + 1}
			w.flows[k], w.bases[x.base] = x, append(w.bases[x.base], x)
		}
		p = behindSYN(p)
	}
	if x == nil {
		return
	}
	if part, ok := x.adds(p); ok && w.room(p) {
		x.parts = append(x.parts, part)
	}
}

// of returns where the byte before an offset passed within a time, in this order, of a stream that
// begins with a sequence number.
func (w *passings) of(base uint32, offset, from, to int64) (out []pass) {
	for _, x := range w.bases[base] {
		if at, ok := x.passed(offset); ok && at >= from && at <= to {
			out = append(out, pass{x.Point, at, x.ttl})
		}
	}
	slices.SortStableFunc(out, pass.compare)
	return out
}

// sort puts what is known of datagrams in order, for ofSum.
func (w *passings) sort() {
	for _, all := range w.sums {
		slices.SortStableFunc(all, pass.compare)
	}
}

// ofSum returns where a datagram passed within a time, in this order.
func (w *passings) ofSum(sum uint64, from, to int64) []pass {
	all := w.sums[sum]
	first := sort.Search(len(all), func(i int) bool { return all[i].at >= from })
	end := sort.Search(len(all), func(i int) bool { return all[i].at > to })
	return all[first:max(first, end)]
}

func (p pass) compare(o pass) int { return cmp.Compare(p.at, o.at) }
