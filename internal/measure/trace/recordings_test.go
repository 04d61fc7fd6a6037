package trace

import (
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	kernel "github.com/bridgetoll/bridgetoll/internal/kernel/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

// eachRecording runs a test on each log in testdata.
func eachRecording(t *testing.T, f func(t *testing.T, r *record)) {
	for _, name := range slices.Sorted(maps.Keys(recordings)) {
		t.Run(name, func(t *testing.T) {
			f(t, readRecord(t, filepath.Join("testdata", name+".log.gz")))
		})
	}
}

func TestRecordings(t *testing.T) {
	eachRecording(t, func(t *testing.T, r *record) {
		x := r.follow()
		testgolden.Check(t, strings.TrimPrefix(t.Name(), "TestRecordings/")+".txt", textOf(x))
		if x.Followed != tripsOfLog {
			t.Errorf("%d of %d trips were followed", x.Followed, tripsOfLog)
		}
		sum := 0.0
		for _, s := range x.Segments {
			sum += s.MidMean
		}
		if math.Abs(sum-x.MidMean) > 1e-15 {
			t.Errorf("%g s in segments, %g s in trips", sum, x.MidMean)
		}
	})
}

// without removes the events that f selects.
func (r *record) without(f func(e kernel.Event) bool) *record {
	out := *r
	out.Log.CPUs = nil
	for _, l := range r.Log.CPUs {
		out.Log.CPUs = append(out.Log.CPUs, slices.DeleteFunc(slices.Clone(l), f))
	}
	return &out
}

// changed changes copies of the events.
func (r *record) changed(f func(e *kernel.Event)) *record {
	out := r.without(func(kernel.Event) bool { return false })
	for _, l := range out.Log.CPUs {
		for i := range l {
			f(&l[i])
		}
	}
	return out
}

// An event that is missing costs at most its trip.
func TestOneEventIsMissing(t *testing.T) {
	eachRecording(t, func(t *testing.T, r *record) {
		const trip = 7
		from, to := r.Slices[0].Bounds[trip], r.Slices[0].Bounds[trip+1]
		for _, l := range r.Log.CPUs {
			for _, gone := range l {
				if gone.TS < from || gone.TS >= to {
					continue
				}
				x := r.without(func(e kernel.Event) bool { return e == gone }).follow()
				if x.Trips != tripsOfLog || x.Followed < tripsOfLog-1 {
					t.Fatalf("without %+v: %s", gone, textOf(x))
				}
				if lost := x.Followed < tripsOfLog; lost != (len(x.Broken) == 1) {
					t.Fatalf("without %+v: %+v", gone, x.Broken)
				}
				needed := []kernel.Kind{kernel.Send, kernel.Queue, kernel.Xmit, kernel.TCP,
					kernel.Ready, kernel.Read}
				if x.Followed == tripsOfLog && slices.Contains(needed, gone.Kind) &&
					r.isStep(gone) {
					t.Fatalf("followed without %+v", gone)
				}
			}
		}
	})
}

// isStep reports whether an event is a step of its trip.
func (r *record) isStep(e kernel.Event) bool {
	i, _ := slices.BinarySearch(r.Slices[0].Bounds, e.TS+1)
	bounds := r.Slices[0].Bounds[i-1:]
	events := take(nil, slices.Clone(r.Log.CPUs), bounds[0], bounds[1])
	slices.SortStableFunc(events, byTime)
	f := newFollower(r.Cell, nil)
	_ = f.follow(events)
	return slices.ContainsFunc(f.steps, func(s step) bool { return s.Event == e && !s.minor })
}

// Another connection's packets are on the same CPUs at the same time.
func TestForeignPackets(t *testing.T) {
	eachRecording(t, func(t *testing.T, r *record) {
		foreign := r.changed(func(e *kernel.Event) {
			e.TS += 700
			if e.Ptr != 0 {
				e.Ptr += 1 << 20
			}
			if e.Seq != 0 {
				e.Seq += 1 << 20
			}
			e.PID, e.TID = e.PID+1<<20, e.TID+1<<20
			if e.Kind == kernel.Waking || e.Kind == kernel.Switch {
				e.Dev += 1 << 20
			}
			e.Source, e.Dest = e.Source+1000, e.Dest+1000
		})
		want := r.follow()
		for i := range foreign.Log.CPUs {
			l := append(foreign.Log.CPUs[i], r.Log.CPUs[i]...)
			slices.SortStableFunc(l, byTime)
			foreign.Log.CPUs[i] = l
		}
		got := foreign.follow()
		if got.Followed != want.Followed {
			t.Fatal(textOf(got))
		}
		for i, s := range got.Segments {
			if w := want.Segments[i]; s.SegmentKey != w.SegmentKey || s.MidMean != w.MidMean {
				t.Errorf("%+v\nwant %+v", s, w)
			}
		}
	})
}

// Numbers pass through 0 in the middle of the log.
func TestWrappedNumbers(t *testing.T) {
	eachRecording(t, func(t *testing.T, r *record) {
		first := map[bool]uint32{} // by whether the server sends
		for _, l := range r.Log.CPUs {
			for _, e := range l {
				if e.Kind == kernel.Send {
					k := int(e.PID) == r.Cell.Server
					if _, ok := first[k]; !ok {
						first[k] = e.Seq
					}
				}
			}
		}
		got := r.changed(func(e *kernel.Event) {
			if e.Seq == 0 {
				return
			}
			near := first[false]
			if d := int32(e.Seq - first[true]); d > -1000 && d < 1000 {
				near = first[true]
			}
			e.Seq -= near + tripsOfLog/2
		}).follow()
		least := tripsOfLog
		if len(r.Cell.Copiers) > 0 { // 0 is no number that proves a copy
			least--
		}
		if got.Followed < least {
			t.Error(textOf(got))
		}
	})
}

// Events of interrupts come before those that they interrupted, and sockets' numbers go back.
func TestDisorder(t *testing.T) {
	eachRecording(t, func(t *testing.T, r *record) {
		swapped := r.changed(func(*kernel.Event) {})
		for _, l := range swapped.Log.CPUs {
			for i := 1; i < len(l); i += 2 {
				l[i-1], l[i] = l[i], l[i-1]
			}
		}
		if got, want := textOf(swapped.follow()), textOf(r.follow()); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		twice := *r
		twice.Slices = append(slices.Clone(r.Slices), r.Slices...)
		if got := twice.follow(); got.Trips != 2*tripsOfLog || got.Followed != tripsOfLog {
			t.Errorf("trips that were over: %s", textOf(got))
		}
	})
}

// Kernels that lack tracepoints give fewer parts, and follow no fewer trips.
func TestOldKernels(t *testing.T) {
	kernels := map[string][]kernel.Kind{
		"6.12": {kernel.Send},
		"6.1":  {kernel.Send, kernel.Ready, kernel.Read, kernel.Sent, kernel.IPI},
	}
	for name, lacks := range kernels {
		eachRecording(t, func(t *testing.T, r *record) {
			old := r.without(func(e kernel.Event) bool { return slices.Contains(lacks, e.Kind) })
			for _, k := range lacks {
				old.Log.Missing = append(old.Log.Missing, names[k])
			}
			x := old.follow()
			least := tripsOfLog
			if r.Cell.UDP && name == "6.1" { // nothing shows that an awake reader reads
				least = tripsOfLog * 3 / 4
			}
			if x.Followed < least {
				t.Error(name, textOf(x))
			}
			if strings.HasSuffix(t.Name(), "/containers") {
				testgolden.Check(t, "containers-"+name+".txt", textOf(x))
			}
		})
	}
}

func segment(x *sample.Trace, part sample.Part, reply bool) *sample.Segment {
	i := slices.IndexFunc(x.Segments, func(s sample.Segment) bool {
		return s.Part == part && s.Reply == reply
	})
	if i < 0 {
		return nil
	}
	return &x.Segments[i]
}
