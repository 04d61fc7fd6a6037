package tokens

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

// http2 is a direction of HTTP/2, as gRPC uses it. A request or reply goes from its stream's first
// HEADERS to END_STREAM. Frames of several streams may alternate.
type http2 struct {
	counted
	head   []byte
	before []byte // of the client's preface, what is yet to come
	synced bool   // the next byte begins a frame
	open   map[uint32]int64
	kind   byte
	flags  byte
	stream uint32
	other  *http2
	lost   int   // requests of which something was not captured
	pad    int64 // bytes behind a frame's data; -1: its length is yet to come
	// to gets the data of streams before an offset, and nil at their ends, -1 if they were reset. Nil:
	// they have frames.
	to func(stream uint32, data []byte, end int64)
}

const (
	http2Preface = "PRI * HTTP/2.0\r\n\r\n" + http2Rest
	http2Rest    = "SM\r\n\r\n"
	http2Head    = 9
	http2Longest = 1 << 20
	http2Last    = 1 // END_STREAM
	http2Padded  = 8
)

// The kinds of frames that matter.
const (
	http2Data     = 0
	http2Headers  = 1
	http2Reset    = 3
	http2Settings = 4
	http2Ping     = 6
	http2Window   = 8
	http2Kinds    = 0x11
)

// newHTTP2 returns framers of requests, which b begins, and replies, or nil if b is not HTTP/2.
func newHTTP2(b []byte) (asks, answers *http2) {
	asks, answers = pairHTTP2()
	if bytes.HasPrefix(b, []byte(http2Preface)) {
		asks.before = []byte(http2Preface)
	} else if !areHTTP2(b) {
		return nil, nil
	}
	asks.synced, answers.synced = true, len(asks.before) > 0 // a reply may be under way
	return asks, answers
}

// pairHTTP2 returns both directions of a connection, which are read from the next packet on that
// begins with a frame.
func pairHTTP2() (asks, answers *http2) {
	asks, answers = &http2{}, &http2{}
	for _, h := range []*http2{asks, answers} {
		h.open, h.end = map[uint32]int64{}, h.ended
	}
	asks.other, answers.other = answers, asks
	return asks, answers
}

// greetsHTTP2 reports whether a server begins so before it is asked.
func greetsHTTP2(b []byte) bool {
	return areHTTP2(b) && b[3] == http2Settings
}

// areHTTP2 reports whether bytes are frames, the last of which may go on.
func areHTTP2(b []byte) bool {
	for n := 0; ; n++ {
		if len(b) < http2Head {
			return n > 0 && len(b) == 0
		}
		size, ok := http2Frame(b)
		if !ok {
			return false
		}
		if size+http2Head >= len(b) {
			return true
		}
		b = b[http2Head+size:]
	}
}

// http2Frame returns the size of a frame's data. It reports whether it may be a frame.
func http2Frame(b []byte) (size int, ok bool) {
	size = int(b[0])<<16 | int(b[1])<<8 | int(b[2])
	kind, flags, stream := b[3], b[4], binary.BigEndian.Uint32(b[5:])
	own := stream != 0 // else the connection's
	switch kind {
	case http2Data:
		ok = own && flags&^0x9 == 0
	case http2Headers:
		ok = own && flags&^0x2d == 0 && size > 0
	case http2Reset:
		ok = own && flags == 0 && size == 4
	case http2Settings:
		ok = !own && flags&^1 == 0 && size%6 == 0
	case http2Ping:
		ok = !own && flags&^1 == 0 && size == 8
	case http2Window:
		ok = flags == 0 && size == 4
	default:
		ok = kind < http2Kinds && kind != 5 // nobody pushes
	}
	return size, ok && size <= http2Longest && stream>>31 == 0 && (!own || stream&1 == 1)
}

func (h *http2) feed(b []byte) {
	if !h.synced && !areHTTP2(b) {
		h.at += int64(len(b))
		return
	}
	h.synced = true
	for b = h.take(b); len(b) > 0 && !h.failed; b = h.take(b) {
		if n := min(len(h.before), len(b)); n > 0 {
			h.failed = !bytes.Equal(h.before[:n], b[:n])
			h.before, h.at, b = h.before[n:], h.at+int64(n), b[n:]
			continue
		}
		n := min(http2Head-len(h.head), len(b))
		h.head, h.at, b = append(h.head, b[:n]...), h.at+int64(n), b[n:]
		if len(h.head) == http2Head {
			h.header()
		}
	}
}

// take takes data as counted.take does, and passes on what is of streams.
func (h *http2) take(b []byte) []byte {
	if n := min(h.left, int64(len(b))); h.to != nil && h.kind == http2Data && n > 0 {
		data, at, left := b[:n], h.at, h.left
		if h.pad < 0 {
			h.pad = int64(data[0])
			data, at, left = data[1:], at+1, left-1
		}
		if n = min(int64(len(data)), left-h.pad); n > 0 {
			h.to(h.stream, data[:n], at+n)
		}
	}
	return h.counted.take(b)
}

