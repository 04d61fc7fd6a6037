package engine

import (
	"math"

	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

const (
	// leastShare and mostShare bound the length of an epoch's slices, as multiples of the plan's.
	leastShare = 0.2
	mostShare  = 1.5
	// budgetShare is the planned share of the remaining time. Epochs may take longer than planned,
	// because they end with a whole cycle.
	budgetShare = 0.98
	// latest is the multiple of the budget at which a turn must have ended.
	latest    = 1.1
	leastLate = 2 // s, which a turn has in any case, so that a run of a few seconds has a result
)

type budget struct {
	length float64                 // of the slices of this round's epochs, in s; 0: the plan's
	spent  map[sample.Cell]float64 // by turn, on everything but slices, in s
	// slower is by how much longer the last turn took than the same one before, from 1 to
	// mostSlower.
	slower float64
}

// mostSlower is the factor by which turns are expected to take longer after one that did.
const mostSlower = 2

func turnOf(p sample.Plan, t plan.Turn) sample.Cell {
	c := p.Cells[t.Cells[0]]
	if t.Epoch {
		return sample.Cell{Load: c.Load}
	}
	return c
}

func (b *budget) note(p sample.Plan, t plan.Turn, took float64) {
	if b.spent == nil {
		b.spent = map[sample.Cell]float64{}
	}
	spent := max(0, took-b.lengthOf(p, t))
	if before := b.spent[turnOf(p, t)]; before > 0 {
		b.slower = min(max(1, spent/before), mostSlower)
	}
	if p.Trace != nil { // some epochs are traced
		spent = max(spent, b.spent[turnOf(p, t)])
	}
	b.spent[turnOf(p, t)] = spent
}

// lengthOf returns the length of a turn's slices, in s; 0: it is a visit.
func (b *budget) lengthOf(p sample.Plan, t plan.Turn) float64 {
	switch {
	case t.Brief:
		return leastShare * p.Epoch
	case t.Epoch:
		return b.length
	}
	return 0
}

// besides returns the time that the turns spend on everything but slices whose length the budget
// decides, and the number of epochs with such slices.
func (b *budget) besides(p sample.Plan, turns []plan.Turn) (seconds float64, epochs int) {
	for _, t := range turns {
		seconds += b.spent[turnOf(p, t)]
		switch {
		case t.Brief:
			seconds += b.lengthOf(p, t)
		case t.Epoch:
			epochs++
		}
	}
	return seconds, epochs
}

func (b *budget) fits(p sample.Plan, turns []plan.Turn, left float64) bool {
	seconds, epochs := b.besides(p, turns)
	return seconds+float64(epochs)*leastShare*p.Epoch <= left
}

func (b *budget) plan(p sample.Plan, turns []plan.Turn, round int, left float64) {
	seconds, epochs := b.besides(p, turns)
	switch {
	case round == 0:
		b.length = plan.FirstShare(p) * p.Epoch
	case p.Rounds > 0 || epochs == 0:
		b.length = p.Epoch
	default:
		rounds := max(1, math.Round(left/(seconds+float64(epochs)*p.Epoch)))
		if p.Trace != nil {
			rounds = max(rounds, float64(plan.LeastRounds(p)-round))
		}
		b.length = (budgetShare*left/rounds - seconds) / float64(epochs)
		b.length = min(max(b.length, leastShare*p.Epoch), mostShare*p.Epoch)
	}
}

// expected returns the time that a turn will spend on everything but slices, in s. The first visit
// to a cell is expected to take as long as the longest one of its load, because if one program
// hangs, the others may, too.
func (b *budget) expected(p sample.Plan, t plan.Turn) (seconds float64) {
	of := turnOf(p, t)
	seconds, known := b.spent[of]
	if known || t.Epoch {
		return max(1, b.slower) * seconds
	}
	for cell, s := range b.spent {
		if cell.Load == of.Load {
			seconds = max(seconds, s)
		}
	}
	return seconds
}

// late reports whether the turn would exceed the run's limit.
func (r *run) late(t plan.Turn) bool {
	seconds := r.budget.expected(r.Plan, t)
	if t.Epoch {
		seconds += leastShare * r.Plan.Epoch
	}
	return r.elapsed()+seconds > r.limit()
}

// limit returns the time after the run's start at which it must have ended, in s. A number of
// rounds, and the least rounds of endpoints, whose speed is not known, are limited by Plan.Within
// only. The least rounds of others, on a machine that is slower than planned, may take longer than
// the budget or, if that is later, than their end in a search's step, but not much.
func (r *run) limit() float64 {
	p := r.Plan
	until := max(p.Budget, r.step.least)
	enough := r.roundsIn-r.step.first >= plan.LeastRounds(p)
	switch {
	case r.Next == nil && p.Within > 0: // a search has a share of the budget for each step
		return p.Within
	case p.Rounds > 0, r.Endpoints != nil && !enough:
		return math.Inf(1)
	case enough:
		return until
	}
	return latest * until
}

// shorten makes the next epochs as long as the time that is left allows.
func (b *budget) shorten(p sample.Plan, t plan.Turn, left float64) {
	if t.Epoch && !t.Brief && p.Trace == nil {
		b.length = min(b.length, max(left-b.expected(p, t), leastShare*p.Epoch))
	}
}
