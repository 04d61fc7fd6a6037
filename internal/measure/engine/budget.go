package engine

import (
	"math"

	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

const (
	// leastShare is the share of an epoch's length below which it is not worth its start.
	leastShare = 0.2
	// mostShare is the largest share that epochs are lengthened to, to fill the budget.
	mostShare = 1.5
	// budgetShare is the share of the remaining time that is planned: epochs end with a whole
	// cycle.
	budgetShare = 0.98
	// latest is the share of the budget that a run may take if turns are slower than planned.
	latest = 1.1
)

// budget fits rounds into the available time.
type budget struct {
	length float64                 // of the slices of this round's epochs, in s; 0: the plan's
	spent  map[sample.Cell]float64 // by turn, on everything but slices, in s, the last time
}

// turnOf returns a key for a turn: for a visit its cell, for an epoch its load.
func turnOf(p sample.Plan, t plan.Turn) sample.Cell {
	c := p.Cells[t.Cells[0]]
	if t.Epoch {
		return sample.Cell{Load: c.Load}
	}
	return c
}

// note records what a turn took besides its slices.
func (b *budget) note(p sample.Plan, t plan.Turn, took float64) {
	if b.spent == nil {
		b.spent = map[sample.Cell]float64{}
	}
	if t.Epoch {
		took -= b.length
	}
	b.spent[turnOf(p, t)] = max(0, took)
}

// besides returns what a round takes besides slices, in seconds, and the number of its epochs.
func (b *budget) besides(p sample.Plan, turns []plan.Turn) (seconds float64, epochs int) {
	for _, t := range turns {
		seconds += b.spent[turnOf(p, t)]
		if t.Epoch {
			epochs++
		}
	}
	return seconds, epochs
}

// fits reports whether another round, at least a short one, fits into the seconds left.
func (b *budget) fits(p sample.Plan, turns []plan.Turn, left float64) bool {
	seconds, epochs := b.besides(p, turns)
	return seconds+float64(epochs)*leastShare*p.Epoch <= left
}

// plan chooses the length of the next round's epochs, so that whole rounds fill the seconds left.
func (b *budget) plan(p sample.Plan, turns []plan.Turn, round int, left float64) {
	seconds, epochs := b.besides(p, turns)
	switch {
	case round == 0:
		b.length = plan.FirstShare * p.Epoch
	case p.Rounds > 0 || epochs == 0:
		b.length = p.Epoch
	default:
		rounds := max(1, math.Round(left/(seconds+float64(epochs)*p.Epoch)))
		b.length = (budgetShare*left/rounds - seconds) / float64(epochs)
		b.length = min(max(b.length, leastShare*p.Epoch), mostShare*p.Epoch)
	}
}

// late reports whether a turn would end so far beyond the budget that it is not begun. The rounds
// of endpoints, whose answers take any time, and of a search's steps are always made.
func (r *run) late(t plan.Turn) bool {
	p := r.Plan
	if p.Rounds > 0 || r.Endpoints != nil || r.Next != nil {
		return false
	}
	seconds := r.budget.spent[turnOf(p, t)]
	if t.Epoch {
		seconds += leastShare * p.Epoch
	}
	return r.elapsed()+seconds > latest*p.Budget
}
