package engine_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/analysis"
	"github.com/bridgetoll/bridgetoll/internal/load"
	"github.com/bridgetoll/bridgetoll/internal/path"
	"github.com/bridgetoll/bridgetoll/internal/path/fake"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

func crr(rounds int) plan.Request {
	r := request()
	r.Loads = []sample.Load{{Kind: "crr", Warmup: 0.1, Window: 0.25, Request: 1, Reply: 1}, {Kind: "rr", Warmup: 0.05, Window: 0.25}}
	r.Rounds = rounds
	return r
}

func rate(r float64) func(path.Spec, string, int) float64 {
	return func(path.Spec, string, int) float64 { return r }
}

// A path is drained before and after each visit of a load whose connections
// end, and at no other time.
func TestPathsAreDrained(t *testing.T) {
	drained := 0
	b := &fake.Builder{Rate: rate(1000), Room: func(path.Spec) sample.Room {
		drained++
		return sample.NewRoom(28232, 0, 0, 0, 1)
	}}
	r := try(t, context.Background(), b, crr(2), nil)
	if r.err != nil || len(r.report.Failed) > 0 {
		t.Fatal(r.err, r.report.Failed)
	}
	visits := 0
	for _, v := range r.file.Visits {
		is := r.file.Header.Plan.Cells[v.Cell].Load == "crr"
		if (v.Room != nil) != is {
			t.Errorf("%s has the room %+v", r.file.Header.Plan.Cells[v.Cell].Load, v.Room)
		}
		if is {
			visits++
			if v.Room.Window != 0 {
				t.Errorf("a visit with room for all was cut to %g s", v.Room.Window)
			}
		}
	}
	if visits == 0 || drained != 2*visits {
		t.Errorf("%d visits, drained %d times", visits, drained)
	}
}

// The first visit runs out and still has its rate; the next ones are cut to what
// there is room for, and the report says so.
func TestBudgetsAreKept(t *testing.T) {
	const ports, perSecond = 4000, 20_000
	b := &fake.Builder{Rate: rate(perSecond), Room: func(path.Spec) sample.Room { return sample.NewRoom(ports, 0, 0, 0, 1) }}
	q := crr(3)
	q.Loads = q.Loads[:1]
	r := try(t, context.Background(), b, q, nil)
	if r.err != nil || len(r.report.Failed) > 0 {
		t.Fatal(r.err, r.report.Failed)
	}
	for _, v := range r.file.Visits {
		whole := v.Client.Window
		if v.Round == 0 {
			if v.Elapsed != 0 || v.Machine != nil {
				t.Errorf("a visit that ran out has the machine's clocks: %+v", v)
			}
		} else {
			whole = v.Room.Window * (0.1 + 0.25) / 0.25 // with the warm-up
			if v.Elapsed == 0 {
				t.Errorf("a visit that did not run out lacks the machine's clocks: %+v", v)
			}
		}
		if made := perSecond * whole; made <= 0 || made > ports {
			t.Errorf("round %d: %.0f connections, there is room for %d", v.Round, made, ports)
		}
	}
	for _, c := range r.report.Cells {
		if x := c.Metrics[analysis.Connections].Median; math.Abs(x-perSecond) > perSecond/1000 { // whole connections
			t.Errorf("%s: %g connections a second", c.Mode, x)
		}
		warned := false
		for _, w := range c.Warnings {
			warned = warned || w.Code == "ports-exhausted" && strings.Contains(w.Text, "3 of 3 visits") && strings.Contains(w.Text, "4000")
		}
		if !warned {
			t.Errorf("%s: warnings %+v", c.Mode, c.Warnings)
		}
	}
}

// Without any room to speak of a visit fails, and says why.
func TestNoRoom(t *testing.T) {
	b := &fake.Builder{Rate: rate(20_000), Room: func(path.Spec) sample.Room { return sample.NewRoom(100, 28_132, 9_999, 10_000, 1) }}
	q := crr(1)
	q.Loads = q.Loads[:1]
	r := try(t, context.Background(), b, q, nil)
	if r.err != nil || len(r.report.Failed) == 0 {
		t.Fatal(r.err, r.report.Failed)
	}
	if e := r.report.Failed[0].Evidence; !strings.Contains(e, "conntrack-full") {
		t.Errorf("failed with %q", e)
	}
}

// The report knows every failure that the load counts.
func TestFailuresAreReported(t *testing.T) {
	q := crr(1)
	q.Loads = q.Loads[:1]
	for _, kind := range []string{load.FailedTimeout, load.FailedRefused, load.FailedNoPort, load.FailedConnect, load.FailedExchange} {
		r := try(t, context.Background(), &fake.Builder{Rate: rate(1000)}, q, nil)
		for i := range r.file.Visits {
			r.file.Visits[i].Client.Counts = map[string]int64{kind: 1, load.Failed: 2}
		}
		for _, c := range analysis.Judge(r.file).Cells {
			if x := c.Metrics[analysis.FailedConnections].Median; x != 1 {
				t.Errorf("%s: %g failed connections", kind, x)
			}
		}
	}
}
