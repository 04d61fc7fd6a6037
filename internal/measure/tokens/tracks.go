package tokens

import (
	"cmp"
	"slices"
)

// track is a client's connection whose exchanges are followed.
type track struct {
	clientKey
	q     *asks
	came  *arrivals
	turns []turn
	conns []*connection // at the hops, from the server on; nil: not found at all of them
}

// tracks returns some clients' connections that have exchanges, the oldest first.
func (l *Log) tracks(of func(clientKey) bool) (out []*track) {
	for k, q := range l.asks {
		if a := l.came[k]; of(k) && a != nil && len(q.turns) > 0 {
			out = append(out, &track{clientKey: k, q: q, came: a, turns: q.complete(a.top)})
		}
	}
	slices.SortFunc(out, func(a, b *track) int {
		return cmp.Or(cmp.Compare(a.q.turns[0].sent, b.q.turns[0].sent),
			a.local.Compare(b.local), a.remote.Compare(b.remote))
	})
	return out
}

// join finds the connections of the tracks at the hops of a chain, from the server on. The one that
// a client opened has its first sequence number, which a packet filter does not change. Those behind
// a relay are assigned to as many connections in front of it as can have caused them.
func (l *Log) join(tracks []*track, chain []Place) {
	last := len(chain) - 1
	if last < 0 {
		return
	}
	byBase := map[uint32]*connection{}
	for _, c := range l.at(chain[last]) {
		byBase[c.in.base] = c
	}
	var open []*track
	for _, t := range tracks {
		if c := byBase[t.q.out.base]; c != nil && len(t.turns) > 0 {
			t.conns = make([]*connection, len(chain))
			t.conns[last] = c
			open = append(open, t)
		}
	}
	for i := last - 1; i >= 0; i-- {
		behind := l.at(chain[i])
		choices := make([][]int, len(open))
		for n, t := range open {
			choices[n] = t.choices(t.conns[i+1], behind)
		}
		var found []*track
		for n, c := range assign(choices, len(behind)) {
			if t := open[n]; c < 0 {
				t.conns = nil
			} else {
				t.conns[i] = behind[c]
				found = append(found, t)
			}
		}
		open = found
	}
}

// at returns the connections at a place whose beginning was seen, the oldest first, with their writes.
func (l *Log) at(p Place) (out []*connection) {
	for k, c := range l.conns {
		if k.Place == p && c.in.known {
			l.noteWrites(k, c)
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *connection) int {
		return cmp.Or(cmp.Compare(a.syn, b.syn), cmp.Compare(a.in.base, b.in.base))
	})
	return out
}

// choices returns the indexes of the connections behind a relay whose exchanges all happened within
// those of one in front of it, those that had the least time to spare first.
func (t *track) choices(front *connection, behind []*connection) []int {
	return ranked(len(behind), func(i int) (spare int64, ok bool) {
		if behind[i].syn < front.syn {
			return 0, false
		}
		return within(front, behind[i], t.turns)
	})
}

// within reports whether a connection's exchanges happened within those of another one, as far as a
// few of them tell, and the time that they had to spare.
func within(outer, inner *connection, turns []turn) (spare int64, ok bool) {
	const few = 100
	step := max(1, len(turns)/few)
	for i := 0; i < len(turns); i += step {
		x := turns[i]
		in, ok1 := outer.in.at(x.asked)
		in2, ok2 := inner.in.at(x.asked)
		out, ok3 := outer.out.at(x.to)
		out2, ok4 := inner.out.at(x.to)
		if !ok1 || !ok2 || !ok3 || !ok4 || in2.at < in.at || out2.at > out.at {
			return 0, false
		}
		spare += in2.at - in.at + out.at - out2.at
	}
	return spare, true
}
