package tokens

import (
	"bytes"
	"errors"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
	"github.com/bridgetoll/bridgetoll/internal/kernel/writes"
	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
)

// Seen is a request and its response as a server or relay had them. Times are CLOCK_REALTIME, ns.
type Seen struct {
	Mark     uint32 // 0: it has none
	ByID     bool   // the mark was in the request's header
	Came     int64  // when the request's last byte came
	Events   []Event
	Departed []int64 // when the last byte of each event left the device
	// Left is when it had left TCP, by the sender's clock of timestamps; nil: unknown.
	Left []int64
	// Wrote and Sent are when the program wrote the last byte of each event, and when TCP sent it;
	// nil: unknown. Waits are why TCP did not send it at once.
	Wrote, Sent []int64
	Waits       []string
	Reply       Reply
	// Replied is when the last byte of a plain reply left the device; 0: unknown.
	Replied int64 `json:",omitempty"`
	// Coding is that of the content of a response that is not decoded, as the server calls it.
	Coding string `json:",omitempty"`
}

// Reply is how a request with a mark was answered.
type Reply int

const (
	Streamed Reply = iota
	Plain          // by something else than a stream, of which a gateway may make one
	// Aside is a plain reply of which no gateway makes tokens: to a request without a body, or an
	// error.
	Aside
)

// tick is the unit of the timestamps in Linux's TCP options, in ns.
const tick = 1_000_000

type connection struct {
	in, out stream
	// asking and answering decode the streams; nil: nothing does.
	asking, answering func([]byte)
	requests          []*request
	replies           []*reply
	http2             *streams // nil: it is not HTTP/2, or not decoded
	greeting          greeting
	syn               int64 // when it came; 0: unknown
	offset            int64 // from the sender's clock of timestamps to CLOCK_REALTIME, ns
	stamped           bool  // offset is known
	over              bool
	before            *connection // between the same ports; nil: none, or it was taken
	acked             []int64     // when the client's acknowledgements came
	turns             []turn      // of a log that joins connections
	talk              talk        // the same
	written           writings
	untranslated      bool       // its socket has the packets' addresses: writes to it came with them
	client            clientSide // of a log that joins connections
}

type key struct {
	Place
	pair
	nth int // of connections that others followed between the same ports; 0: it is the last one
}

type clientKey struct {
	space int
	pair
	nth int // the same
}

// portIn is a port in a namespace, at any of its addresses.
type portIn struct {
	space int
	port  uint16
}

// Log keeps what captures saw of the connections to some ports. Payload is decoded at once, and
// only lengths and hashes of texts are kept. Not for concurrent use.
type Log struct {
	// Several means that the requests ask for several choices. Without it, an event is of the only one
	// whatever its index is.
	Several bool
	// Between says what lies between the devices that exchanges pass; nil: nobody asks.
	Between Between

	ours    func(mark uint32) bool // nil: nothing is decoded
	joins   bool                   // connections that are older than the log are followed
	servers map[portIn][]server    // by ports
	clients map[portIn]bool        // ports that clients in a namespace dial
	conns   map[key]*connection
	came    map[clientKey]*arrivals
	cameTos map[portIn][]clientKey // the keys of came by the client's port
	asks    map[clientKey]*asks    // of a log that decodes nothing
	// writes are those of the servers whose connection is not yet known.
	writes sockets
	// dialWrites are the writes to sockets that dialled a place.
	dialWrites sockets
	runs       map[uint32][]run // of threads that write, in their order
	// clientSides are the writes and reads of the clients' sockets, of a log that joins
	// connections, and ports those that they dial.
	ports       map[uint16]bool
	clientSides clientSides
	// dialogs has what was seen of UDP, and datagrams what the servers' sockets sent.
	dialogs   map[dialogKey]*dialog
	datagrams map[sentKey][]writes.Event
	askers    askers
	latest    int64 // when the last UDP packet was seen
	replaced  int   // connections between whose ports there was another one later
	passings  passings
}

// NewLog returns an empty log. ours reports whether a number is a request's mark. With a nil ours,
// the log decodes nothing, and has what Turns returns instead.
func NewLog(ours func(mark uint32) bool) *Log {
	return &Log{ours: ours, servers: map[portIn][]server{}, clients: map[portIn]bool{},
		conns: map[key]*connection{}, came: map[clientKey]*arrivals{},
		cameTos: map[portIn][]clientKey{}, asks: map[clientKey]*asks{},
		writes: sockets{}, dialWrites: sockets{}, runs: map[uint32][]run{},
		clientSides: clientSides{}, ports: map[uint16]bool{},
		dialogs: map[dialogKey]*dialog{}, datagrams: map[sentKey][]writes.Event{},
		passings: newPassings()}
}

