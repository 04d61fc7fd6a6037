package tokens

import (
	"sort"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/writes"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// clientSide is what a client of this machine did at its socket.
type clientSide struct {
	socket      pair      // its ends, the server's first; zero: not found
	wrote, read []writing // by their offsets among the requests, and the replies
	had         int64     // when it had read the last reply; 0: unknown
}

// take takes what clients' sockets had to do with a connection.
func (s *clientSide) take(l *Log, c *connection) {
	if !c.in.known || !c.out.known {
		return
	}
	for _, e := range l.clientSides[s.socket] {
		if e.Kind == writes.Read {
			s.read = appendWriting(s.read, &c.out, e)
		} else {
			s.wrote = appendWriting(s.wrote, &c.in, e)
		}
	}
	delete(l.clientSides, s.socket)
}

// drop forgets what is before offsets of requests and replies.
func (s *clientSide) drop(asked, replied int64) {
	s.wrote, s.read = dropBefore(s.wrote, asked), dropBefore(s.read, replied)
}

// had is when a client began to write a request, and when it had read the last byte of the reply, ns.
// between is the time from the reply before to this request, unless they overlap; 0: unknown.
type had struct{ wrote, read, between int64 }

// of returns what a client had of an exchange, or the zero value.
func (s *clientSide) of(x turn) (h had) {
	w, ok := covering(s.wrote, x.before+1)
	r, ok2 := covering(s.read, x.to)
	if ok && s.had != 0 {
		h.between = max(0, w.At-s.had)
	}
	if s.had = 0; ok2 {
		s.had = r.At
	}
	if !ok || !ok2 {
		return had{}
	}
	h.wrote, h.read = w.At, r.At
	return h
}

// clients returns what clients of this machine had of requests, or nil if there were none.
func clients(all []served) *sample.ServedClient {
	var mine []served
	var between []served
	for _, s := range all {
		if s.had.wrote == 0 {
			continue
		}
		if mine = append(mine, s); s.had.between > 0 {
			between = append(between, s)
		}
	}
	if len(mine) == 0 {
		return nil
	}
	out := &sample.ServedClient{Requests: len(mine),
		Whole: partOf("", mine, func(s served) int64 { return s.had.read - s.had.wrote }),
		Parts: []sample.ServedPart{
			partOf(sample.ServedSent, mine, served.sent),
			partOf(sample.ServedHere, mine, served.whole),
			partOf(sample.ServedRead, mine, served.read)}}
	if len(between) > 0 {
		out.Between = partOf(sample.ServedBetween, between, func(s served) int64 { return s.had.between })
	}
	return out
}

// sent returns the time from the client's write until the request was at the server's device, in ns.
func (s served) sent() int64 { return s.at - s.had.wrote }

// read returns the time from then on without the server's, until the client had read the reply, in ns.
func (s served) read() int64 { return s.had.read - s.at - s.whole() }

// clientSides has what clients' sockets did, by their ends, the server's first.
type clientSides map[pair][]writes.Event

// findClients finds the sockets of the clients of the connections at a place.
func (l *Log) findClients(at Place) {
	mine := map[pair]bool{}
	var open []*connection
	for k, c := range l.conns {
		if k.Place != at || k.nth != 0 {
			continue
		}
		if l.clientSides[k.pair] != nil && c.client.socket == (pair{}) {
			c.client.socket = k.pair
		}
		if mine[c.client.socket] = true; c.client.socket == (pair{}) && c.in.known && c.out.known {
			open = append(open, c)
		}
	}
	if len(open) == 0 {
		return
	}
	others := l.clientSides.bySequence(mine)
	for _, c := range open {
		c.client.socket = others.of(c)
	}
}

// bySequence finds sockets by the sequence numbers at which they wrote, and read.
type bySequence struct{ wrote, read map[uint32][]pair }

func (all clientSides) bySequence(but map[pair]bool) bySequence {
	s := bySequence{map[uint32][]pair{}, map[uint32][]pair{}}
	for of, events := range all {
		if but[of] {
			continue
		}
		for _, e := range events {
			if e.Kind == writes.Read {
				s.read[e.Seq] = append(s.read[e.Seq], of)
			} else {
				s.wrote[e.Seq] = append(s.wrote[e.Seq], of)
			}
		}
	}
	return s
}

// of returns the only socket that wrote a request of a connection and read a reply, or the zero value.
// A packet filter that changed its addresses did not change the sequence numbers.
func (s bySequence) of(c *connection) (socket pair) {
	asked := map[pair]bool{}
	turns := c.turns
	if c.talk.reads() {
		turns = nil
		for _, x := range c.pairs() {
			turns = append(turns, x.turn)
		}
	}
	for _, x := range turns {
		for _, of := range s.wrote[c.in.base+uint32(x.before)] {
			asked[of] = true
		}
	}
	for _, x := range turns {
		for _, of := range s.read[c.out.base+uint32(x.from)] {
			if !asked[of] || of == socket {
				continue
			}
			if socket != (pair{}) {
				return pair{}
			}
			socket = of
		}
	}
	return socket
}

// trim forgets what was done long before the last event. The rest may yet be a connection's that the
// log does not know.
func (all clientSides) trim() {
	const long = int64(10 * time.Second)
	keepSince(all, latest(all)-long)
}

// latest returns when the last of some events was, or 0. Those of each key are in their order.
func latest[K comparable](all map[K][]writes.Event) (at int64) {
	for _, events := range all {
		at = max(at, events[len(events)-1].At)
	}
	return at
}

// keepSince forgets the events before a time.
func keepSince[K comparable](all map[K][]writes.Event, at int64) {
	for of, events := range all {
		i := sort.Search(len(events), func(i int) bool { return events[i].At >= at })
		if all[of] = events[i:]; i == len(events) {
			delete(all, of)
		}
	}
}

// dropBefore returns the end of a list from an offset on.
func dropBefore(list []writing, offset int64) []writing {
	i := sort.Search(len(list), func(i int) bool { return list[i].end >= offset })
	return append([]writing(nil), list[i:]...)
}
