package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// After giveUpAfter failures in a row a cell is only tried in every retryEvery-th round. Otherwise
// a cell that hangs would use up the budget. One that a busy machine starved may recover.
const (
	giveUpAfter = 3
	retryEvery  = 4
)

// An epoch of which all cells are known is only measured in every lookEvery-th round, and briefly,
// because a path may break.
const lookEvery = 4

func (r *run) rounds(ctx context.Context) (reason string, err error) {
	for round := 0; ; round++ {
		turns := r.busy(round)
		r.budget.plan(r.Plan, turns, round, r.step.until-r.elapsed())
		late := false
		for i, turn := range turns {
			if err := r.inspectIfDue(ctx, round); err != nil {
				return sample.EndedByFailure, err
			}
			began := r.elapsed()
			// An inspection between the turns may have excluded cells.
			turn.Cells = slices.DeleteFunc(turn.Cells, func(cell int) bool {
				return r.skipped(round, cell)
			})
			if len(turn.Cells) == 0 {
				continue
			}
			if late = r.late(turn); late {
				break
			}
			r.budget.shorten(r.Plan, turn, r.limit()-r.elapsed())
			r.tell(round, i, len(turns), turn)
			if reason, err := r.take(ctx, round, turn); reason != "" {
				return reason, err
			}
			r.budget.note(r.Plan, turn, r.elapsed()-began)
		}
		reason = sample.EndedByBudget
		if !late {
			r.roundsIn++
			reason = r.enough(round + 1)
		}
		if reason == "" {
			continue
		}
		more, err := r.next(ctx, round+1, reason)
		switch {
		case ctx.Err() != nil:
			return sample.EndedByInterrupt, nil
		case err != nil:
			return sample.EndedByFailure, err
		case !more:
			return r.confirm(ctx, round, reason)
		}
	}
}

func (r *run) skipped(round, cell int) bool {
	return r.step.rests(cell) || r.inspection.lost[keyOf(r.Plan, r.Plan.Cells[cell])] ||
		r.fails[cell] >= giveUpAfter && round%retryEvery != 0
}

// settled reports whether all of the cells are known, and the run has no number of rounds.
func (r *run) settled(cells []int) bool {
	return r.Plan.Rounds == 0 &&
		!slices.ContainsFunc(cells, func(cell int) bool { return r.known == nil || !r.known[cell] })
}

// take takes a turn. A reason that is not "" ends the run.
func (r *run) take(ctx context.Context, round int, t plan.Turn) (reason string, err error) {
	inner, cancel := r.within(ctx)
	defer cancel()
	made := r.repeated(inner, func() []sample.Visit {
		if t.Epoch {
			return r.epoch(inner, round, t)
		}
		return []sample.Visit{r.visit(inner, round, t.Cells[0])}
	})
	switch {
	case ctx.Err() != nil:
		return sample.EndedByInterrupt, nil
	case inner.Err() != nil && !r.Plan.Counts(made[0]):
		return sample.EndedByBudget, nil
	}
	for _, v := range made {
		r.fails[v.Cell]++
		if r.Plan.Counts(v) {
			r.fails[v.Cell] = 0
		}
		if r.judge != nil {
			r.judge.Add(v)
		}
		r.visits = append(r.visits, v)
		if err := r.Out.Visit(v); err != nil {
			return sample.EndedByFailure, err
		}
	}
	if err := cmp.Or(r.untraced, r.lostTouch(ctx, round)); err != nil {
		return sample.EndedByFailure, err
	}
	return "", nil
}

// within returns a context that ends a turn when the run takes longer than latest times what it was
// given, because a turn may take any time on a machine that becomes slower, or with an endpoint.
func (r *run) within(ctx context.Context) (context.Context, context.CancelFunc) {
	p := r.Plan
	until := max(p.Budget, r.step.least)
	switch {
	case r.Next == nil && p.Within > 0:
		until = p.Within
	case p.Rounds > 0 || r.Endpoints != nil:
		return context.WithCancel(ctx)
	}
	left := max(latest*until, until+leastLate) - r.elapsed()
	return context.WithTimeout(ctx, time.Duration(left*float64(time.Second)))
}

// lostTouch handles a *path.CutError of the last turn. If machines are gone, it excludes their
// cells. Otherwise it returns the error, which ends the run.
func (r *run) lostTouch(ctx context.Context, round int) error {
	cut := r.cut
	if r.cut = nil; cut == nil {
		return nil
	}
	known := len(r.inspection.lost)
	if err := r.inspect(ctx, round); err != nil {
		return err
	}
	if len(r.inspection.lost) > known {
		return nil
	}
	return cut
}

// confirm repeats cells whose last visit failed and the one before did not, so that a path that
// broke in the last round does not look like a disturbed visit. Endpoints are left out, because
// requests may cost money.
func (r *run) confirm(ctx context.Context, round int, ended string) (reason string, err error) {
	if r.Endpoints != nil || ended == sample.EndedByBusy {
		return ended, nil
	}
	for _, t := range r.busy(round + 1) {
		if r.late(t) || !slices.ContainsFunc(t.Cells, func(cell int) bool {
			return r.fails[cell] == 1
		}) {
			continue
		}
		again := round
		if t.Epoch {
			again++
		}
		if reason, err := r.take(ctx, again, t); reason != "" {
			return reason, err
		}
	}
	return ended, nil
}

// enough returns why what is planned is over after a number of rounds, or "" if it is not.
func (r *run) enough(rounds int) string {
	alive := false
	for i, n := range r.fails {
		alive = alive || n < giveUpAfter && !r.step.rests(i)
	}
	own := rounds - r.step.first
	switch {
	case !alive: // nothing is measured any more
		return sample.EndedByFailure
	case r.Plan.Rounds > 0 && own >= r.Plan.Rounds:
		return sample.EndedByRounds
	case r.Plan.Rounds > 0:
		return ""
	case r.EndIfBusy && r.contention.TooBusy():
		return sample.EndedByBusy
	case own < plan.LeastRounds(r.Plan):
		return ""
	case r.judged():
		return sample.EndedByPrecision
	case !r.budget.fits(r.Plan, r.busy(rounds), r.step.until-r.elapsed()):
		return sample.EndedByBudget
	}
	return ""
}

// judged reports whether everything is known, except cells that failed for good.
func (r *run) judged() bool {
	if r.judge == nil || r.Plan.Trace != nil { // a trace has no precision to reach
		return false
	}
	r.known = r.judge.Known()
	for i, known := range r.known {
		if !known && r.fails[i] < giveUpAfter && !r.step.rests(i) {
			return false
		}
	}
	return true
}

func (r *run) tell(round, i, n int, t plan.Turn) {
	if r.Progress == nil {
		return
	}
	total := plan.LeastTime(r.Plan)
	if r.Plan.Rounds == 0 {
		total = max(total, r.Plan.Budget)
	}
	r.Progress(Progress{Round: round, Cell: r.Plan.Cells[t.Cells[0]], Epoch: t.Epoch, Visit: i,
		Tracing: r.state(round),
		Visits:  n, Elapsed: r.elapsed(), Total: total})
}

// busy returns the turns of a round without skipped cells, and without most epochs of known cells.
func (r *run) busy(round int) []plan.Turn {
	var out []plan.Turn
	for _, t := range plan.Turns(r.Plan, round) {
		t.Cells = slices.DeleteFunc(t.Cells, func(cell int) bool { return r.skipped(round, cell) })
		t.Brief = t.Epoch && r.settled(t.Cells)
		if len(t.Cells) > 0 && (!t.Brief || round%lookEvery == 0) {
			out = append(out, t)
		}
	}
	return out
}