// Add adds a packet that was seen in a namespace.
func (l *Log) Add(space int, p *capture.Packet) {
	if l.Between != nil {
		l.passings.note(space, p)
	}
	if p.Bridged {
		return
	}
	if p.UDP {
		l.addDatagram(space, p)
		return
	}
	if !p.Out {
		if at, ok := l.serverAt(space, p.Dst); ok {
			l.received(key{Place: at, pair: pair{p.Dst, p.Src}}, p)
		}
		if l.dials(space, p.Src) {
			l.arrived(clientKey{space: space, pair: pair{p.Dst, p.Src}}, p)
		}
		return
	}
	if at, ok := l.serverAt(space, p.Src); ok {
		l.sent(key{Place: at, pair: pair{p.Src, p.Dst}}, p)
	}
	if l.dials(space, p.Dst) {
		k := clientKey{space: space, pair: pair{p.Src, p.Dst}}
		if a := l.came[k]; a != nil && p.Flags&capture.ACK != 0 {
			a.acknowledge(p.At, p.Ack)
		}
		if l.ours == nil {
			l.ask(k, p)
		}
	}
}

// begin begins a connection. One between the same ports is over: what was seen of it stays.
func (l *Log) begin(k key) *connection {
	c := &connection{before: l.conns[k]}
	if c.before != nil {
		before := k
		l.replaced++
		before.nth = l.replaced
		l.conns[before] = c.before
		c.before.end()
	}
	l.conns[k] = c
	if l.ours != nil {
		l.decode(c)
	}
	return c
}

// text returns what reads the events of a reply.
func (l *Log) text() openai.Reader { return openai.NewReader(l.Several) }

// decode makes a connection's streams be decoded.
func (l *Log) decode(c *connection) {
	var heads []bool // of the requests whose reply has not begun
	asking := requests(l.ours, func(r *request) {
		c.requests, heads = append(c.requests, r), append(heads, r.head)
	})
	headed := func() (yes bool) {
		if len(heads) > 0 {
			yes, heads = heads[0], heads[1:]
		}
		return yes
	}
	answering := replies(headed, l.text(), func(r *reply) { c.replies = append(c.replies, r) })
	c.asking = func(b []byte) {
		c.greeting.feed(b)
		if c.http2 != nil {
			c.http2.asks.feed(b)
			return
		}
		if asking.feed(b); errors.Is(asking.err, errHTTP2) {
			l.speakHTTP2(c, asking.offset)
			c.http2.asks.synced, c.http2.asks.before = true, []byte(http2Rest)
			c.http2.asks.feed(b[int64(len(b))-(c.in.end-asking.offset):])
		}
	}
	c.answering = func(b []byte) {
		if c.http2 != nil {
			c.http2.answers.feed(b)
			return
		}
		answering.feed(b)
	}
}

// speakHTTP2 makes a connection be decoded as HTTP/2 from an offset of its requests on.
func (l *Log) speakHTTP2(c *connection, asked int64) {
	c.http2 = newStreams(asked, c.out.end, l.ours, l.text(), func(q *request, r *reply) {
		c.requests, c.replies = append(c.requests, q), append(c.replies, r)
	})
}

// listen makes the connection's talk read its streams, which have begun.
func (l *Log) listen(c *connection) {
	if l.joins {
		c.in.beginnings, c.out.beginnings = c.talk.request, c.talk.reply
	}
}

