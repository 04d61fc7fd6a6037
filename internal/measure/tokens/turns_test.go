package tokens

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
)

const us = 1000 // ns

// over plays connections from clients in namespace 0 over a relay at port 80 of namespace 1 to a
// server at port 5432 of namespace 2.
type over struct {
	log  *Log
	base uint32 // of clients' sequence numbers
}

var (
	clientAt, relayAt     = netip.MustParseAddr("10.0.0.1"), netip.MustParseAddrPort("10.0.0.2:80")
	relayAt2, serverAt    = netip.MustParseAddr("10.0.1.1"), netip.MustParseAddrPort("10.0.1.2:5432")
	theClient             = Client{Space: 0, Dialled: []netip.AddrPort{relayAt}}
	theRelay, theServer   = Place{Space: 1, Port: 80}, Place{Space: 2, Port: 5432}
	request1, reply1, us5 = 100, 3000, int64(5 * us)
)

func newOver() *over {
	l := NewLog(nil)
	l.Serve(Place{Space: 1, Port: 80}, nil)
	l.Serve(Place{Space: 2, Port: 5432}, nil)
	l.Dial(0, 80)
	return &over{log: l}
}

// both adds a packet that leaves one namespace and comes to another one 5 µs later.
func (o *over) both(at int64, from, to int, p capture.Packet) {
	p.At, p.Out = at, true
	o.log.Add(from, &p)
	q := p
	q.At, q.Out = at+us5, false
	o.log.Add(to, &q)
}

// open opens the client's connection from a port, and the relay's one.
func (o *over) open(at int64, port uint16) {
	for i, x := range []struct {
		src, dst netip.AddrPort
		from, to int
	}{{netip.AddrPortFrom(clientAt, port), relayAt, 0, 1},
		{netip.AddrPortFrom(relayAt2, port+1000), serverAt, 1, 2}} {
		at := at + int64(i)*100*us
		o.both(at, x.from, x.to, capture.Packet{Src: x.src, Dst: x.dst, Flags: capture.SYN,
			Seq: o.base + uint32(port) + uint32(i)})
		o.both(at+20*us, x.to, x.from, capture.Packet{Src: x.dst, Dst: x.src,
			Flags: capture.SYN | capture.ACK, Seq: o.base + 7})
	}
}

// exchange sends the n-th request and its reply: the relay takes 10 µs each way, the server serves.
func (o *over) exchange(at int64, port uint16, n int, serves int64) {
	c, r := netip.AddrPortFrom(clientAt, port), netip.AddrPortFrom(relayAt2, port+1000)
	asked, replied := uint32(n*request1)+1, uint32(n*reply1)+8
	o.both(at, 0, 1, capture.Packet{Src: c, Dst: relayAt, Flags: capture.ACK,
		Seq: o.base + uint32(port) + asked, Size: request1})
	o.both(at+15*us, 1, 2, capture.Packet{Src: r, Dst: serverAt, Flags: capture.ACK,
		Seq: o.base + uint32(port) + 1 + asked, Size: request1})
	at += 20*us + serves
	for i := range 2 { // the reply's second half leaves 50 µs later
		half := capture.Packet{Flags: capture.ACK, Seq: o.base + replied + uint32(i*reply1/2),
			Size: reply1 / 2}
		half.Src, half.Dst = serverAt, r
		o.both(at, 2, 1, half)
		half.Src, half.Dst = relayAt, c
		o.both(at+15*us, 1, 0, half)
		at += 50 * us
	}
}

func TestTurns(t *testing.T) {
	o := newOver()
	o.open(1000*us, 40000)
	for n := range 20 {
		serves := int64(200 * us)
		if n < 2 { // of the login, which does not count
			serves = 5000 * us
		}
		o.exchange(int64(10_000*us)+int64(n)*10_000*us, 40000, n, serves)
	}
	rows, seen, all := o.log.Turns(theClient, []Place{theServer, theRelay})
	if all != 18 || len(rows) != 18 || len(seen) != 18 {
		t.Fatalf("%d rows and %d seen of %d", len(rows), len(seen), all)
	}
	for _, r := range rows {
		// request, server, its TCP, its queue, relay, wire, client
		if want := (Row{5 * us, 200 * us, 0, 0, 30 * us, 5 * us, 0}); !slices.Equal(r[0], want) {
			t.Errorf("first byte %v, want %v", r[0], want)
		}
		if want := (Row{5 * us, 250 * us, 0, 0, 30 * us, 5 * us, 0}); !slices.Equal(r[1], want) {
			t.Errorf("last byte %v, want %v", r[1], want)
		}
	}
	none := []Place{{Space: 2, Port: 80}, theRelay}
	if rows, _, all := o.log.Turns(theClient, none); len(rows) != 0 || all != 18 {
		t.Errorf("%d of %d exchanges over a relay that is none", len(rows), all)
	}
}

// TestTurnsOfTwins tells connections apart that carry the same bytes at the same time.
func TestTurnsOfTwins(t *testing.T) {
	o := newOver()
	const twins = 8
	for i := range twins {
		o.open(1000*us, 40000+uint16(i))
	}
	for n := range 20 {
		for i := range twins {
			// Which of them is served longer changes.
			at := int64(10_000*us) + int64(n)*10_000*us + int64((i*7+n*3)%twins)*us
			o.exchange(at, 40000+uint16(i), n, int64(100+10*((i+n)%twins))*us)
		}
	}
	rows, _, all := o.log.Turns(theClient, []Place{theServer, theRelay})
	if all != twins*18 || len(rows) != all {
		t.Fatalf("%d of %d", len(rows), all)
	}
	for _, r := range rows {
		if r[0][relays] != 30*us {
			t.Errorf("the relay took %d ns", r[0][relays])
		}
	}
}

