package engine_test

import (
	"context"
	"math"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/fake"
)

func crowdRequest(shapes ...sample.Shape) plan.Request {
	r := request()
	r.Study, r.Rounds = sample.StudyScale, 2
	r.Shapes, r.Loads = shapes, r.Loads[:1]
	return r
}

func TestCrowd(t *testing.T) {
	three, six := sample.Shape{Servers: 2, Clients: 3, Procs: 1},
		sample.Shape{Servers: 2, Clients: 3, Procs: 2}
	b := &fake.Builder{
		Rate: func(path.Spec, string, int) float64 { return 6e6 },
		Share: func(s path.Spec, client, proc int) float64 {
			if client == 1 && proc == 0 {
				return 0
			}
			return 0.1 * float64(client+1)
		},
	}
	r := try(t, context.Background(), b, crowdRequest(three, six), nil)
	if r.err != nil || len(r.report.Failed) > 0 {
		t.Fatal(r.err, r.report.Failed)
	}
	if n := len(r.file.Header.Paths); n != 2 {
		t.Errorf("%d paths were built", n)
	}
	for _, v := range r.file.Visits {
		shape := r.file.Header.Plan.Cells[v.Cell].Shape
		if len(v.Rates) != shape.Clients || v.Server.Connections != shape.Clients*shape.Procs ||
			v.Client.Connections != shape.Clients*shape.Procs {
			t.Fatalf("%s: %+v", shape, v)
		}
		for c, procs := range v.Rates {
			if len(procs) != shape.Procs {
				t.Fatalf("%s: rates %v", shape, v.Rates)
			}
			for p, got := range procs {
				want := 6e5 * float64(c+1)
				if c == 1 && p == 0 {
					want = 0
				}
				if math.Abs(got-want) > 1e-6*want {
					t.Errorf("%s: client %d, process %d: %g, want %g", shape, c, p, got, want)
				}
			}
		}
	}
}

func TestCrowdThatDies(t *testing.T) {
	b := &fake.Builder{Die: func(s path.Spec, _ int) bool { return s.Mode == bridgeSpec.Mode }}
	r := try(t, context.Background(), b, crowdRequest(
		sample.Shape{Servers: 1, Clients: 20, Procs: 5}), nil)
	failed := 0
	for _, v := range r.file.Visits {
		if v.Failure == "" {
			continue
		}
		failed++
		if v.Failure != "server, client (2 times): the worker died; and 98 more errors" {
			t.Errorf("failure %q", v.Failure)
		}
	}
	if failed != 2 {
		t.Errorf("%d visits failed", failed)
	}
}

func TestCrowdsTakeTurns(t *testing.T) {
	var starts []engine.Progress
	req := crowdRequest(sample.Shape{Servers: 1, Clients: 1, Procs: 1},
		sample.Shape{Servers: 1, Clients: 10, Procs: 10})
	req.Turn = 0.01
	r := try(t, context.Background(), &fake.Builder{}, req, func(c *engine.Config) {
		c.Progress = func(p engine.Progress) { starts = append(starts, p) }
	})
	p := r.file.Header.Plan
	for i, v := range r.file.Visits {
		l := p.LoadFor(p.Cells[v.Cell])
		want := map[int]float64{1: 0.25, 10: 3}[p.Cells[v.Cell].Shape.Procs]
		if math.Abs(l.Window-want) > 1e-9 {
			t.Errorf("window %g, want %g", l.Window, want)
		}
		if math.Abs(v.Server.Window-l.Window) > 1e-6 {
			t.Errorf("measured %g s of %g", v.Server.Window, l.Window)
		}
		if i+1 < len(starts) && starts[i+1].Elapsed-starts[i].Elapsed < l.Warmup+l.Window {
			t.Errorf("visit %d took %g s", i, starts[i+1].Elapsed-starts[i].Elapsed)
		}
	}
}