// received handles a packet to a server.
func (l *Log) received(k key, p *capture.Packet) {
	c := l.conns[k]
	if p.Flags&(capture.SYN|capture.ACK) == capture.SYN {
		if c == nil || c.in.base != p.Seq+1 {
			c = l.begin(k)
			c.in.begin(p.Seq + 1)
			l.listen(c)
		}
		if !c.out.known { // else the server has answered one
			c.syn = p.At
		}
		if p.Size == 0 {
			return
		}
		p = behindSYN(p)
	}
	if c == nil {
		// The connection is older than the log. It is joined at a request, whose acknowledgement
		// number is where the response begins.
		if !l.joinable(p) {
			return
		}
		c = l.begin(k)
		c.in.begin(p.Seq)
		if l.ours != nil && areHTTP2(p.Payload) {
			l.speakHTTP2(c, 0)
		} else {
			c.out.begin(p.Ack)
		}
		l.listen(c)
	}
	if p.Flags&capture.ACK != 0 {
		c.acked = append(c.acked, p.At)
	}
	if p.Flags&capture.RST != 0 {
		c.end()
	}
	before := c.in.end
	if c.in.add(p, c.asking); l.joins && c.in.end > before {
		c.turns = appendTurn(c.turns, p.At, before, c.out.end)
		c.turns[len(c.turns)-1].asked = c.in.end
	}
}

// behindSYN returns a packet without the SYN in front of its payload (TCP Fast Open).
func behindSYN(p *capture.Packet) *capture.Packet {
	data := *p
	data.Seq++
	return &data
}

// joinable reports whether a connection that is older than the log is joined at a packet.
func (l *Log) joinable(p *capture.Packet) bool {
	if l.ours == nil {
		return l.joins && p.Size > 0
	}
	line, _, _ := bytes.Cut(p.Payload, []byte("\r\n"))
	return bytes.HasSuffix(line, []byte(" HTTP/1.1")) || areHTTP2(p.Payload)
}

// sent handles a packet from a server.
func (l *Log) sent(k key, p *capture.Packet) {
	c := l.conns[k]
	if c == nil {
		return
	}
	if p.Flags&capture.SYN != 0 {
		if !c.out.known || c.out.end == 0 && c.out.base != p.Seq+1 { // it answers a SYN anew
			c.out.begin(p.Seq + 1)
			l.listen(c)
		}
		if c.syn != 0 && p.TSVal != 0 && !c.stamped {
			c.offset, c.stamped = c.syn-int64(p.TSVal)*tick, true
		}
		return
	}
	if !c.out.known && c.http2 != nil && p.Size > 0 { // others' replies may be under way
		c.out.begin(p.Seq)
	}
	c.out.add(p, c.answering)
	if p.Flags&(capture.FIN|capture.RST) == 0 {
		return
	}
	c.end()
}

// end notes that the connection is over.
func (c *connection) end() {
	c.over = true
	if n := len(c.replies); n > 0 && !c.replies[n-1].ended { // a body may end with the connection
		c.replies[n-1].ended = true
		if len(c.out.pending) == 0 {
			c.replies[n-1].end(c.out.end)
		}
	}
}

// Take returns what was seen of streamed responses, and of other replies to requests with a mark,
// at a place since the last call, and forgets it. Requests whose response has not ended stay.
func (l *Log) Take(at Place) (out []Seen) {
	for k, c := range l.conns {
		if k.Place != at {
			continue
		}
		l.noteWrites(k, c)
		out, c.before = append(out, c.take()...), nil
		if c.over {
			delete(l.conns, k)
		}
	}
	return out
}

func (c *connection) take() (out []Seen) {
	n := 0
	for ; n < min(len(c.requests), len(c.replies)); n++ {
		q, r := c.requests[n], c.replies[n]
		if !r.ended && n == len(c.replies)-1 {
			break
		}
		how := replyTo(q, r)
		if how != Streamed && q.mark == 0 {
			continue
		}
		if s, ok := c.seen(q, r); ok {
			s.Reply, s.Coding = how, r.coding
			if m, ok := c.out.at(r.size); ok && how != Streamed {
				s.Replied = m.at
			}
			out = append(out, s)
		}
	}
	c.requests, c.replies = c.requests[n:], c.replies[n:]
	if n > 0 && len(c.requests) == 0 && len(c.replies) == 0 &&
		(c.http2 == nil || len(c.http2.under) == 0) {
		c.forget()
	}
	return out
}

func replyTo(q *request, r *reply) Reply {
	switch {
	case q.chat && (len(r.events) > 0 || r.coding != ""):
		return Streamed
	case q.chat && q.body && !r.failed:
		return Plain
	}
	return Aside
}

func (c *connection) forget() {
	c.in.forget()
	c.out.forget()
	c.acked, c.written = nil, writings{}
}

