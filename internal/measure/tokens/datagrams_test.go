package tokens

import (
	"encoding/binary"
	"maps"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
	"github.com/bridgetoll/bridgetoll/internal/kernel/writes"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// dnsMessage returns a message of DNS with a number; a code of -1 makes it a query.
func dnsMessage(number uint16, code int) []byte {
	b := make([]byte, 20)
	binary.BigEndian.PutUint16(b, number)
	binary.BigEndian.PutUint16(b[2:], 0x100)
	if b[5] = 1; code >= 0 {
		binary.BigEndian.PutUint16(b[2:], 0x8180|uint16(code))
		b[7] = 1
	}
	return b
}

func udpPacket(at int64, out bool, src, dst netip.AddrPort, b []byte) *capture.Packet {
	return &capture.Packet{UDP: true, At: at, Device: 1, Out: out, Src: src, Dst: dst, Payload: b,
		Size: len(b)}
}

var (
	udpServer  = netip.MustParseAddrPort("10.0.0.2:53")
	udpClient  = netip.MustParseAddrPort("10.0.0.1:40000")
	udpPlace   = Place{Space: 2, Port: 53}
	udpStarted = time.Unix(1000, 0)
)

// servedBy returns what a log at the server makes of packets.
func servedBy(packets ...*capture.Packet) *sample.Served {
	l := NewServer()
	l.Serve(udpPlace, nil)
	for _, p := range packets {
		l.Add(udpPlace.Space, p)
	}
	var all Requests
	all.Take(l, udpPlace, math.MaxInt64)
	e := &sample.Served{}
	all.Note(e, udpStarted)
	return e
}

// TestServedDatagrams pairs requests with replies: by their number, in order without one, and not
// at all if one is lost or comes late.
func TestServedDatagrams(t *testing.T) {
	at := func(us int64) int64 { return udpStarted.UnixNano() + us*1000 }
	ask := func(us int64, b []byte) *capture.Packet {
		return udpPacket(at(us), false, udpClient, udpServer, b)
	}
	reply := func(us int64, b []byte) *capture.Packet {
		return udpPacket(at(us), true, udpServer, udpClient, b)
	}
	other := *ask(3, dnsMessage(1, -1))
	other.Device = 2 // the same packet in a bridge
	for name, tt := range map[string]struct {
		packets                         []*capture.Packet
		requests, unmatched, unanswered int
		mean                            float64 // µs
		errors                          map[string]int
	}{
		"out of order": {packets: []*capture.Packet{ask(0, dnsMessage(1, -1)), ask(10, dnsMessage(2, -1)),
			reply(20, dnsMessage(2, 0)), reply(100, dnsMessage(1, 0))}, requests: 2, mean: 55},
		"a lost query": {packets: []*capture.Packet{ask(0, dnsMessage(1, -1)), ask(10, dnsMessage(2, -1)),
			reply(20, dnsMessage(2, 0))}, requests: 1, unanswered: 1, mean: 10},
		"errors": {packets: []*capture.Packet{ask(0, dnsMessage(1, -1)), reply(20, dnsMessage(1, 2)),
			ask(30, dnsMessage(2, -1)), reply(50, dnsMessage(2, 5))}, requests: 2, mean: 20,
			errors: map[string]int{"SERVFAIL": 1, "REFUSED": 1}},
		"a stray reply": {packets: []*capture.Packet{ask(0, dnsMessage(1, -1)), reply(20, dnsMessage(1, 0)),
			reply(30, dnsMessage(7, 0))}, requests: 1, unmatched: 1, mean: 20},
		"older than the log": {packets: []*capture.Packet{reply(0, dnsMessage(1, 0)),
			ask(10, dnsMessage(2, -1)), reply(20, dnsMessage(2, 0))}, requests: 1, mean: 10},
		"sent again": {packets: []*capture.Packet{ask(0, dnsMessage(1, -1)), ask(50, dnsMessage(1, -1)),
			reply(60, dnsMessage(1, 0)), reply(70, dnsMessage(1, 0))}, requests: 2, mean: 40},
		"too late": {packets: []*capture.Packet{ask(0, dnsMessage(1, -1)),
			ask(11e6, dnsMessage(2, -1)), reply(11e6+20, dnsMessage(1, 0)), reply(11e6+30, dnsMessage(2, 0))},
			requests: 1, unmatched: 1, unanswered: 1, mean: 30},
		"without numbers": {packets: []*capture.Packet{ask(0, []byte("a")), ask(10, []byte("b")),
			reply(20, []byte("A")), reply(40, []byte("B"))}, requests: 2, mean: 25},
		"without numbers, lost": {packets: []*capture.Packet{ask(0, []byte("a")),
			ask(3e6, []byte("b")), reply(3e6+40, []byte("B"))}, requests: 1, unanswered: 1, mean: 40},
		"in two devices": {packets: []*capture.Packet{ask(0, dnsMessage(1, -1)), &other,
			reply(20, dnsMessage(1, 0))}, requests: 1, mean: 20},
		"no query": {packets: []*capture.Packet{ask(0, []byte{1})}, unanswered: 1},
	} {
		e := servedBy(tt.packets...)
		if e.Requests != tt.requests || e.Unmatched != tt.unmatched ||
			e.Unanswered != tt.unanswered || math.Abs(1e6*e.Whole.Mean-tt.mean) > 1e-3 ||
			!maps.Equal(e.Errors, tt.errors) && len(e.Errors)+len(tt.errors) > 0 {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// TestServedDatagramsBy has what the server's sockets sent, and when its thread waited for a CPU.
func TestServedDatagramsBy(t *testing.T) {
	l := NewServer()
	l.Serve(udpPlace, nil)
	var all Requests
	for n := range uint16(20) {
		at := udpStarted.UnixNano() + int64(n)*int64(10*time.Millisecond)
		query, answer := dnsMessage(n, -1), dnsMessage(n, 0)
		l.Add(2, udpPacket(at, false, udpClient, udpServer, query))
		since, waited := waitsAndServes(l, 9, int(n), at, at+90_000)
		l.AddWrite(2, writes.Event{Kind: writes.Datagram, At: at + 90_000, Local: 53, Remote: 40000,
			LocalAddr: udpServer.Addr(), RemoteAddr: udpClient.Addr(),
			Seq: binary.BigEndian.Uint32(answer), Len: uint32(len(answer)), Thread: 9,
			Since: since, Waited: waited})
		l.Add(2, udpPacket(at+97_000, true, udpServer, udpClient, answer))
		if n == 10 {
			all.Take(l, udpPlace, 0)
		}
	}
	all.Take(l, udpPlace, math.MaxInt64)
	var e sample.Served
	all.Note(&e, udpStarted)
	if e.Requests != 20 || !e.Writes || e.Connections != 1 || e.Unmatched != 0 {
		t.Fatalf("%+v", e)
	}
	for i, want := range []float64{0, 40e-6, 50e-6, 0, 7e-6, 0} {
		if p := e.Parts[i]; math.Abs(p.P50-want) > 1e-9 {
			t.Errorf("%s: %g s, want %g", p.Part, p.P50, want)
		}
	}
}

// udpWorld is a client, a relay that changes the client's addresses, and a server.
type udpWorld struct {
	*Log
	chain []Hop
	at    int64
	all   []Exchange
}

var (
	udpRelay  = netip.MustParseAddrPort("10.0.1.1:53")
	udpDialer = netip.MustParseAddrPort("10.0.1.1:50000")
)

func newUDPWorld(writes bool) *udpWorld {
	w := &udpWorld{Log: NewLog(nil), at: udpStarted.UnixNano(), chain: []Hop{
		{Place: udpPlace, Name: "named", From: []Place{{Space: 1, Port: 53}}},
		{Place: Place{Space: 1, Port: 53}, Name: "proxy"}}}
	w.Serve(udpPlace, nil)
	w.Serve(Place{Space: 1, Port: 53}, nil)
	w.Dial(1, 53)
	w.Dial(0, 53)
	return w
}

// request makes a request with an instant each 10 µs. The reply is as the server sent it, and what
// the relay made of it.
func (w *udpWorld) request(query, reply, relayed []byte, sent bool) {
	at := func(step int64) int64 { return w.at + step*10_000 }
	w.Add(0, udpPacket(at(1), true, udpClient, udpRelay, query))
	w.Add(1, udpPacket(at(2), false, udpClient, udpRelay, query))
	w.Add(1, udpPacket(at(3), true, udpDialer, udpServer, query))
	w.Add(2, udpPacket(at(4), false, udpDialer, udpServer, query))
	if reply != nil {
		if sent {
			w.AddWrite(2, writes.Event{Kind: writes.Datagram, At: at(5), Local: 53, Remote: 50000,
				LocalAddr: udpServer.Addr(), RemoteAddr: udpDialer.Addr(),
				Seq: binary.BigEndian.Uint32(reply), Len: uint32(len(reply))})
		}
		w.Add(2, udpPacket(at(6), true, udpServer, udpDialer, reply))
		w.Add(1, udpPacket(at(7), false, udpServer, udpDialer, reply))
		w.Add(1, udpPacket(at(8), true, udpRelay, udpClient, relayed))
		w.Add(0, udpPacket(at(9), false, udpRelay, udpClient, relayed))
	}
	w.all = append(w.all, Exchange{Slot: len(w.all), Local: 40000, Sent: w.at, Read: at(10)})
	w.at = at(20)
}

func TestFollowUDP(t *testing.T) {
	w := newUDPWorld(true)
	for n := range uint16(50) {
		w.request(dnsMessage(n, -1), dnsMessage(n, 0), dnsMessage(n, 0), true)
	}
	for range 2 { // the second time as if the first had not been
		got := w.FollowUDP(0, w.chain, w.all, false)
		parts := map[sample.Part]float64{}
		for _, g := range got.Segments {
			parts[g.Part] += g.MidMean
		}
		if got.Followed != 50 || got.Trips != 50 || math.Abs(got.MidMean-100e-6) > 1e-9 {
			t.Fatalf("%+v", got)
		}
		for part, want := range map[sample.Part]float64{sample.PartClient: 20, sample.PartNetwork: 40,
			sample.PartRelayed: 20, sample.PartServer: 10, sample.PartServerQueue: 10} {
			if math.Abs(1e6*parts[part]-want) > 1e-3 {
				t.Errorf("%s: %v s of %v", part, parts[part], parts)
			}
		}
		if _, tcp := parts[sample.PartServerTCP]; tcp || len(parts) != 5 {
			t.Errorf("parts %v", parts)
		}
	}
	asked, replies := w.AskedUDP(Client{Dialled: []netip.AddrPort{udpRelay}}, 10)
	if len(asked) != 50 || replies.Unanswered != 0 {
		t.Fatalf("%+v", replies)
	}
	if got := w.FollowUDP(0, w.chain, asked, true); got.Followed != 50 ||
		math.Abs(got.MidMean-80e-6) > 1e-9 || len(got.Segments) != 8 {
		t.Errorf("%+v", got)
	}
	w.request(quicOpens(1), []byte("reply"), []byte("reply"), true)
	asked, replies = w.AskedUDP(Client{Dialled: []netip.AddrPort{udpRelay}}, 10)
	if len(asked) != 0 || replies.TwoWay != 1 {
		t.Errorf("of QUIC %+v, %+v", asked, replies)
	}
}

// TestFollowUDPWithout lacks what BPF shows.
func TestFollowUDPWithout(t *testing.T) {
	w := newUDPWorld(false)
	w.request([]byte("ping"), []byte("pong"), []byte("pong"), false)
	got := w.FollowUDP(0, w.chain, w.all, false)
	if got.Followed != 1 || got.Segments[4].Part != sample.PartServer+" + "+sample.PartServerQueue ||
		math.Abs(got.Segments[4].MidMean-20e-6) > 1e-9 {
		t.Errorf("%+v", got)
	}
}

// TestFollowUDPLost names what is missing of requests that cannot be followed.
func TestFollowUDPLost(t *testing.T) {
	for name, tt := range map[string]struct {
		make        func(w *udpWorld)
		after, want string
	}{
		"no reply": {func(w *udpWorld) { w.request(dnsMessage(1, -1), nil, nil, true) },
			"request at named", "reply leaving named"},
		"a relay that changes the reply": {func(w *udpWorld) {
			w.request(dnsMessage(1, -1), dnsMessage(1, 0), dnsMessage(1, 2), false)
		}, "reply at proxy", "reply leaving proxy"},
		"another client's too": {func(w *udpWorld) {
			w.Add(1, udpPacket(w.at+15_000, true, netip.MustParseAddrPort("10.0.1.1:50001"), udpServer,
				[]byte("ping")))
			w.request([]byte("ping"), []byte("pong"), []byte("pong"), false)
		}, "request at proxy", "request leaving proxy"},
		"not sent": {func(w *udpWorld) {
			w.all = append(w.all, Exchange{Local: 40000, Sent: w.at, Read: w.at + 1000})
		}, "request sent", "request at the client's device"},
	} {
		w := newUDPWorld(false)
		tt.make(w)
		got := w.FollowUDP(0, w.chain, w.all, false)
		if got.Followed != 0 || len(got.Broken) != 1 || got.Broken[0].After != tt.after ||
			got.Broken[0].Want != tt.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// FuzzDatagrams pairs no more requests than there are, whatever the bytes.
func FuzzDatagrams(f *testing.F) {
	f.Add(dnsMessage(1, -1), dnsMessage(1, 2), []byte("x"))
	f.Add([]byte{}, []byte{0, 1}, make([]byte, dnsHeader))
	f.Fuzz(func(t *testing.T, a, b, c []byte) {
		var packets []*capture.Packet
		for i, x := range [][]byte{a, b, c} {
			at := udpStarted.UnixNano() + int64(i)*1000
			packets = append(packets, udpPacket(at, false, udpClient, udpServer, x),
				udpPacket(at+500, true, udpServer, udpClient, c))
		}
		e := servedBy(packets...)
		if e.TwoWay == 0 && (e.Requests+e.Unanswered != 3 || e.Requests+e.Unmatched != 3) {
			t.Errorf("%+v", e)
		}
	})
}

// TestServedAskers has clients of this machine at the server's address and behind a packet filter, and
// one that cannot be told from another one behind it. The third query of each is lost on its way.
func TestServedAskers(t *testing.T) {
	published := netip.MustParseAddrPort("192.0.2.1:5300")
	for name, tt := range map[string]struct {
		sockets  []netip.AddrPort // from which the query is sent
		to       netip.AddrPort
		requests int // of which the client is known
	}{
		"itself":     {[]netip.AddrPort{udpClient}, udpServer, 9},
		"translated": {[]netip.AddrPort{netip.MustParseAddrPort("10.7.0.1:50000")}, published, 9},
		"two": {[]netip.AddrPort{netip.MustParseAddrPort("10.7.0.1:50000"),
			netip.MustParseAddrPort("10.7.0.2:50000")}, published, 0},
	} {
		l := NewServer()
		l.Serve(udpPlace, nil)
		for n := range uint16(10) {
			at := udpStarted.UnixNano() + int64(n)*int64(10*time.Millisecond)
			query, answer := dnsMessage(n, -1), dnsMessage(n, 0)
			for _, socket := range tt.sockets {
				e := writes.Event{Kind: writes.Asked, Local: socket.Port(), LocalAddr: socket.Addr(),
					Remote: tt.to.Port(), RemoteAddr: tt.to.Addr(), Seq: binary.BigEndian.Uint32(query),
					Len: uint32(len(query)), NetNS: 7, Socket: socket.Port()}
				for _, device := range []int64{20, 15} { // it passes two
					e.At = at - device*us
					l.AddWrite(-1, e)
				}
				if e.At = at + 150*us; n != 3 {
					e.Kind, e.Local, e.Remote, e.Len = writes.Read, 0, 0, uint32(len(answer))
					l.AddWrite(-1, e)
				}
			}
			if n == 3 {
				continue
			}
			l.Add(2, udpPacket(at, false, udpClient, udpServer, query))
			l.Add(2, udpPacket(at+100*us, true, udpServer, udpClient, answer))
		}
		var all Requests
		all.Take(l, udpPlace, math.MaxInt64)
		e := &sample.Served{}
		all.Note(e, udpStarted)
		switch c := e.Client; {
		case tt.requests == 0:
			if c != nil {
				t.Errorf("%s: %+v", name, c)
			}
		case c == nil || c.Requests != tt.requests || math.Abs(c.Whole.Mean-170e-6) > 1e-9 ||
			math.Abs(c.Parts[0].Mean-20e-6) > 1e-9 || math.Abs(c.Between.P50-9830e-6) > 1e-9:
			t.Errorf("%s: %+v, %+v", name, e, c)
		}
	}
}

// TestServedAskersUntilTheNext has three queries of one socket, which are taken one by one: the second
// one is asked 40 µs after the reply to the first one was read, the third one at another time.
func TestServedAskersUntilTheNext(t *testing.T) {
	at := func(x int64) int64 { return udpStarted.UnixNano() + x*us }
	for name, tt := range map[string]struct {
		third int64   // after the beginning, µs
		mean  float64 // µs
	}{"after the second": {500, 45}, "during the second": {250, 40}} {
		l := NewServer()
		l.Serve(udpPlace, nil)
		var all Requests
		for n, asked := range []int64{0, 200, tt.third} {
			query, answer := dnsMessage(uint16(n), -1), dnsMessage(uint16(n), 0)
			e := writes.Event{Kind: writes.Asked, Local: udpClient.Port(), LocalAddr: udpClient.Addr(),
				Remote: udpServer.Port(), RemoteAddr: udpServer.Addr(), NetNS: 7,
				Socket: udpClient.Port(), At: at(asked), Len: uint32(len(query)),
				Seq: binary.BigEndian.Uint32(query)}
			l.AddWrite(-1, e)
			l.Add(2, udpPacket(at(asked+10), false, udpClient, udpServer, query))
			left := map[int]int64{0: 100, 1: 390, 2: 600}[n]
			l.Add(2, udpPacket(at(left), true, udpServer, udpClient, answer))
			e.Kind, e.Local, e.Remote, e.Len = writes.Read, 0, 0, uint32(len(answer))
			e.At = at(left + 60)
			l.AddWrite(-1, e)
			all.Take(l, udpPlace, 0)
		}
		e := &sample.Served{}
		all.Note(e, udpStarted)
		if c := e.Client; c == nil || c.Requests != 3 ||
			math.Abs(c.Between.Mean-tt.mean*1e-6) > 1e-9 {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// quicOpens returns how a client opens a connection of QUIC.
func quicOpens(version uint32) []byte {
	b := make([]byte, 1200)
	b[0], b[5] = 0xc3, 8
	binary.BigEndian.PutUint32(b[1:], version)
	return b
}

// TestServedTwoWayDatagrams leaves out QUIC and WireGuard, of which the watching may not see how they
// open, and no protocol whose datagrams merely look like theirs.
func TestServedTwoWayDatagrams(t *testing.T) {
	quic := func(i int) []byte { // five bits of the first byte are hidden
		return []byte{0x40 | byte(i*11&0x1f), byte(i), 3, 4, 5, 6, 7, 8}
	}
	sealed := func(i int) []byte { // the session of one way is another one than that of the other
		b := make([]byte, 96)
		b[0], b[4], b[8] = 4, byte(i&1), byte(i/2)
		return b
	}
	for name, c := range map[string]struct {
		first []byte // nil: none is special
		next  func(int) []byte
		left  bool
		dns   bool
	}{
		"QUIC":              {first: quicOpens(1), next: quic, left: true},
		"QUIC, version 2":   {first: quicOpens(0x6b3343cf), next: quic, left: true},
		"QUIC that is open": {next: quic, left: true},
		"WireGuard":         {first: append([]byte{1}, make([]byte, 147)...), next: sealed, left: true},
		"WireGuard later":   {next: sealed, left: true},
		"a kind in four bytes": {next: func(i int) []byte {
			return append([]byte{4}, make([]byte, 95)...)
		}},
		"CoAP": {next: func(i int) []byte { return []byte{0x41 + byte(i&1), 1, 0, byte(i), 9} }},
		"text": {next: func(i int) []byte { return []byte{'a' + byte(i%26), '=', '1', '2', '3', '4'} }},
		"another version": {first: quicOpens(0x01020304),
			next: func(i int) []byte { return []byte{9, 9, 9, byte(i)} }},
		"DNS": {next: func(i int) []byte { return dnsMessage(uint16(i/2), -1+i&1) }, dns: true},
	} {
		const n = 50
		var all []*capture.Packet
		for i := range n {
			at := udpStarted.UnixNano() + int64(i)*int64(time.Millisecond)
			asks := c.next(2 * i)
			if i == 0 && c.first != nil {
				asks = c.first
			}
			all = append(all, udpPacket(at, false, udpClient, udpServer, asks),
				udpPacket(at+1000, true, udpServer, udpClient, c.next(2*i+1)))
		}
		got, want := servedBy(all...), sample.Served{Requests: n, Unread: n}
		switch {
		case c.left:
			want = sample.Served{TwoWay: 1}
		case c.dns:
			want.Unread = 0
		}
		if got.Requests != want.Requests || got.TwoWay != want.TwoWay || got.Unread != want.Unread {
			t.Errorf("%s: %d requests, %d unread, %d connections left out", name, got.Requests,
				got.Unread, got.TwoWay)
		}
	}
}
