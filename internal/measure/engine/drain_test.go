package engine_test

import (
	"context"
	"math"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/fake"
)

func crr(rounds int) plan.Request {
	r := request()
	r.Loads = []sample.Load{{Kind: "crr", Options: sample.Messages{Request: 1, Reply: 1},
		Warmup: 0.1, Window: 0.25}, {Kind: "rr", Warmup: 0.05, Window: 0.25}}
	r.Rounds = rounds
	return r
}

func rate(r float64) func(path.Spec, string, int) float64 {
	return func(path.Spec, string, int) float64 { return r }
}

func TestPathsAreDrained(t *testing.T) {
	drained := 0
	b := &fake.Builder{Rate: rate(1000), Headroom: func(path.Spec) sample.Headroom {
		drained++
		return sample.NewHeadroom(28232, 0, 0, 0, 1)
	}}
	r := try(t, context.Background(), b, crr(2), nil)
	if r.err != nil || len(r.report.Failed) > 0 {
		t.Fatal(r.err, r.report.Failed)
	}
	visits := 0
	for _, v := range r.file.Visits {
		is := r.file.Header.Plan.Cells[v.Cell].Load == "crr"
		if (v.Headroom != nil) != is {
			t.Errorf("%s has the headroom %+v", r.file.Header.Plan.Cells[v.Cell].Load, v.Headroom)
		}
		if is {
			visits++
			if v.Headroom.Window != 0 {
				t.Errorf("a visit with headroom for all was cut to %g s", v.Headroom.Window)
			}
		}
	}
	if visits == 0 || drained != 2*visits {
		t.Errorf("%d visits, drained %d times", visits, drained)
	}
}

// The first visit runs out; the next ones are cut.
func TestBudgetsAreKept(t *testing.T) {
	const ports, perSecond = 4000, 20_000
	b := &fake.Builder{Rate: rate(perSecond), Headroom: func(path.Spec) sample.Headroom {
		return sample.NewHeadroom(ports, 0, 0, 0, 1)
	}}
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
			whole = v.Headroom.Window * (0.1 + 0.25) / 0.25
			if v.Elapsed == 0 {
				t.Errorf("a visit that did not run out lacks the machine's clocks: %+v", v)
			}
		}
		if made := perSecond * whole; made <= 0 || made > ports {
			t.Errorf("round %d: %.0f connections, there is headroom for %d", v.Round, made, ports)
		}
	}
	for _, c := range r.report.Cells {
		if x := c.Metrics[workload.Connections].Median; math.Abs(x-perSecond) > perSecond/1000 {
			t.Errorf("%s: %g connections a second", c.Mode, x)
		}
		warned := false
		for _, w := range c.Warnings {
			warned = warned || w.Code == workload.PortsExhausted && w.Found.N == 3 &&
				w.Found.Of == 3 && w.Found.Values[workload.PortsExhausted] == ports
		}
		if !warned {
			t.Errorf("%s: warnings %+v", c.Mode, c.Warnings)
		}
	}
}

func TestNoHeadroom(t *testing.T) {
	b := &fake.Builder{Rate: rate(20_000), Headroom: func(path.Spec) sample.Headroom {
		return sample.NewHeadroom(100, 28_132, 9_999, 10_000, 1)
	}}
	q := crr(1)
	q.Loads = q.Loads[:1]
	r := try(t, context.Background(), b, q, nil)
	if r.err != nil || len(r.report.Failed) == 0 {
		t.Fatal(r.err, r.report.Failed)
	}
	if e := r.report.Failed[0].Evidence; e != "conntrack-full: the connection table was full after 1 connections, before the window began" {
		t.Errorf("failed with %q", e)
	}
}

func TestFailuresAreReported(t *testing.T) {
	q := crr(1)
	q.Loads = q.Loads[:1]
	for _, kind := range []string{workload.FailedTimeout, workload.FailedRefused,
		workload.FailedNoPort, workload.FailedConnect, workload.FailedExchange} {
		r := try(t, context.Background(), &fake.Builder{Rate: rate(1000)}, q, nil)
		for i := range r.file.Visits {
			r.file.Visits[i].Client.Counts = map[string]int64{kind: 1, workload.Failed: 2}
		}
		for _, c := range analysis.Judge(r.file).Cells {
			if x := c.Metrics[workload.FailedConnections].Median; x != 1 {
				t.Errorf("%s: %g failed connections", kind, x)
			}
		}
	}
}
