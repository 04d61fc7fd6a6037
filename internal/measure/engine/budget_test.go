package engine_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/measure/program"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/fake"
)

// asked is an endpoint whose answers visit waits for.
type asked struct {
	visit func(ctx context.Context) error
}

func (asked) Paths() []sample.Path { return []sample.Path{{Route: "a"}, {Route: "b"}} }

func (a asked) Visit(ctx context.Context, _ sample.Cell, _ sample.Load, v *sample.Visit) error {
	v.Client.Window, v.Values = 1, map[string]float64{"response": 1}
	return a.visit(ctx)
}

func askFor(t *testing.T, budget float64, bound bool,
	visit func(context.Context, *fake.Clock) error) (sample.End, *sample.File) {
	t.Helper()
	p, err := plan.Endpoints(plan.Request{Baseline: "a", Precision: 1e-6, Budget: budget,
		Bound: bound, Loads: []sample.Load{{Kind: "chat", Streams: 1, Window: 1,
			Options: sample.ChatOptions{Requests: 1, Tokens: 8}}}}, []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	clock, records := &fake.Clock{}, bytes.Buffer{}
	end, err := engine.Run(t.Context(), engine.Config{Plan: p, Meter: fake.Meter{Clock: clock},
		Clock: clock, Out: sample.NewWriter(&records),
		Endpoints: asked{func(ctx context.Context) error { return visit(ctx, clock) }}})
	if err != nil {
		t.Fatal(err)
	}
	f, err := sample.Read(&records)
	if err != nil {
		t.Fatal(err)
	}
	return end, f
}

// A given budget ends a run of endpoints. The default one grows to the least rounds.
func TestSlowEndpointEndsWithItsBudget(t *testing.T) {
	slow := func(ctx context.Context, c *fake.Clock) error {
		return c.Sleep(ctx, c.Now()+(4*time.Second).Nanoseconds())
	}
	for _, tt := range []struct {
		bound  bool
		rounds int
	}{{true, 2}, {false, plan.MinRounds}} {
		const budget = 25
		end, f := askFor(t, budget, tt.bound, slow)
		if end.Reason != sample.EndedByBudget || end.Rounds != tt.rounds ||
			tt.bound != (end.Elapsed <= budget) {
			t.Errorf("given %v: %+v", tt.bound, end)
		}
		for _, v := range f.Visits {
			if v.Failure != "" {
				t.Errorf("given %v: %+v", tt.bound, v)
			}
		}
	}
}

// A response without an end is no failure of the route.
func TestBudgetEndsAVisit(t *testing.T) {
	n := 0
	end, f := askFor(t, 0.2, true, func(ctx context.Context, _ *fake.Clock) error {
		if n++; n < 3 {
			return nil
		}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if end.Reason != sample.EndedByBudget || len(f.Visits) != 2 {
		t.Errorf("%+v, %d visits", end, len(f.Visits))
	}
}

// Once the least rounds are made, a machine that becomes slower ends a run no later.
func TestSlowerMachineEndsInTime(t *testing.T) {
	const budget = 22.
	var clock engine.Clock
	b := &fake.Builder{Program: func(_ path.Spec, o program.Request, _ int) program.State {
		if o.Op != program.Wait {
			return program.State{}
		}
		took := time.Second
		const least = 18 // s, of three visits in each of six rounds
		if clock.Now() >= (least * time.Second).Nanoseconds() {
			took = 1900 * time.Millisecond
		}
		_ = clock.Sleep(context.Background(), clock.Now()+took.Nanoseconds())
		return latency(float64(clock.Now()%7 + 1))
	}}
	req := programs(0)
	req.Budget, req.Precision = budget, 1e-6
	r := try(t, context.Background(), b, req, func(c *engine.Config) { clock = c.Clock })
	if r.err != nil || r.end.Reason != sample.EndedByBudget || r.end.Rounds < plan.MinRounds ||
		r.end.Elapsed > budget || len(r.file.Visits) <= plan.MinRounds*3 {
		t.Errorf("%v, %+v, %d visits", r.err, r.end, len(r.file.Visits))
	}
}

// heldClock holds up the first sleep after a time until its context ends.
type heldClock struct {
	engine.Clock
	t    *testing.T
	from float64 // s
	held *bool
}

func (c heldClock) Sleep(ctx context.Context, until int64) error {
	if *c.held || float64(c.Now())/1e9 < c.from {
		return c.Clock.Sleep(ctx, until)
	}
	*c.held = true
	select {
	case <-ctx.Done():
	case <-time.After(time.Minute):
		c.t.Error("the turn was not ended")
	}
	return context.Cause(ctx)
}

// A turn that a busy machine holds up ends with the run's time, in whatever round.
func TestBudgetEndsATurnThatIsHeldUp(t *testing.T) {
	for _, tt := range []struct{ budget, from float64 }{{0.3, 0}, {20, 19}} {
		req := request()
		req.Budget, req.Precision = tt.budget, 1e-9
		held := false
		r := try(t, context.Background(), &fake.Builder{Rate: drift}, req,
			func(c *engine.Config) { c.Clock = heldClock{c.Clock, t, tt.from, &held} })
		if r.err != nil || r.end.Reason != sample.EndedByBudget || !held {
			t.Errorf("%+v: %v, %+v, held %v", tt, r.err, r.end, held)
		}
	}
}
