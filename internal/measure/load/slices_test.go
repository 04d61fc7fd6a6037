package load

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

const (
	sliceWork = int64(12 * time.Millisecond)
	sliceEach = int64(20 * time.Millisecond)
)

func sliced(begin int64, n int) Schedule {
	s := Schedule{}
	for i := range n + 1 {
		start := begin + int64(i)*sliceEach
		sl := Slice{Start: start, End: start + sliceWork}
		if i > 0 {
			sl.From, sl.To = start+sliceWork/4, start+sliceWork*3/4
		}
		s.Slices = append(s.Slices, sl)
	}
	s.Start = begin + int64(n+1)*sliceEach
	s.From = s.Start + sliceWork
	s.To = s.From + 3*sliceWork
	s.End = s.To + sliceWork/2
	return s
}

func (s Slice) after(gap int64) Slice {
	s.Start, s.End = s.Start+gap, s.End+gap
	if s.measured() {
		s.From, s.To = s.From+gap, s.To+gap
	}
	return s
}

// If a busy machine keeps an end off its CPU for a whole slice, the load is run again.
func TestSlices(t *testing.T) {
	const n = 6
	for _, c := range []struct {
		spec    sample.Load
		atTheir bool // the server counts
		timed   bool
	}{
		{spec: sample.Load{Kind: "bulk"}, atTheir: true},
		{spec: sample.Load{Kind: "bulk", Streams: 2}, atTheir: true},
		{spec: sample.Load{Kind: "bulk", Options: sample.BulkOptions{Reverse: true}}},
		{spec: sample.Load{Kind: "bulk", Options: sample.BulkOptions{Bidir: true}}, atTheir: true},
		{spec: sample.Load{Kind: "bulk", Options: sample.BulkOptions{Send: workload.SendFile}},
			atTheir: true},
		{spec: sample.Load{Kind: "rr"}, timed: true},
		{spec: sample.Load{Kind: "rr", Streams: 2}, timed: true},
		{spec: sample.Load{Kind: "query", Options: sample.QueryOptions{Queries: 3}}, timed: true},
		{spec: sample.Load{Kind: "udp-rr"}, timed: true},
	} {
		name := c.spec.Kind
		if c.spec != (sample.Load{Kind: c.spec.Kind}) {
			name += "-options"
		}
		t.Run(name, func(t *testing.T) {
			inTime(t, func(u testing.TB) {
				if err := slicesHold(u, c.spec, n, c.atTheir, c.timed); err != nil {
					u.Error(err)
				}
			})
		})
	}
}

// slicesHold returns an error for a slice that is missing or too long, which a busy machine
// excuses.
func slicesHold(u testing.TB, spec sample.Load, n int, atTheir, timed bool) error {
	u.Helper()
	t := testwait.Hard(u)
	var when Schedule
	client, server := between(u, spec, func(begin int64) Schedule {
		when = sliced(begin, n)
		return when
	}, direct)
	counts := client
	if atTheir {
		counts = server
	}
	if len(client.Slices) != n+1 || len(server.Slices) != n+1 {
		t.Fatalf("%d and %d slices, want %d", len(client.Slices), len(server.Slices), n+1)
	}
	if x := counts.Slices[0]; x.Width != 0 || x.Received != 0 || x.Trips != 0 {
		t.Errorf("the run-in was measured: %+v", x)
	}
	for i, x := range client.Slices {
		if workload.Of(spec).Threads(spec) == 1 && timed {
			tripsHold(t, when.Slices[i], x)
		}
		if b := server.Slices[i].Bounds; b != nil {
			t.Errorf("the server was not asked for trips, and has %v", b)
		}
	}
	var missing error
	inSlices, trips := int64(0), client.Trips
	for i, x := range counts.Slices[1:] {
		if x.Width <= 0 || x.Width >= sliceWork || x.Received == 0 ||
			timed && (x.Trips == 0 || x.Median <= 0 || x.Median > sliceWork) {
			missing = errors.Join(missing, fmt.Errorf("slice %d: %+v", i+1, x))
		}
		if x.Width == 0 && (x.Received > 0 || x.Trips > 0) {
			t.Errorf("slice %d has no width: %+v", i+1, x)
		}
		inSlices += x.Received
		trips += x.Trips
	}
	if inSlices+counts.Received > counts.TotalRecv {
		t.Errorf("%d bytes in slices and %d in the window are more than all %d", inSlices,
			counts.Received, counts.TotalRecv)
	}
	// a client over UDP may end before the last replies
	late := server.TotalSent - client.TotalRecv
	if client.TotalSent != server.TotalRecv || late != 0 && spec.Kind != "udp-rr" || late < 0 {
		t.Errorf("sent %d and %d, received %d and %d", client.TotalSent, server.TotalSent,
			server.TotalRecv, client.TotalRecv)
	}
	if timed && missing == nil && client.Latency.TotalCount() == 0 {
		t.Error("no trip is in the histogram")
	}
	if n := client.Latency; timed && spec.Kind != "query" && n.TotalCount() < trips*9/10 {
		t.Errorf("%d trips in the histogram, of %d in slices and the window", n.TotalCount(), trips)
	}
	return missing
}