// TestTurnsOfRivals has pairs of connections of which the first could be followed over the relay's
// connection of either, and the second only over its own.
func TestTurnsOfRivals(t *testing.T) {
	o := newOver()
	const pairs, n = 8, 10
	exchange := func(at int64, i int, asked, replied, took int64) {
		c, r := netip.AddrPortFrom(clientAt, 40000+uint16(i)), netip.AddrPortFrom(relayAt2, 41000+uint16(i))
		for k := range n {
			at := at + int64(k)*1000_000*us
			ask := uint32(k*request1) + 40001 + uint32(i)
			reply := capture.Packet{Flags: capture.ACK, Seq: uint32(k*reply1) + 8, Size: reply1}
			o.both(at, 0, 1, capture.Packet{Src: c, Dst: relayAt, Flags: capture.ACK, Seq: ask,
				Size: request1})
			o.both(at+asked, 1, 2, capture.Packet{Src: r, Dst: serverAt, Flags: capture.ACK,
				Seq: ask + 1, Size: request1})
			reply.Src, reply.Dst = serverAt, r
			o.both(at+replied, 2, 1, reply)
			reply.Src, reply.Dst = relayAt, c
			o.both(at+took, 1, 0, reply)
		}
	}
	for i := range pairs {
		o.open(1000*us, 40000+uint16(2*i))
		o.open(1000*us, 40001+uint16(2*i))
		at := int64(10_000*us) + int64(i)*10_000*us
		exchange(at, 2*i, 20*us, 500*us, 1000*us) // the relay holds the reply back
		exchange(at+40*us, 2*i+1, 20*us, 900*us, 940*us)
	}
	for range 5 {
		rows, _, all := o.log.Turns(theClient, []Place{theServer, theRelay})
		if all != 2*pairs*(n-n/10) || len(rows) != all {
			t.Fatalf("%d of %d", len(rows), all)
		}
		for i, r := range rows {
			want := int64(20+940-900) * us
			if i/(n-n/10)%2 == 0 {
				want = (20 + 1000 - 500) * us
			}
			if r[0][relays] != want {
				t.Fatalf("row %d: the relay took %d ns, want %d", i, r[0][relays], want)
			}
		}
	}
}

func TestAssign(t *testing.T) {
	for name, tt := range map[string]struct {
		choices [][]int
		columns int
		want    []int
	}{
		"nothing":               {nil, 0, []int{}},
		"first choices":         {[][]int{{1, 0}, {0, 1}}, 2, []int{1, 0}},
		"no choice":             {[][]int{{0}, {}}, 1, []int{0, -1}},
		"one needs it":          {[][]int{{0, 1}, {0}}, 2, []int{1, 0}},
		"too few columns":       {[][]int{{0}, {0}, {0}}, 1, []int{0, -1, -1}},
		"a chain gives way":     {[][]int{{0, 1}, {1, 2}, {0, 2}, {2, 3}}, 4, []int{0, 1, 2, 3}},
		"all but one give way":  {[][]int{{0, 1}, {0, 2}, {1, 2}, {0, 3}}, 4, []int{0, 2, 1, 3}},
		"equal ones keep order": {[][]int{{0, 1, 2}, {0, 1, 2}, {0, 1, 2}}, 3, []int{0, 1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := assign(tt.choices, tt.columns); !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestTurnsOfPipelines(t *testing.T) {
	o := newOver()
	o.open(1000*us, 40000)
	c := netip.AddrPortFrom(clientAt, 40000)
	for i := range 3 { // three requests before the first reply
		o.both(int64(2000+i)*us, 0, 1, capture.Packet{Src: c, Dst: relayAt, Flags: capture.ACK,
			Seq: uint32(40001 + 10*i), Size: 10})
	}
	o.both(3000*us, 1, 0, capture.Packet{Src: relayAt, Dst: c, Flags: capture.ACK, Seq: 8, Size: 30})
	rows, _, all := o.log.Turns(theClient, []Place{theRelay})
	if want := (Row{7 * us, 993 * us, 0, 0, 5 * us, 0}); all != 1 || len(rows) != 1 ||
		!slices.Equal(rows[0][0], want) {
		t.Errorf("%v of %d, want one of %v", rows, all, want)
	}
}

// A client, and its relay, may use a port again for each connection.
func TestTurnsOfPortsUsedAgain(t *testing.T) {
	const connections, n = 3, 10
	o := newOver()
	o.log.Dial(1, 5432)
	var all []Exchange
	for i := range connections {
		at := int64(1_000_000*us) * int64(1+i)
		o.base = uint32(i) * 1_500_000_000
		o.open(at, 40000)
		for k := range n {
			at := at + int64(k+1)*10_000*us
			o.exchange(at, 40000, k, 200*us)
			all = append(all, Exchange{Local: 40000, Sent: at - 3*us, Read: at + 297*us})
		}
	}
	rows, _, turns := o.log.Turns(theClient, []Place{theServer, theRelay})
	if want := connections * (n - n/10); turns != want || len(rows) != want {
		t.Errorf("%d of %d, want %d", len(rows), turns, want)
	}
	if asked := o.log.Asked(theClient, 1); len(asked) != turns {
		t.Errorf("%d asked, want %d", len(asked), turns)
	}
	if got := o.log.Follow(0, chainOver, all); got.Followed != len(all) {
		t.Errorf("%d of %d followed: %+v", got.Followed, len(all), got.Broken)
	}
}
