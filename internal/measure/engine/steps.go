package engine

import (
	"context"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// stage is the current part of the run: what was planned, or a step after it.
type stage struct {
	first  int     // round
	until  float64 // s since the run's start
	least  float64 // the end of its least rounds as planned, in s since the run's start
	active []bool  // by index; nil: all
}

func (s stage) rests(cell int) bool {
	return s.active != nil && (cell >= len(s.active) || !s.active[cell])
}

// next begins the step that Next returns. more is false if the run is over.
func (r *run) next(ctx context.Context, round int, ended string) (more bool, err error) {
	if r.Next == nil || ended == sample.EndedByFailure || ended == sample.EndedByBusy {
		return false, nil
	}
	s, cells, seconds := r.Next(r.Plan, slices.Clip(r.visits), r.Plan.Budget-r.elapsed())
	if len(cells) == 0 {
		return false, nil
	}
	// Building may change paths on a real machine.
	if err := r.inspect(ctx, round); err != nil {
		return false, err
	}
	s.Round = round
	if s, err = r.extend(ctx, s, cells); err != nil {
		return false, err
	}
	if err := r.Out.Step(s); err != nil {
		return false, err
	}
	r.survey()
	r.step = stage{first: round, until: r.elapsed() + seconds,
		active: make([]bool, len(r.Plan.Cells))}
	step := r.Plan
	step.Cells = nil
	for _, i := range s.Active {
		r.step.active[i] = true
		step.Cells = append(step.Cells, r.Plan.Cells[i])
	}
	r.step.least = r.elapsed() + plan.LeastTime(step)
	r.known = nil
	if r.Judge != nil {
		r.judge = r.Judge(sample.Header{Plan: r.resting(), Paths: r.described})
		for _, v := range r.visits {
			if v.Round >= round {
				r.judge.Add(v)
			}
		}
	}
	return true, nil
}

// resting returns the plan with the resting cells changed so that the judge does not use the
// baselines of other searches.
func (r *run) resting() sample.Plan {
	p := r.Plan
	p.Cells = slices.Clone(p.Cells)
	for i := range p.Cells {
		if r.step.rests(i) {
			p.Cells[i].Mode, p.Cells[i].Control = "", false
		}
	}
	return p
}

// extend builds the paths of a step's new cells and adds these cells to the plan. It skips what
// cannot be built.
func (r *run) extend(ctx context.Context, s sample.Step, cells []sample.Cell) (sample.Step, error) {
	known := map[sample.Cell]int{}
	for i, c := range r.Plan.Cells {
		known[c] = i
	}
	if b := s.Begins; b != nil {
		r.Plan.Baseline, r.Plan.Elsewhere, r.Plan.Levers = b.Baseline, b.Elsewhere, b.Levers
	}
	fresh := r.Plan
	fresh.Cells, fresh.Skipped = nil, nil
	var keys []key
	for _, c := range cells {
		if _, ok := known[c]; ok {
			continue
		}
		fresh.Cells = append(fresh.Cells, c)
		if k := keyOf(r.Plan, c); r.paths[k] == nil && !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	refused, err := each(keys, r.Builders, func(b path.Builder, k key) error {
		return b.Check(ctx, k.spec)
	})
	if err != nil {
		return s, err
	}
	keys = slices.DeleteFunc(keys, func(k key) bool { return refused[k] != nil })
	built, failed, err := r.buildPaths(ctx, keys)
	if err != nil {
		return s, err
	}
	fresh = plan.Drop(fresh, func(c sample.Cell) *sample.Skip {
		k := keyOf(r.Plan, c)
		if why := refused[k]; why != nil {
			return skipFor(c, why)
		}
		return skipFor(c, failed[k])
	})
	s.Cells, s.Paths = fresh.Cells, built
	s.Skipped = append(slices.Clip(s.Skipped), fresh.Skipped...)
	h := sample.Header{Plan: r.Plan, Paths: r.described}
	h.Take(s)
	r.Plan, r.described = h.Plan, h.Paths
	for _, c := range fresh.Cells {
		known[c] = len(r.fails)
		r.fails = append(r.fails, 0)
	}
	r.drains = append(r.drains, firstDrains(fresh)...)
	s.Active = nil
	for _, c := range cells {
		if i, ok := known[c]; ok && !slices.Contains(s.Active, i) {
			s.Active = append(s.Active, i)
		}
	}
	r.Plan.Steps[len(r.Plan.Steps)-1].Active = s.Active
	return s, nil
}
