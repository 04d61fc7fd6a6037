package tokens

import (
	"sort"

	"github.com/bridgetoll/bridgetoll/internal/kernel/writes"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// clientSide is what a client of this machine did at its socket.
type clientSide struct {
	wrote, read []writing // by their offsets among the requests, and the replies
	had         int64     // when it had read the last reply; 0: unknown
}

// take takes what clients' sockets had to do with a connection.
func (s *clientSide) take(l *Log, k key, c *connection) {
	if !c.in.known || !c.out.known {
		return
	}
	for _, e := range l.clientSides[k.pair] {
		if e.Kind == writes.Read {
			s.read = appendWriting(s.read, &c.out, e)
		} else {
			s.wrote = appendWriting(s.wrote, &c.in, e)
		}
	}
	delete(l.clientSides, k.pair)
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
			partOf(sample.ServedSent, mine, func(s served) int64 { return s.at - s.had.wrote }),
			partOf(sample.ServedHere, mine, served.whole),
			partOf(sample.ServedRead, mine, func(s served) int64 {
				return s.had.read - s.at - s.whole()
			})}}
	if len(between) > 0 {
		out.Between = partOf(sample.ServedBetween, between, func(s served) int64 { return s.had.between })
	}
	return out
}

// dropBefore returns the end of a list from an offset on.
func dropBefore(list []writing, offset int64) []writing {
	i := sort.Search(len(list), func(i int) bool { return list[i].end >= offset })
	return append([]writing(nil), list[i:]...)
}