func tripsHold(t testing.TB, s Slice, x SliceStats) {
	t.Helper()
	trips, at := int64(len(x.Bounds)-1), int64(0)
	for i, d := range x.Bounds {
		if at += d; d <= 0 || at < s.From || at > s.To {
			t.Errorf("bound %d is %d, %d after the last; the slice is %+v", i, at, d, s)
		}
	}
	// the last trip may end after the slice
	if s.measured() && x.Width > 0 && x.Trips > 1 && trips != x.Trips && trips != x.Trips-1 {
		t.Errorf("%d trips with bounds, %d in all", trips, x.Trips)
	}
}

func TestRestBetweenSlices(t *testing.T) {
	inTime(t, func(u testing.TB) {
		sent := func(gap int64) int64 {
			s := sample.Load{Kind: "rr"}
			client, _ := between(u, s, func(begin int64) Schedule {
				w := sliced(begin, 3)
				for i := range w.Slices[2:] {
					w.Slices[2+i] = w.Slices[2+i].after(gap)
				}
				w.Start, w.End = w.Start+gap, w.End+gap
				w.From, w.To = w.From+gap, w.To+gap
				return w
			}, direct)
			return client.TotalSent
		}
		if short, long := sent(0), sent(int64(time.Second)); long > 4*short {
			u.Errorf("%d bytes, and %d with a second's rest in the middle", short, long)
		}
	})
}

func TestRestIsNoLatency(t *testing.T) {
	inTime(t, func(u testing.TB) {
		for _, kind := range []string{"rr", "query", "udp-rr"} {
			client, _ := between(u, sample.Load{Kind: kind}, func(begin int64) Schedule {
				return sliced(begin, 6)
			}, direct)
			over := int64(0)
			h := client.Latency
			rest := sliceEach - sliceWork
			for _, b := range h.Distribution() {
				if b.From >= rest {
					over += b.Count
				}
			}
			if over > h.TotalCount()/20 {
				u.Errorf("%s: %d of %d trips took as long as the rest", kind, over, h.TotalCount())
			}
		}
	})
}

// A trip that ends while the others have their slices took as long as it took, not until the next
// slice.
func TestRestAfterAStalledTrip(t *testing.T) {
	inTime(t, func(u testing.TB) {
		const stall, rest = 60 * time.Millisecond, int64(time.Second)
		client := stallsAt(u, sample.Load{Kind: "rr", Streams: 2}, func(begin int64) Schedule {
			w := sliced(begin, 3)
			for i := range w.Slices[2:] {
				w.Slices[2+i] = w.Slices[2+i].after(rest)
			}
			w.Start, w.From, w.To, w.End = w.Start+rest, w.From+rest, w.To+rest, w.End+rest
			return w
		}, func(w Schedule) (from, until int64) {
			at := (w.Slices[1].From + w.Slices[1].To) / 2
			return at, at + int64(stall)
		})
		longest := time.Duration(client.Latency.Max())
		if longest < stall/2 || longest > time.Duration(rest)/2 {
			u.Errorf("the longest trip took %s, the stall %s", longest, stall)
		}
	})
}

// An end that only reacts notices a slice's end by the bytes of its next one. The CPU time for
// these is the next one's. An end without bytes for most of a slice waited.
func TestCPUTimeOfASlice(t *testing.T) {
	const each = int64(20 * time.Millisecond)
	used := func() int64 { return clock.CPU(unix.CLOCK_PROCESS_CPUTIME_ID) }
	for last, want := range map[int64]int64{110: each, 60: 2 * each, 20: 2 * each} {
		inTime(t, func(u testing.TB) {
			base := clock.Now() + int64(time.Hour)
			slice := func(start int64) Slice {
				return Slice{Start: start, From: start + 10, To: start + 110, End: start + 120}
			}
			th := &thread{first: true}
			th.slice([]Slice{slice(base), slice(base + 1000)})
			th.passed(base + 10)
			for _, work := range []struct{ bytes, at int64 }{{1, base + last - 1}, {2, base + 1001}} {
				for until := used() + work.bytes*each; used() < until; {
				}
				th.recvd += work.bytes
				th.passed(work.at)
			}
			got := th.slices.stats[0]
			if got.Width != 100 || got.Received != 1 || got.CPU < want*9/10 || got.CPU > want*11/10 {
				u.Errorf("%+v: %d ns until %d of 10 to 110", got, each, last)
			}
		})
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		in   []int64
		want int64
	}{{nil, 0}, {[]int64{5}, 5}, {[]int64{9, 1, 5}, 5}, {[]int64{4, 1, 9, 6}, 5}} {
		if got := median(c.in); got != c.want {
			t.Errorf("median(%v) = %d, want %d", c.in, got, c.want)
		}
	}
}
