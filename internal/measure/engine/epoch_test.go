package engine_test

import (
	"context"
	"math"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/measure/load"
	"github.com/bridgetoll/bridgetoll/internal/measure/worker"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/fake"
)

func sliced(rounds int) plan.Request {
	r := request()
	for i := range r.Loads {
		r.Loads[i].Slice, r.Loads[i].Warmup, r.Loads[i].Window = 0.004, 0.02, 0.1
	}
	r.Epoch, r.Same, r.Rounds = 1, 0.03, rounds
	return r
}

func TestEpochs(t *testing.T) {
	b := &fake.Builder{}
	r := try(t, context.Background(), b, sliced(3), nil)
	if r.err != nil || r.end.Reason != sample.EndedByRounds || len(r.file.Visits) != 3*6 {
		t.Fatalf("end %+v, %v, %d visits", r.end, r.err, len(r.file.Visits))
	}
	p, i := r.file.Header.Plan, 0
	for round := range 3 {
		for _, turn := range plan.Turns(p, round) {
			table := plan.Epoch(p, turn.Cells, pace(p, turn, round), round)
			for _, cell := range turn.Cells {
				v := r.file.Visits[i]
				i++
				if v.Cell != cell || v.Round != round || v.Failure != "" || !v.Witness.OK {
					t.Fatalf("visit %+v, want cell %d in round %d", v, cell, round)
				}
				var want []int
				for k, s := range table.Slots {
					if s.Cell == cell && s.Measured() {
						want = append(want, k)
					}
				}
				if !slices.Equal(v.Slices.Slots, want) || v.Slices.Lost != 0 {
					t.Errorf("slots %v, %d lost; the timetable has %v", v.Slices.Slots,
						v.Slices.Lost, want)
				}
				if bulk := p.Cells[cell].Load == "bulk"; bulk == (len(v.Slices.Medians) > 0) {
					t.Errorf("%s has %d medians", p.Cells[cell].Load, len(v.Slices.Medians))
				}
				for _, rate := range v.Slices.Rates {
					if math.Abs(rate/fake.DefaultRate-1) > 0.001 {
						t.Errorf("rate %g", rate)
					}
				}
				if math.Abs(v.Client.Window-0.1) > 1e-9 || v.Elapsed == 0 {
					t.Errorf("window %g s, meters %g s", v.Client.Window, v.Elapsed)
				}
			}
		}
	}
}

func pace(p sample.Plan, turn plan.Turn, round int) plan.Pace {
	out := plan.Pace{Length: p.Epoch, Drain: make([]float64, len(p.Cells))}
	if round == 0 {
		out.Length *= 0.3
	}
	if round == 0 && p.Cells[turn.Cells[0]].Load == "bulk" {
		for i := range out.Drain {
			out.Drain[i] = 0.002
		}
	}
	return out
}

func TestEpochRatiosSurviveDrift(t *testing.T) {
	q := sliced(7)
	q.Loads = q.Loads[:1]
	r := try(t, context.Background(), &fake.Builder{Rate: drift}, q, nil)
	if r.err != nil || len(r.report.Failed) > 0 {
		t.Fatal(r.err, r.report.Failed)
	}
}

func TestLostSlices(t *testing.T) {
	for _, c := range []struct {
		name string
		lose func(x *load.SliceStats)
	}{
		{"never-began", func(x *load.SliceStats) { *x = load.SliceStats{} }},
		{"starved", func(x *load.SliceStats) { x.Width /= 3 }},
		{"stopped", func(x *load.SliceStats) { x.Width *= 5 }},
		{"nothing-came", func(x *load.SliceStats) { x.Received = 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := sliced(1)
			q.Loads = q.Loads[:1]
			r := try(t, context.Background(), &fake.Builder{
				Slice: func(s path.Spec, role worker.Role, n, k int, x *load.SliceStats) {
					if s == bridgeSpec && role == worker.Server && k%4 == 1 {
						c.lose(x)
					}
				}}, q, nil)
			if r.err != nil || len(r.report.Failed) > 0 {
				t.Fatal(r.err, r.report.Failed)
			}
			for _, v := range r.file.Visits {
				lost, n := v.Slices.Lost, len(v.Slices.Slots)
				mode := r.file.Header.Plan.Cells[v.Cell].Mode
				if (mode == "bridge") != (lost > 0) ||
					mode == "bridge" && (lost < n/4 || lost > n/2) {
					t.Errorf("%s lost %d slices and has %d", mode, lost, n)
				}
			}
		})
	}
}

