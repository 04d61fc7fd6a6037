package tokens

import (
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
	"github.com/bridgetoll/bridgetoll/internal/kernel/writes"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// waitsAndServes adds the runs of a thread that waits for 40 µs of the time after the nth request
// came, writes, and before it sleeps waits for 500 µs, which are no request's. It returns since when
// it runs as it writes, and for how long it has waited then.
func waitsAndServes(l *Log, thread uint32, n int, came, wrote int64) (since, waited int64) {
	before := int64(n) * 540 * us
	since, waited = came+40*us, before+40*us
	l.AddRun(writes.Event{Thread: thread, Since: since, At: wrote + 10*us, Waited: waited})
	l.AddRun(writes.Event{Thread: thread, Since: wrote + 510*us, At: wrote + 515*us,
		Waited: waited + 500*us})
	return since, waited
}

// TestServedRequests watches a connection that is older than the log.
func TestServedRequests(t *testing.T) {
	const base, replyBase = 0xffff_ff00, 7_000_000
	l := NewServer()
	l.Serve(Place{Space: 2, Port: 5432}, nil)
	client := netip.AddrPortFrom(relayAt2, 41000)
	began := time.Unix(1000, 0)
	at := began.UnixNano()
	var all Requests
	for n := range 20 {
		at += 10_000 * us
		for half := range uint32(2) { // 30 µs apart
			l.Add(2, &capture.Packet{At: at + int64(half)*30*us, Src: client, Dst: serverAt,
				Flags: capture.ACK, Seq: base + uint32(n)*100 + half*50, Ack: replyBase + uint32(n)*40,
				Size: 50})
		}
		serves := int64(100 * us)
		if n == 7 {
			serves = 9000 * us
		}
		wrote := at + 30*us + serves
		write := writes.Event{At: wrote, Local: 5432, Remote: 41000, Seq: replyBase + uint32(n)*40,
			Len: 40, Window: 1 << 16, Kind: writes.Write, Thread: 7}
		write.Since, write.Waited = waitsAndServes(l, 7, n, at+30*us, wrote)
		l.AddWrite(2, write)
		write.Kind, write.At = writes.Send, wrote+5*us
		l.AddWrite(2, write)
		l.Add(2, &capture.Packet{At: wrote + 7*us, Out: true, Src: serverAt, Dst: client,
			Flags: capture.ACK, Seq: replyBase + uint32(n)*40, Size: 40})
		if n == 10 {
			all.Take(l, theServer, 0)
		}
	}
	all.Take(l, theServer, math.MaxInt64)
	var e sample.Served
	all.Note(&e, began)
	if e.Requests != 20 || e.Unmatched != 0 || e.Connections != 1 || !e.Writes {
		t.Fatalf("%+v", e)
	}
	sum := 0.0
	for i, want := range []float64{30e-6, 40e-6, 60e-6, 5e-6, 2e-6, 0} {
		if p := e.Parts[i]; math.Abs(p.P50-want) > 1e-9 {
			t.Errorf("%s: %g s, want %g", p.Part, p.P50, want)
		}
		sum += e.Parts[i].Mean
	}
	if math.Abs(sum-e.Whole.Mean) > 1e-9 {
		t.Errorf("the parts add up to %g of %g s", sum, e.Whole.Mean)
	}
	if x := e.Slowest[0]; len(e.Slowest) != 10 || math.Abs(x.Parts[inServer]-8960e-6) > 1e-9 ||
		math.Abs(x.At-0.08) > 1e-9 {
		t.Errorf("slowest %+v", x)
	}
	if x := e.Median; x == nil || math.Abs(x.Whole-137e-6) > 1e-9 || len(x.Parts) != len(e.Parts) ||
		x.Client != nil {
		t.Errorf("median %+v", x)
	}
}

// TestWritesBeforePackets reads writes before the packets, whose blocks are passed on later, of a
// connection that is older than the log, and of one that is opened and whose server has not
// answered.
func TestWritesBeforePackets(t *testing.T) {
	const replyBase = 9000
	for name, opened := range map[string]bool{"older": false, "opened": true} {
		l := NewServer()
		l.Serve(Place{Space: 2, Port: 5432}, nil)
		client := netip.AddrPortFrom(relayAt2, 41000)
		var all Requests
		take := func() { all.Take(l, theServer, 0) }
		if opened {
			l.Add(2, &capture.Packet{At: us, Src: client, Dst: serverAt, Flags: capture.SYN, Seq: 99})
		}
		for n := range uint32(3) {
			at := int64(n+1) * 1000 * us
			for kind, at := range map[writes.Kind]int64{writes.Write: at + 30*us, writes.Send: at + 40*us} {
				l.AddWrite(2, writes.Event{At: at, Local: 5432, Remote: 41000, Seq: replyBase + 20*n,
					Len: 20, Window: 1 << 16, Kind: kind})
			}
		}
		take()
		if opened {
			l.Add(2, &capture.Packet{At: 2 * us, Out: true, Src: serverAt, Dst: client,
				Flags: capture.SYN | capture.ACK, Seq: replyBase - 1, Ack: 100})
		}
		for n := range uint32(3) {
			at := int64(n+1) * 1000 * us
			l.Add(2, &capture.Packet{At: at, Src: client, Dst: serverAt, Flags: capture.ACK,
				Seq: 100 + 10*n, Ack: replyBase + 20*n, Size: 10})
			l.Add(2, &capture.Packet{At: at + 50*us, Out: true, Src: serverAt, Dst: client,
				Flags: capture.ACK, Seq: replyBase + 20*n, Size: 20})
		}
		take()
		all.Take(l, theServer, math.MaxInt64)
		var e sample.Served
		if all.Note(&e, time.Unix(0, 0)); e.Requests != 3 || e.Unmatched != 0 || !e.Writes {
			t.Errorf("%s: %d requests, %d unmatched, writes: %v", name, e.Requests, e.Unmatched,
				e.Writes)
		}
	}
}

// TestWritesOfOthersAreForgotten keeps writes of connections that no packet shows for a second.
func TestWritesOfOthersAreForgotten(t *testing.T) {
	l := NewServer()
	l.Serve(Place{Space: 2, Port: 5432}, nil)
	var all Requests
	for n := range 10 {
		l.AddWrite(2, writes.Event{At: int64(n) * int64(time.Second), Local: 5432,
			Remote: 41000 + uint16(n), Seq: 1, Len: 20, Kind: writes.Write})
		all.Take(l, theServer, 0)
	}
	if len(l.writes) > 2 {
		t.Errorf("kept %v", l.writes)
	}
}

// TestServedUntil takes the requests that came before a time, of three connections: one that was
// answered then, one that was answered later, and one that was not.
func TestServedUntil(t *testing.T) {
	const replyBase = 9000
	l := NewServer()
	l.Serve(Place{Space: 2, Port: 5432}, nil)
	packet := func(at int64, n uint16, out bool, turn uint32) {
		client := netip.AddrPortFrom(relayAt2, 41000+n)
		p := &capture.Packet{At: at * us, Src: client, Dst: serverAt, Flags: capture.ACK,
			Seq: 100 + 10*turn, Ack: replyBase + 20*turn, Size: 10}
		if out {
			p.Out, p.Src, p.Dst, p.Seq, p.Size = true, serverAt, client, replyBase+20*turn, 20
		}
		l.Add(2, p)
	}
	for n, took := range []int64{10, 70, 0} {
		packet(100, uint16(n), false, 0)
		if took > 0 {
			packet(100+took, uint16(n), true, 0)
			packet(160+took, uint16(n), false, 1) // after the time
			packet(165+took, uint16(n), true, 1)
		}
	}
	var all Requests
	all.Take(l, theServer, 150*us)
	var e sample.Served
	all.Note(&e, time.Unix(0, 0))
	if e.Requests != 2 || e.Unanswered != 1 || e.Unmatched != 0 || e.Whole.Max != 70e-6 ||
		all.Mean() != 40*time.Microsecond {
		t.Errorf("%+v, mean %v", e, all.Mean())
	}
}

// TestServedFastOpen watches connections whose first request comes with the SYN.
func TestServedFastOpen(t *testing.T) {
	base, replyBase := uint32(0xffff_fff0), uint32(7_000_000)
	l := NewServer()
	l.Serve(Place{Space: 2, Port: 5432}, nil)
	client := netip.AddrPortFrom(relayAt2, 41000)
	began := time.Unix(1000, 0)
	at := began.UnixNano()
	for _, p := range []capture.Packet{
		{Flags: capture.SYN, Seq: base - 1, Size: 50},
		{Out: true, Flags: capture.SYN | capture.ACK, Seq: replyBase - 1},
		{Out: true, Flags: capture.ACK, Seq: replyBase, Size: 40},
		{Flags: capture.ACK, Seq: base + 50, Ack: replyBase + 40, Size: 50},
		{Out: true, Flags: capture.ACK, Seq: replyBase + 40, Size: 40},
		{Out: true, Flags: capture.FIN | capture.ACK, Seq: replyBase + 80},
	} {
		at += 10 * us
		if p.At, p.Src, p.Dst = at, client, serverAt; p.Out {
			p.Src, p.Dst = serverAt, client
		}
		l.Add(2, &p)
	}
	var all Requests
	all.Take(l, theServer, 0)
	var e sample.Served
	all.Note(&e, began)
	if e.Requests != 2 || math.Abs(e.Slowest[0].Whole-20e-6) > 1e-9 ||
		math.Abs(e.Slowest[1].Whole-10e-6) > 1e-9 {
		t.Errorf("%+v", e)
	}
}

// TestServedTail has one slow request of a hundred, which is not the p99.
func TestServedTail(t *testing.T) {
	var r Requests
	for i := range 100 {
		one := served{at: int64(i), written: true}
		if one.parts[inServer] = 10 * us; i == 40 {
			one.parts[inServer] = 900 * us
		}
		r.all = append(r.all, one)
	}
	r.sums = NewSums(0)
	var e sample.Served
	r.Note(&e, time.Unix(0, 0))
	tail := 0.0
	for _, x := range e.Tail {
		tail += x
	}
	if e.Whole.P99 != 10e-6 || e.Whole.Max != 900e-6 || tail != 10e-6 {
		t.Errorf("p99 %g, largest %g, around the p99 %g", e.Whole.P99, e.Whole.Max, tail)
	}
}

// TestServedSpells has a slow spell, which was followed by no rest, and a busy one with as many
// requests, which stands for nine times its length.
func TestServedSpells(t *testing.T) {
	r := Requests{sums: NewSums(0)}
	for i, took := range []int64{1000 * us, 100 * us} {
		for range 100 {
			one := served{at: int64(len(r.all)), written: true}
			one.parts[inServer] = took
			r.all = append(r.all, one)
		}
		r.Weigh([]float64{1, 9}[i])
	}
	var e sample.Served
	r.Note(&e, time.Unix(0, 0))
	tail := 0.0
	for _, x := range e.Tail {
		tail += x
	}
	if math.Abs(e.Whole.Mean-190e-6) > 1e-9 || e.Whole.P50 != 100e-6 || e.Whole.P99 != 1e-3 ||
		e.Median.Whole != 100e-6 || math.Abs(tail-1e-3) > 1e-9 || e.Requests != 200 {
		t.Errorf("%+v, median %+v, around the p99 %g", e.Whole, e.Median, tail)
	}
}
