package tokens

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
	"github.com/bridgetoll/bridgetoll/internal/kernel/writes"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

const microsecond = 1000

// The server wrote 100 bytes at 10 ms, and TCP sent them at 50 ms.
func TestWhy(t *testing.T) {
	const wrote, sent = 10_000 * microsecond, 50_000 * microsecond
	full := writes.Event{Len: 100, Unacked: 1000, Window: 60_000}
	with := func(change func(*writes.Event)) writes.Event {
		e := full
		change(&e)
		return e
	}
	for name, tt := range map[string]struct {
		write          writes.Event
		acked, earlier int64 // before sent, in µs; 0: never
		sent           int64
		want           string
		queued         int64 // how long the earlier packet was in the device, in µs; 0: unknown
	}{
		"at once":         {full, 100, 100, wrote + 500*microsecond, "", 0},
		"Nagle":           {with(func(e *writes.Event) { e.Nagle = true }), 100, 40_000, sent, sample.WaitNagle, 0},
		"a full queue":    {full, 0, 100, sent, sample.WaitQueue, 0},
		"and its ACK":     {with(func(e *writes.Event) { e.Nagle = true }), 50, 100, sent, sample.WaitQueue, 0},
		"a burst":         {full, 100, 20, sent, sample.WaitCongestion, 5},
		"a burst, queued": {full, 100, 20, sent, sample.WaitQueue, 600},
		"congestion":      {full, 100, 40_000, sent, sample.WaitCongestion, 0},
		"the reader":      {with(func(e *writes.Event) { e.Window = 1050 }), 100, 40_000, sent, sample.WaitWindow, 0},
		"nothing unacked": {with(func(e *writes.Event) { e.Unacked = 0 }), 100, 40_000, sent, sample.WaitOther, 0},
		"announced":       {with(func(e *writes.Event) { e.Unacked, e.More = 0, true }), 100, 40_000, sent, sample.WaitMore, 0},
		"nothing before":  {full, 0, 0, sent, sample.WaitOther, 0},
		"long before":     {full, 5_000, 5_000, sent, sample.WaitOther, 0},
	} {
		c := &connection{}
		if tt.acked > 0 {
			c.acked = []int64{1, tt.sent - tt.acked*microsecond, tt.sent + microsecond}
		}
		if tt.earlier > 0 {
			c.out.marks = []mark{
				{end: 1, at: tt.sent - tt.earlier*microsecond},
				{end: 101, at: tt.sent},
			}
		}
		if tt.queued > 0 {
			at := c.out.marks[0].at - tt.queued*microsecond
			c.written.sends = []writing{{start: 0, end: 1, Event: writes.Event{At: at}}}
		}
		if got := c.why(writing{Event: tt.write}, wrote, tt.sent); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestWritings(t *testing.T) {
	const base = 0xffff_ff00
	out := &stream{}
	out.begin(base)
	out.add(&capture.Packet{At: 1, Seq: base, Size: 300}, nil)
	event := func(kind writes.Kind, at int64, start, size uint32) writes.Event {
		return writes.Event{Kind: kind, At: at, Seq: base + start, Len: size}
	}
	var w writings
	w.add(out, event(writes.Write, 10, 0, 100), event(writes.Write, 20, 100, 200),
		event(writes.Send, 11, 0, 100), event(writes.Send, 21, 100, 100),
		event(writes.Send, 22, 0, 100), // sent again
		event(writes.Send, 23, 200, 100),
		event(writes.Write, 30, 1<<30, 10), event(writes.Write, 31, 1<<31, 10)) // of another one
	for offset, want := range map[int64][2]int64{1: {10, 11}, 100: {10, 11}, 101: {20, 21},
		201: {20, 23}, 300: {20, 23}} {
		a, ok := covering(w.writes, offset)
		b, ok2 := covering(w.sends, offset)
		if !ok || !ok2 || a.At != want[0] || b.At != want[1] {
			t.Errorf("byte %d: written at %d, sent at %d, want %v", offset, a.At, b.At, want)
		}
	}
	if _, ok := covering(w.writes, 301); ok {
		t.Error("a byte that was not written")
	}
	var unknown writings
	if unknown.add(&stream{}, event(writes.Write, 10, 0, 100)); unknown.writes != nil {
		t.Error("a connection whose beginning is unknown")
	}
}
