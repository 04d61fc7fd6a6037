package tokens

import (
	"bytes"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
)

// http2Known is how much of the preface tells HTTP/2 from other protocols.
const http2Known = len("PRI * HTTP/2.0")

// mostTurns bounds the exchanges of one connection that are kept.
const mostTurns = 20_000

// turn is a request and its reply on a connection on which they take turns. Offsets are behind the
// last byte.
type turn struct {
	sent     int64 // when the first byte of the request left the client's device
	before   int64 // offset of the request before
	asked    int64 // offset of the request
	from, to int64 // offsets of the reply before and of this one
}

// asks has the requests of a client's connection.
type asks struct {
	out     stream
	turns   []turn
	written writings // of a relay's socket
	before  *asks    // of the connection from the same port before; nil: there was none
	until   int64    // when the client used its port again; 0: it did not
	// streams means that it speaks h2c. It has no turns: not each frame is of a request or reply.
	streams bool
}

// ask handles a packet from a client. Bytes that follow a reply begin a request.
func (l *Log) ask(k clientKey, p *capture.Packet) {
	q := l.asks[k]
	if p.Flags&capture.SYN != 0 {
		if q == nil || q.out.base != p.Seq+1 {
			l.retire(k, p.At)
			q = &asks{before: q}
			q.out.begin(p.Seq + 1)
			l.asks[k] = q
		}
		p = behindSYN(p)
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
	q.streams = q.streams || before == 0 && bytes.HasPrefix(p.Payload, []byte(http2Preface[:http2Known]))
	if q.streams || len(q.turns) == mostTurns {
		return
	}
	q.turns = appendTurn(q.turns, p.At, before, top)
	q.turns[len(q.turns)-1].asked = q.out.end
}

// appendTurn appends a turn, if bytes of a request at a time and from an offset follow bytes of a reply,
// which has come up to an offset.
func appendTurn(turns []turn, at, asked, replied int64) []turn {
	if n := len(turns); n == 0 || replied > turns[n-1].from {
		turns = append(turns, turn{sent: at, before: asked, from: replied})
	}
	return turns
}

// Turns divides the exchanges of all connections of clients over a chain of hops, from the server
// on, whose relays copy bytes. Each has two rows: of the first byte of the reply and of its last one.
// Nothing is known of the client's own part, and a relay's has both ways. The first tenth of a
// connection's exchanges, which may log in, does not count. all is the number of the others, rows and
// seen have those that were found at every hop.
func (l *Log) Turns(by Client, chain []Place) (rows [][]Row, seen []Seen, all int) {
	tracks := l.tracks(by.has)
	for _, t := range tracks {
		t.turns = t.turns[len(t.turns)/10:]
		all += len(t.turns)
	}
	l.join(tracks, chain)
	for _, t := range tracks {
		if t.conns == nil {
			continue
		}
		for _, x := range t.turns {
			if r, s, ok := x.divide(t.conns, t.came); ok {
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