func (h *http2) header() {
	size, ok := http2Frame(h.head)
	if h.failed = !ok; !ok {
		return
	}
	h.kind, h.flags, h.stream = h.head[3], h.head[4], binary.BigEndian.Uint32(h.head[5:])
	if _, begun := h.open[h.stream]; h.kind == http2Headers && !begun {
		h.open[h.stream] = h.at - http2Head
	}
	h.head, h.pad = h.head[:0], 0
	if h.flags&http2Padded != 0 {
		h.pad = -1
	}
	if h.left = int64(size); size == 0 {
		h.ended()
	}
}

// ended handles the end of a frame.
func (h *http2) ended() {
	start, begun := h.open[h.stream]
	switch {
	case h.kind == http2Reset && h.has(h.stream) && h.other.has(h.stream):
		// Both are whole: a server that read no body resets the stream behind its reply.
	case h.kind == http2Reset:
		h.forget(h.stream)
		h.other.forget(h.stream)
		if h.to != nil {
			h.to(h.stream, nil, -1)
		}
	case !begun || h.kind != http2Data && h.kind != http2Headers || h.flags&http2Last == 0:
	case h.to != nil:
		delete(h.open, h.stream)
		h.to(h.stream, nil, h.at)
	default:
		delete(h.open, h.stream)
		h.frames = append(h.frames, frame{start: start, end: h.at, stream: h.stream})
	}
}

// forget forgets a stream.
func (h *http2) forget(stream uint32) {
	delete(h.open, stream)
	h.frames = slices.DeleteFunc(h.frames, func(f frame) bool { return f.stream == stream })
}

// skip goes on at the next packet if more was not captured than a frame's data. The streams that are
// under way then count as lost.
func (h *http2) skip(n int64) {
	if n <= h.left && h.synced {
		h.data(n)
		return
	}
	h.at, h.left, h.head, h.synced = h.at+n, 0, h.head[:0], false
	lost := 0
	for _, side := range []*http2{h, h.other} {
		all := len(side.frames) + len(side.open)
		side.frames = slices.DeleteFunc(side.frames, func(f frame) bool {
			return !side.other.has(f.stream)
		})
		lost = max(lost, all-len(side.frames))
		clear(side.open)
	}
	h.lost += lost
}

// needs returns the offset from which on bytes of streams are yet to be divided.
func (h *http2) needs() int64 {
	from := h.at
	for _, start := range h.open {
		from = min(from, start)
	}
	for _, f := range h.frames {
		from = min(from, f.start)
	}
	return from
}

// has reports whether a stream has ended.
func (h *http2) has(stream uint32) bool {
	return slices.ContainsFunc(h.frames, func(f frame) bool { return f.stream == stream })
}

// asks reports whether a request is under way or not yet taken.
func (h *http2) asks(stream uint32) bool {
	_, begun := h.open[stream]
	return begun || h.has(stream)
}

// streams returns the requests of a connection of HTTP/2 in their order. Those without a reply have no
// end.
func (c *connection) streams(asks, answers *http2) (out []exchange) {
	replies := map[uint32]frame{}
	for _, f := range answers.frames {
		replies[f.stream] = f
	}
	under := int64(math.MinInt64) // until then a reply to another one was under way
	for _, f := range asks.frames {
		first, ok := c.in.at(f.start + 1)
		if !ok {
			continue
		}
		x := exchange{turn: turn{sent: first.at, before: f.start, asked: f.end}, frame: f,
			behind: first.at < max(under, c.talk.left)}
		a, answered := replies[f.stream]
		if x.from, x.to = a.start, a.end; !answered {
			under = math.MaxInt64
		} else if m, ok := c.out.at(x.to); ok {
			under = max(under, m.at)
		}
		out = append(out, x)
	}
	slices.SortStableFunc(out, func(a, b exchange) int { return cmp.Compare(a.sent, b.sent) })
	return out
}

// takeStreams takes what takePairs does, of a connection of HTTP/2.
func (r *Requests) takeStreams(l *Log, c *connection, k key, before int64) {
	asks, answers := c.talk.asks.(*http2), c.talk.answers.(*http2)
	taken := map[uint32]bool{}
	for _, x := range c.streams(asks, answers) {
		switch {
		case before != 0 && x.sent >= before:
		case x.to != 0:
			taken[x.stream] = true
			r.connections[k] = true
			n := len(r.all)
			if r.add(l, c, x.turn); len(r.all) > n && x.behind {
				r.all[n].had.between = 0
			}
			r.note(x)
			if m, ok := c.out.at(x.to); ok {
				c.talk.left = max(c.talk.left, m.at)
			}
		case before != 0:
			taken[x.stream] = true
			r.unanswered++
		}
	}
	asks.frames = slices.DeleteFunc(asks.frames, func(f frame) bool { return taken[f.stream] })
	answers.frames = slices.DeleteFunc(answers.frames, func(f frame) bool {
		return !asks.asks(f.stream)
	})
	r.unmatched += asks.lost + answers.lost
	asks.lost, answers.lost = 0, 0
	c.drop(asks.needs(), answers.needs())
	c.turns = c.turns[:0]
}
