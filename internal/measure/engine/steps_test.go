package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/fake"
)

func TestStepsFollow(t *testing.T) {
	tuned := bridgeSpec
	tuned.Tune = "gro=on"
	refused, broken := bridgeSpec, bridgeSpec
	refused.Tune, broken.Tune = "rps=on", "tso=off"
	b := &fake.Builder{
		Unsupported: map[path.Spec]error{refused: &machine.UnsupportedError{
			Missing: "only root may", Remedy: "sudo"}},
		Broken: map[path.Spec]error{broken: errors.New("no such offload")},
	}
	calls := 0
	got := try(t, context.Background(), b, request(), func(c *engine.Config) {
		c.Plan.Rounds = 2
		c.Next = func(p sample.Plan, visits []sample.Visit, left float64) (
			s sample.Step, cells []sample.Cell, seconds float64) {
			calls++
			if want := []int{12, 16, 22}[calls-1]; len(visits) != want {
				t.Errorf("%d visits before step %d, want %d", len(visits), calls, want)
			}
			if left <= 0 || left >= p.Budget {
				t.Errorf("%g s are left", left)
			}
			plain := p.Cells[slices.IndexFunc(p.Cells, func(c sample.Cell) bool {
				return c.Mode == "bridge" && c.Load == "bulk" && c.Tune == ""
			})]
			at := func(tune mode.Tunes) sample.Cell {
				c := plain
				c.Tune = tune
				return c
			}
			switch calls {
			case 1:
				return sample.Step{Lever: "gro"}, []sample.Cell{
					plain, at("gro=on"), at("rps=on"), at("tso=off")}, left
			case 2:
				return sample.Step{Lever: "again"},
					[]sample.Cell{plain, at("gro=on"), at("rmem=16M")}, left
			}
			return s, nil, 0
		}
	})
	if got.err != nil || got.end.Reason != sample.EndedByRounds || got.end.Rounds != 6 {
		t.Fatalf("ended %+v, %v", got.end, got.err)
	}
	p := got.file.Header.Plan
	if len(p.Steps) != 2 || p.Steps[0].Round != 2 || p.Steps[1].Round != 4 ||
		p.Steps[0].Lever != "gro" {
		t.Fatalf("steps %+v", p.Steps)
	}
	if n := len(p.Cells); n != 8 || p.Cells[6].Tune != "gro=on" || p.Cells[7].Tune != "rmem=16M" {
		t.Errorf("cells %+v", p.Cells)
	}
	if len(p.Skipped) != 2 || p.Skipped[0].Reason != "only root may" ||
		p.Skipped[1].Reason != "no such offload" {
		t.Errorf("skipped %+v", p.Skipped)
	}
	for _, v := range got.file.Visits {
		if step := v.Round / 2; step > 0 && !slices.Contains(p.Steps[step-1].Active, v.Cell) {
			t.Errorf("cell %d is measured in round %d, where it rests", v.Cell, v.Round)
		}
	}
	if _, ok := got.file.Header.PathOf(p.Cells[7]); !ok {
		t.Error("the path of a later cell is not described")
	}
}

func TestStepsEndInTime(t *testing.T) {
	steps := 0
	got := try(t, context.Background(), &fake.Builder{}, request(), func(c *engine.Config) {
		c.Judge, c.First = nil, 0.4*c.Plan.Budget
		c.Next = func(p sample.Plan, _ []sample.Visit, left float64) (
			sample.Step, []sample.Cell, float64) {
			if steps++; steps > 2 {
				return sample.Step{}, nil, 0
			}
			return sample.Step{}, p.Cells[:3], left / 2
		}
	})
	if got.err != nil || got.end.Reason != sample.EndedByBudget || steps != 3 {
		t.Errorf("%d steps, ended %+v, %v", steps, got.end, got.err)
	}
	if first := got.file.Header.Plan.Steps[0]; got.end.Elapsed > 60 || first.Round < 5 {
		t.Errorf("%g s, the first step from round %d on", got.end.Elapsed, first.Round)
	}
}

// A turn takes 16 s instead of one, as on a busy machine.
func TestStepsOnBusyMachine(t *testing.T) {
	steps := 0
	r := request()
	r.Budget = 20
	clock := &fake.Clock{}
	b := &fake.Builder{Rate: func(path.Spec, string, int) float64 {
		_ = clock.Sleep(context.Background(), clock.Now()+int64(4*time.Second))
		return fake.DefaultRate
	}}
	got := try(t, context.Background(), b, r, func(c *engine.Config) {
		c.Clock, c.Meter = clock, fake.Meter{Clock: clock}
		c.Judge, c.First = nil, 0.4*c.Plan.Budget
		c.Next = func(p sample.Plan, _ []sample.Visit, left float64) (
			sample.Step, []sample.Cell, float64) {
			if steps++; steps > 2 {
				return sample.Step{}, nil, 0
			}
			return sample.Step{}, p.Cells, max(0, left)
		}
	})
	const most = 4 * 16 // both turns of what was planned, one of each step
	if got.err != nil || got.end.Reason != sample.EndedByBudget || got.end.Elapsed > most {
		t.Errorf("ended %+v, %v", got.end, got.err)
	}
}

func TestStepInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	got := try(t, ctx, &fake.Builder{}, request(), func(c *engine.Config) {
		c.Plan.Rounds = 2
		c.Next = func(p sample.Plan, _ []sample.Visit, left float64) (
			sample.Step, []sample.Cell, float64) {
			stop()
			c := p.Cells[0]
			c.Tune = "gro=on"
			return sample.Step{}, []sample.Cell{c}, left
		}
	})
	if got.end.Reason != sample.EndedByInterrupt || len(got.file.Visits) != 12 ||
		len(got.file.Header.Plan.Steps) != 0 {
		t.Errorf("ended %+v with %d visits, %v", got.end, len(got.file.Visits), got.err)
	}
}
