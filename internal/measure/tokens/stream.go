package tokens

import (
	"math"
	"sort"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
)

// mostPending bounds what one direction of a connection holds back for earlier bytes that have not
// come, in bytes.
const mostPending = 4 << 20

// stream puts one direction of a TCP connection in order. Offsets count its bytes from the first.
type stream struct {
	known   bool
	base    uint32 // sequence number of offset 0
	end     int64  // all bytes before it have been seen
	pending map[int64]held
	held    int
	marks   []mark // ascending
	// beginnings, unless nil, is given the bytes of packets that may be captured in part, and how many
	// of each are missing behind them.
	beginnings func(b []byte, missing int64)
}

// mark is the end of a packet's bytes that had not been seen before.
type mark struct {
	end   int64
	at    int64 // ns
	tsval uint32
}

type held struct {
	mark
	payload []byte // nil: its bytes do not matter
}

// begin makes seq the sequence number of offset 0.
func (s *stream) begin(seq uint32) { *s = stream{known: true, base: seq} }

// offset returns the offset of a sequence number near the end.
func (s *stream) offset(seq uint32) int64 {
	return s.end + int64(int32(seq-(s.base+uint32(s.end))))
}

// add passes on the bytes of a packet that have not been seen before, in order. Their time is that
// of the first packet that had them. A nil pass gets none.
func (s *stream) add(p *capture.Packet, pass func([]byte)) {
	size := len(p.Payload)
	if pass == nil {
		size = p.Size
	}
	keeps := pass != nil || s.beginnings != nil
	if !s.known || size == 0 {
		return
	}
	start := s.offset(p.Seq)
	end := start + int64(size)
	h := held{mark{end, p.At, p.TSVal}, nil}
	switch {
	case start < 0 || end <= s.end:
		return
	case start > s.end:
		if _, ok := s.pending[start]; !ok && s.held+size <= mostPending {
			if s.pending == nil {
				s.pending = map[int64]held{}
			}
			if keeps {
				h.payload = append([]byte(nil), p.Payload...)
			}
			s.held += size
			s.pending[start] = h
		}
		return
	}
	if keeps {
		h.payload = p.Payload
	}
	s.take(start, h, pass)
	for len(s.pending) > 0 {
		first := int64(math.MaxInt64)
		for at := range s.pending {
			first = min(first, at)
		}
		if first > s.end {
			return
		}
		h := s.pending[first]
		delete(s.pending, first)
		s.held -= int(h.end - first)
		s.take(first, h, pass)
	}
}

func (s *stream) take(start int64, h held, pass func([]byte)) {
	if h.end <= s.end {
		return
	}
	done := s.end - start
	s.end = h.end
	s.marks = append(s.marks, h.mark)
	if pass != nil {
		pass(h.payload[done:])
	}
	if s.beginnings != nil {
		have := h.payload[min(done, int64(len(h.payload))):]
		s.beginnings(have, s.end-start-done-int64(len(have)))
	}
}

// at returns when the byte before an offset was first seen, and the packet's TSval. ok is false if
// it has not been.
func (s *stream) at(offset int64) (m mark, ok bool) {
	i := sort.Search(len(s.marks), func(i int) bool { return s.marks[i].end >= offset })
	if i == len(s.marks) {
		return m, false
	}
	return s.marks[i], true
}

// forget drops the times of the bytes that have been seen.
func (s *stream) forget() { s.marks = nil }

// arrivals are the packets that came to a client, as its kernel saw them.
type arrivals struct {
	began int64 // when the connection was open
	known bool
	base  uint32
	top   int64 // the highest end
	parts []part
	acks  []ack
	// ends and times are parts after settle: by ascending end, when all bytes before it were
	// readable.
	ends, times []int64
}

type part struct{ start, end, at int64 }

type ack struct{ to, at int64 }

func (a *arrivals) offset(seq uint32) int64 {
	return a.top + int64(int32(seq-(a.base+uint32(a.top))))
}

func (a *arrivals) begin(seq uint32) { *a = arrivals{began: a.began, known: true, base: seq} }

func (a *arrivals) add(at int64, seq uint32, size int) {
	if !a.known || size == 0 {
		return
	}
	start := a.offset(seq)
	if start < 0 {
		return
	}
	a.ends = nil
	a.parts = append(a.parts, part{start, start + int64(size), at})
	a.top = max(a.top, start+int64(size))
}

func (a *arrivals) acknowledge(at int64, number uint32) {
	if !a.known {
		return
	}
	to := a.offset(number)
	if n := len(a.acks); to >= 0 && (n == 0 || to > a.acks[n-1].to) {
		a.acks = append(a.acks, ack{to, at})
		a.ends = nil
	}
}

// settle finds when bytes were readable. A capture sees packets before the client's packet filter,
// which may drop them: of several copies of a byte the one that counts is the last one before the
// client acknowledged it. TCP delivers in order, so earlier bytes must have come, too.
func (a *arrivals) settle() {
	a.ends, a.times = make([]int64, 0, len(a.parts)), make([]int64, 0, len(a.parts))
	n := 0
	for ; n < len(a.parts) && a.inOrder(n); n++ {
		late := a.parts[n].at
		if n > 0 {
			late = max(late, a.times[n-1])
		}
		a.ends, a.times = append(a.ends, a.parts[n].end), append(a.times, late)
	}
	if n < len(a.parts) {
		a.settleCopies()
	}
}

// inOrder reports whether a part follows the one before it.
func (a *arrivals) inOrder(i int) bool {
	return i == 0 && a.parts[i].start == 0 || i > 0 && a.parts[i].start == a.parts[i-1].end
}

// settleCopies finds when bytes were readable that came more than once, or not in their order.
func (a *arrivals) settleCopies() {
	cuts := make([]int64, 0, 2*len(a.parts))
	for _, p := range a.parts {
		cuts = append(cuts, p.start, p.end)
	}
	sort.Slice(cuts, func(i, j int) bool { return cuts[i] < cuts[j] })
	copies := map[int64][]int64{} // times of the copies, by the end between two cuts
	for _, p := range a.parts {
		i := sort.Search(len(cuts), func(i int) bool { return cuts[i] > p.start })
		for ; i < len(cuts) && cuts[i] <= p.end; i++ {
			if i > 0 && cuts[i] == cuts[i-1] {
				continue
			}
			copies[cuts[i]] = append(copies[cuts[i]], p.at)
		}
	}
	a.ends, a.times = []int64{}, nil
	var late, before int64
	for i, end := range cuts {
		if i > 0 && end == cuts[i-1] || len(copies[end]) == 0 {
			continue
		}
		if before < cuts[max(i-1, 0)] { // a byte in between never came
			return
		}
		late = max(late, a.counts(end, copies[end]))
		a.ends, a.times = append(a.ends, end), append(a.times, late)
		before = end
	}
}

// counts returns the time of the copy that the client took.
func (a *arrivals) counts(end int64, times []int64) int64 {
	limit := int64(math.MaxInt64)
	i := sort.Search(len(a.acks), func(i int) bool { return a.acks[i].to >= end })
	if i < len(a.acks) {
		limit = a.acks[i].at
	}
	last := times[0]
	for _, t := range times {
		if t <= limit {
			last = t
		}
	}
	return last
}

// at returns when all bytes before an offset were readable. ok is false if they were not.
func (a *arrivals) at(offset int64) (ns int64, ok bool) {
	if a.ends == nil {
		a.settle()
	}
	i := sort.Search(len(a.ends), func(i int) bool { return a.ends[i] >= offset })
	if i == len(a.ends) {
		return 0, false
	}
	return a.times[i], true
}