// Sealed returns what was seen at a place of a request over TLS, or false if it was not seen, or
// not all of it yet. The client dials another place, or the same one; relays in between copy its
// bytes.
func (l *Log) Sealed(by Client, at, dialed Place, a *Asked) (s Seen, ok bool) {
	base, ok := l.Base(by, a.Local, a.Sent)
	if !ok {
		return s, false
	}
	return l.SealedFrom(base, at, dialed, a)
}

// Base returns the sequence number with which the response stream to a client's port begins, of the
// connection that was open at a time. ok is false if it was not seen.
func (l *Log) Base(by Client, local uint16, at int64) (base uint32, ok bool) {
	if came := l.cameTo(by, local, at); came != nil {
		return came.base, true
	}
	return 0, false
}

// SealedFrom returns what Sealed does, for the response stream that begins with a sequence number.
func (l *Log) SealedFrom(base uint32, at, dialed Place, a *Asked) (s Seen, ok bool) {
	c := l.find(dialed, func(_ key, c *connection) bool { // no packet filter changes its numbers
		return c.out.known && c.out.base == base
	})
	if c != nil && at != dialed {
		hello := c.greeting
		c = l.find(at, func(_ key, c *connection) bool {
			return hello.seen && c.greeting.seen && c.greeting.Hello == hello.Hello
		})
	}
	if c == nil {
		return s, false
	}
	events := make([]Event, len(a.Ends))
	for i, end := range a.Ends {
		events[i] = Event{a.Texts[i], end}
	}
	return c.seen(&request{mark: a.Mark, byID: true, end: a.Asked + c.greeting.at},
		&reply{events: events})
}

// find returns a connection at a place, with its writes, or nil.
func (l *Log) find(at Place, is func(key, *connection) bool) *connection {
	for k, c := range l.conns {
		if k.Place == at && is(k, c) {
			l.noteWrites(k, c)
			return c
		}
	}
	return nil
}

func (c *connection) seen(q *request, r *reply) (s Seen, ok bool) {
	came, ok := c.in.at(q.end)
	if q.end == 0 || !ok {
		return s, false
	}
	s = Seen{Mark: q.mark, ByID: q.byID, Came: came.at, Events: r.events}
	for _, e := range r.events {
		m, ok := c.out.at(e.Offset)
		if !ok {
			return s, false
		}
		s.Departed = append(s.Departed, m.at)
		if c.stamped {
			s.Left = append(s.Left, c.offset+int64(m.tsval)*tick)
		}
	}
	c.noteWrites(&s)
	return s, true
}

// AddWrite adds a write, a segment or a datagram of a socket in a namespace, or what a client did
// at its own, for which any number of a namespace will do. Its time must be CLOCK_REALTIME's.
func (l *Log) AddWrite(space int, e writes.Event) {
	p := pairOf(&e)
	at, ours := l.serverAt(space, p.local)
	switch {
	case l.askers.add(p, &e):
	case l.joins && !ours && l.ports[e.Remote]:
		from := pair{p.remote, p.local}
		l.clientSides[from] = append(l.clientSides[from], e)
	case ours && e.Kind == writes.Datagram:
		l.addSent(space, p, e)
	case ours:
		c := l.conns[key{Place: at, pair: p}]
		for c != nil && c.before != nil && e.At < c.syn {
			c = c.before
		}
		if c == nil || !c.out.known {
			l.writes.add(space, e)
			break
		}
		c.untranslated = true
		c.written.add(&c.out, l.writes.own(space, p)...)
		c.written.add(&c.out, e)
	}
	if l.dials(space, p.remote) && e.Kind == writes.Write {
		l.dialWrites.add(space, e)
	}
}

// noteWrites adds to a connection the writes to its socket, once it is known where they begin.
func (l *Log) noteWrites(k key, c *connection) {
	if len(l.writes) == 0 || k.nth != 0 || !c.out.known {
		return
	}
	if c.untranslated {
		c.written.add(&c.out, l.writes.own(k.Space, k.pair)...)
		return
	}
	c.written.add(&c.out, l.writes.take(k.Space, k.pair, func(p pair) bool {
		at, ok := l.serverAt(k.Space, p.local)
		return !ok || at != k.Place || l.conns[key{Place: at, pair: p}] != nil
	})...)
}

// Forget drops what came to clients, and writes of unknown connections. It keeps the connections.
func (l *Log) Forget() {
	clear(l.came)
	clear(l.cameTos)
	clear(l.writes)
	for _, c := range l.conns {
		c.forget()
	}
}
