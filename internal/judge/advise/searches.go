package advise

import (
	"github.com/bridgetoll/bridgetoll/internal/record/lever"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// The shares of a search's time: in which each lever is tried alone; that must be left for
// continuing with undecided levers; and, of what is left, for that continuation.
const (
	AloneShare = 0.5
	leastMore  = 0.2
	moreShare  = 0.5
)

// Searches decides what a run measures next: the rest of a search, then the others, which begin
// with an equal share of the time that is left.
type Searches struct {
	later []sample.Plan // searches that have not begun
	time  float64       // time of the current search, in seconds
	floor float64       // part of the budget for the later searches, in seconds
}

// NewSearches returns the searches of a run of budget seconds, whose first plan is not in later.
func NewSearches(later []sample.Plan, budget float64) *Searches {
	s := &Searches{later: later}
	s.share(budget)
	return s
}

// First returns the seconds in which the first search's levers are tried alone.
func (s *Searches) First() float64 { return AloneShare * s.time }

// share begins a search with left seconds, minus the later searches' share.
func (s *Searches) share(left float64) {
	s.time = max(0, left) / float64(len(s.later)+1)
	s.floor = max(0, left) - s.time
}

// Next returns the run's next step, its cells and the seconds for them. left is the rest of the
// budget in seconds. Without cells the run ends.
func (s *Searches) Next(p sample.Plan, visits []sample.Visit,
	left float64) (sample.Step, []sample.Cell, float64) {
	if step, cells, seconds := s.further(p, visits, left-s.floor); len(cells) > 0 {
		return step, cells, seconds
	}
	if len(s.later) == 0 {
		return sample.Step{}, nil, 0
	}
	next := s.later[0]
	s.later = s.later[1:]
	s.share(left)
	return sample.Step{Begins: &sample.Search{
			Baseline: next.Baseline, Elsewhere: next.Elsewhere, Levers: next.Levers},
			Skipped: next.Skipped},
		next.Cells, AloneShare * s.time
}

// further returns the search's next step and its cells. Without cells the search ends.
func (s *Searches) further(p sample.Plan, visits []sample.Visit,
	left float64) (sample.Step, []sample.Cell, float64) {
	step, waiting := Next(p, visits)
	own := p.Now()
	n := len(own.Steps)
	switch {
	case waiting == 0 && p.Rounds == 0 && left > leastMore*s.time:
		return step, Open(p, visits), moreShare * left
	case waiting == 0, left <= 0 && p.Rounds == 0 && n > 0 && own.Steps[n-1].Lever != "":
		return step, nil, 0
	}
	return step, pairOf(own, step.Before, step.After), max(0, left) / float64(waiting)
}

// pairOf returns the cells of a step that replaces the variant before by after: both, the baseline
// and its control, over all loads, from each placement that has the baseline.
func pairOf(p sample.Plan, before, after sample.Variant) []sample.Cell {
	var out []sample.Cell
	seen := map[sample.Cell]bool{}
	for _, base := range p.Cells {
		if !p.IsBaseline(base) || base.Control {
			continue
		}
		for _, l := range p.Loads {
			base.Load = l.Kind
			if seen[base] || l.Slice > 0 && after.Tune.OfMachine() { // whose visits alone have it
				continue
			}
			seen[base] = true
			control := base
			control.Control = true
			out = append(out, base, control)
			for _, v := range []sample.Variant{before, after} {
				if c, ok := lever.Cell(p, base, v); ok && c != base {
					out = append(out, c)
				}
			}
		}
	}
	return out
}