func TestDrainingSlices(t *testing.T) {
	q := sliced(2)
	q.Loads = q.Loads[:1]
	const late = int64(6 * time.Millisecond)
	r := try(t, context.Background(), &fake.Builder{
		Slice: func(s path.Spec, role worker.Role, n, k int, x *load.SliceStats) {
			if s == bridgeSpec && role == worker.Server && k%3 == 0 {
				x.Drained += late
			}
		}}, q, nil)
	if r.err != nil || len(r.report.Failed) > 0 {
		t.Fatal(r.err, r.report.Failed)
	}
	var lost [2]int
	for _, v := range r.file.Visits {
		if mode := r.file.Header.Plan.Cells[v.Cell].Mode; mode == "bridge" && v.Slices.Lost > 0 {
			t.Errorf("round %d: it spoilt %d of its own", v.Round, v.Slices.Lost)
		}
		lost[v.Round] += v.Slices.Lost
	}
	if lost[0] < 4 || lost[1] != 0 {
		t.Errorf("slices lost by round: %v", lost)
	}
}

// Two cells share a path. When an end of one dies, it is unknown what moved on the path.
func TestDeathInAnEpoch(t *testing.T) {
	q := sliced(3)
	q.Loads = q.Loads[:1]
	for _, c := range []struct {
		dies path.Spec
		want []string
	}{
		{bridgeSpec, []string{"bridge"}},
		{hostSpec, []string{"host", "host"}},
	} {
		r := try(t, context.Background(), &fake.Builder{Die: func(s path.Spec, n int) bool {
			if s == hostSpec { // the baseline and its control take turns
				return s == c.dies && n == 2
			}
			return s == c.dies && n == 1
		}}, q, nil)
		if r.err != nil {
			t.Fatal(r.err)
		}
		var failed []string
		for _, v := range r.file.Visits {
			if v.Failure != "" {
				if v.Round != 1 {
					t.Errorf("round %d: %s", v.Round, v.Failure)
				}
				failed = append(failed, r.file.Header.Plan.Cells[v.Cell].Name())
			}
		}
		if !slices.Equal(failed, c.want) {
			t.Errorf("%s dies: failed %v, want %v", c.dies, failed, c.want)
		}
	}
}

func TestEpochWitness(t *testing.T) {
	q := sliced(3)
	q.Loads = q.Loads[:1]
	r := try(t, context.Background(), &fake.Builder{Bypass: func(s path.Spec, n int) bool {
		return s == bridgeSpec && n == 1
	}}, q, nil)
	if r.err != nil {
		t.Fatal(r.err)
	}
	for _, v := range r.file.Visits {
		bypassed := r.file.Header.Plan.Cells[v.Cell].Mode == "bridge" && v.Round == 1
		if v.Witness.OK == bypassed || bypassed &&
			v.Witness.Evidence != "veth fake0 (nowhere): counted 0 bytes to the server, the "+
				"load moved 404000" {
			t.Errorf("round %d, cell %d: %+v", v.Round, v.Cell, v.Witness)
		}
	}
}

// A cell starved of its slices is left out, but its path does not count as broken.
func TestStarvedEpoch(t *testing.T) {
	q := sliced(6)
	q.Loads = q.Loads[:1]
	r := try(t, context.Background(), &fake.Builder{
		Starve: func(s path.Spec, n int) bool { return s == bridgeSpec && n == 2 },
		Slice: func(s path.Spec, _ worker.Role, n, _ int, x *load.SliceStats) {
			if s == bridgeSpec && n == 4 {
				x.Width /= 10
			}
		}}, q, nil)
	if r.err != nil || len(r.report.Failed) > 0 {
		t.Fatal(r.err, r.report.Failed)
	}
	n := 0
	for _, v := range r.file.Visits {
		if r.file.Header.Plan.Cells[v.Cell].Mode != "bridge" {
			continue
		}
		noWindow, noSlices := v.Client.Window == 0, v.Slices == nil
		if v.Starved != (n == 4) || noSlices != (n == 4) || n == 2 != noWindow && n != 4 ||
			noWindow && v.Elapsed != 0 {
			t.Errorf("visit %d: %+v", n, v)
		}
		n++
	}
}

func TestInterruptedEpoch(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	sleeps := 0
	r := try(t, ctx, &fake.Builder{}, sliced(3), func(c *engine.Config) {
		c.Clock.(*fake.Clock).OnSleep = func(int64) {
			if sleeps++; sleeps == 9 {
				cancel()
			}
		}
	})
	if r.end.Reason != sample.EndedByInterrupt || len(r.file.Visits) != 3 {
		t.Errorf("ended by %s with %d visits", r.end.Reason, len(r.file.Visits))
	}
}

