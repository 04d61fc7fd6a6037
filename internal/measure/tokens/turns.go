package tokens

import (
	"math"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
)

// mostTurns bounds the exchanges of one connection that are kept.
const mostTurns = 20_000

// turn is a request and its reply on a connection on which they take turns. Offsets are behind the
// last byte.
type turn struct {
	sent     int64 // when the first byte of the request left the client's device
	asked    int64 // offset of the request
	from, to int64 // offsets of the reply before and of this one
}

// asks has the requests of a client's connection.
type asks struct {
	out   stream
	turns []turn
}

// ask handles a packet from a client. Bytes that follow a reply begin a request.
func (l *Log) ask(k clientKey, p *capture.Packet) {
	q := l.asks[k]
	if p.Flags&capture.SYN != 0 {
		if q == nil || q.out.base != p.Seq+1 {
			q = &asks{}
			q.out.begin(p.Seq + 1)
			l.asks[k] = q
		}
		return
	}
	if q == nil {
		return
	}
	before := q.out.end
	if q.out.add(p, nil); q.out.end == before {
		return
	}
	top := int64(0)
	if a := l.came[k]; a != nil {
		top = a.top
	}
	if len(q.turns) == mostTurns {
		return
	}
	q.turns = appendTurn(q.turns, p.At, top)
	q.turns[len(q.turns)-1].asked = q.out.end
}

// appendTurn appends a turn, if bytes of a request at a time follow bytes of a reply, which has come
// up to an offset.
func appendTurn(turns []turn, at, replied int64) []turn {
	if n := len(turns); n == 0 || replied > turns[n-1].from {
		turns = append(turns, turn{sent: at, from: replied})
	}
	return turns
}

// Turns divides the exchanges of all connections from clients in a namespace over a chain of hops,
// from the server on, whose relays copy bytes. Each has two rows: of the first byte of the reply and
// of its last one. Nothing is known of the client's own part, and a relay's has both ways. The first
// tenth of a connection's exchanges, which may log in, does not count. all is the number of the
// others, rows and seen have those that were found at every hop.
func (l *Log) Turns(client int, chain []Place) (rows [][]Row, seen []Seen, all int) {
	t := tracks{log: l, byBase: map[Place]map[uint32]*connection{}, taken: map[*connection]bool{}}
	for k, q := range l.asks {
		a := l.came[k]
		if k.space != client || a == nil || len(q.turns) == 0 {
			continue
		}
		turns := q.complete(a.top)
		turns = turns[len(turns)/10:]
		all += len(turns)
		conns := t.of(q.out.base, turns, chain)
		if conns == nil {
			continue
		}
		for _, x := range turns {
			if r, s, ok := x.divide(conns, a); ok {
				rows, seen = append(rows, r), append(seen, s)
			}
		}
	}
	return rows, seen, all
}

// complete returns the turns that have a reply, with their ends.
func (q *asks) complete(top int64) (out []turn) {
	for i, x := range q.turns {
		if x.to = top; i+1 < len(q.turns) {
			x.to = q.turns[i+1].from
		}
		if x.to > x.from {
			out = append(out, x)
		}
	}
	return out
}

// divide returns the rows of an exchange over connections from the server on, and what the server
// had of it.
func (x turn) divide(conns []*connection, a *arrivals) (rows []Row, server Seen, ok bool) {
	ends := []int64{x.from + 1, x.to}
	asked := Asked{Sent: x.sent, Arrived: a.at}
	for i, end := range ends {
		at, ok := a.at(end)
		if !ok {
			return nil, server, false
		}
		asked.Texts, asked.Read = append(asked.Texts, openai.Text{Len: i + 1}), append(asked.Read, at)
	}
	var chain []Seen
	for _, c := range conns {
		var events []Event
		for i, end := range ends {
			events = append(events, Event{asked.Texts[i], end})
		}
		s, ok := c.seen(&request{end: x.asked}, &reply{events: events})
		if !ok {
			return nil, server, false
		}
		chain = append(chain, s)
	}
	rows, missed := Divide(chain, &asked)
	return rows, chain[0], missed == 0 && len(rows) == len(ends) && rows[0][Server] >= -slack
}

// tracks finds the connections of a chain of relays.
type tracks struct {
	log    *Log
	byBase map[Place]map[uint32]*connection
	taken  map[*connection]bool
}

// at returns the connections at a port by their first sequence number, which a packet filter does
// not change.
func (t *tracks) at(p Place) map[uint32]*connection {
	if t.byBase[p] == nil {
		t.byBase[p] = map[uint32]*connection{}
		for k, c := range t.log.conns {
			if k.Place == p && c.in.known {
				c.written.add(&c.out, t.log.writes[socketOf(k)])
				delete(t.log.writes, socketOf(k))
				t.byBase[p][c.in.base] = c
			}
		}
	}
	return t.byBase[p]
}

// of returns the connections at all hops of the one that a client opened with a sequence number, or
// nil.
func (t *tracks) of(base uint32, turns []turn, chain []Place) []*connection {
	n := len(chain) - 1
	if n < 0 || len(turns) == 0 {
		return nil
	}
	out := make([]*connection, n+1)
	if out[n] = t.at(chain[n])[base]; out[n] == nil {
		return nil
	}
	for i := n - 1; i >= 0; i-- {
		if out[i] = t.behind(out[i+1], turns, chain[i]); out[i] == nil {
			return nil
		}
		t.taken[out[i]] = true
	}
	return out
}

// behind returns the connection at a port whose exchanges all happened within those of a relay's, in
// the least time, or nil.
func (t *tracks) behind(outer *connection, turns []turn, at Place) (best *connection) {
	least := int64(math.MaxInt64)
	for _, c := range t.at(at) {
		if t.taken[c] || c.syn < outer.syn {
			continue
		}
		if cost, ok := within(outer, c, turns); ok && cost < least {
			best, least = c, cost
		}
	}
	return best
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