func TestKnownCells(t *testing.T) {
	q := sliced(0)
	q.Budget = 40
	known := func(h sample.Header) engine.Judge { return fixed(h.Plan) }
	r := try(t, context.Background(), &fake.Builder{}, q, func(c *engine.Config) {
		c.Judge = known
	})
	if r.err != nil || r.end.Reason != sample.EndedByBudget {
		t.Fatalf("%+v, %v", r.end, r.err)
	}
	epochs, slots := map[string]int{}, map[string][]int{}
	for _, v := range r.file.Visits {
		c := r.file.Header.Plan.Cells[v.Cell]
		if !c.Control && c.Mode == "host" {
			epochs[c.Load]++
			if v.Round > 0 {
				slots[c.Load] = append(slots[c.Load], len(v.Slices.Slots))
			}
		}
	}
	if epochs["rr"] < 2 || 3*epochs["rr"] > epochs["bulk"] {
		t.Fatalf("epochs by load: %v", epochs)
	}
	if short, long := slices.Max(slots["rr"]), slices.Min(slots["bulk"]); 3*short > long {
		t.Errorf("slices of known cells %v, of others %v", slots["rr"], slots["bulk"])
	}
}

type fixed sample.Plan

func (fixed) Add(sample.Visit) {}

func (f fixed) Known() []bool {
	out := make([]bool, len(f.Cells))
	for i, c := range f.Cells {
		out[i] = c.Load == "rr"
	}
	return out
}

func TestBudgetOfEpochs(t *testing.T) {
	q := sliced(0)
	q.Budget, q.Precision = 10, 1e-6
	r := try(t, context.Background(), &fake.Builder{}, q, func(c *engine.Config) { c.Judge = nil })
	if r.end.Reason != sample.EndedByBudget || r.end.Elapsed > 10.1 || r.end.Elapsed < 9 {
		t.Errorf("%+v", r.end)
	}
}

// numbers matches those that the load and the slices determine.
var numbers = regexp.MustCompile(`\d{2,}`)

func TestSharedHops(t *testing.T) {
	for _, foreign := range []bool{false, true} {
		q := sliced(3)
		q.Loads = q.Loads[:1]
		b := &fake.Builder{Common: true}
		if foreign {
			b.Foreign = 1 << 20
		}
		r := try(t, context.Background(), b, q, nil)
		if r.err != nil {
			t.Fatal(r.err)
		}
		for _, v := range r.file.Visits {
			if v.Witness.OK == foreign {
				t.Errorf("foreign %v: %+v", foreign, v.Witness)
			}
			const want = "veth fake0 (nowhere): counted N bytes in 0 packets to the server, the " +
				"load " +
				"can have sent N: other traffic shares the path"
			if got := numbers.ReplaceAllString(v.Witness.Evidence, "N"); foreign && got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
	}
}

func TestFailureBesideSharedHops(t *testing.T) {
	starve := func(s path.Spec, _ worker.Role, _, _ int, x *load.SliceStats) {
		if s == bridgeSpec {
			x.Width /= 10
		}
	}
	for _, c := range []struct {
		name, fails, how string
		b                *fake.Builder
	}{
		{"last-never-began", "bridge", "client: connection timed out", &fake.Builder{
			Common: true, Unreachable: func(s path.Spec) bool {
				return s == bridgeSpec
			}}},
		{"first-never-began", "host", "client: connection timed out", &fake.Builder{
			Common: true, Unreachable: func(s path.Spec) bool {
				return s == hostSpec
			}}},
		{"starved", "bridge", "the machine was too busy: only 0 of N slices began and ended on time",
			&fake.Builder{Common: true, Slice: starve}},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := sliced(3)
			q.Loads = q.Loads[:1]
			r := try(t, context.Background(), c.b, q, nil)
			if r.err != nil {
				t.Fatal(r.err)
			}
			for _, v := range r.file.Visits {
				want := ""
				if r.file.Header.Plan.Cells[v.Cell].Name() == c.fails {
					want = c.how
				}
				got := numbers.ReplaceAllString(v.Failure, "N")
				if got != want || v.Witness.OK == (want != "") {
					t.Errorf("cell %d: %q, want %q; %+v", v.Cell, got, want, v.Witness)
				}
			}
		})
	}
}

func TestClockThatJumps(t *testing.T) {
	q := sliced(0)
	q.Budget, q.Precision = 60, 1e-6
	const jump = int64(20 * time.Second)
	r := try(t, context.Background(), &fake.Builder{}, q, func(c *engine.Config) {
		c.Judge = nil
		clock := c.Clock.(*fake.Clock)
		sleeps := 0
		clock.OnSleep = func(now int64) {
			if sleeps++; sleeps == 3 {
				_ = clock.Sleep(context.Background(), now+jump)
			}
		}
	})
	if r.err != nil || r.end.Reason != sample.EndedByBudget || r.end.Elapsed > 61 {
		t.Fatalf("%+v, %v", r.end, r.err)
	}
	without := 0
	for _, v := range r.file.Visits {
		if v.Failure != "" || !v.Witness.OK || len(v.Slices.Slots) == 0 {
			t.Errorf("visit %+v", v)
		}
		if v.Elapsed == 0 {
			without++
		}
	}
	if n := len(r.file.Visits); without == 0 || without > 6 || n < 6*5 {
		t.Errorf("%d of %d visits have no CPU figures", without, n)
	}
}
