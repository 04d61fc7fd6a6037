package plan

import (
	"math/rand/v2"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Turn is what is measured at a time: one cell in a visit, or all sliced cells of
// one load in an epoch.
type Turn struct {
	Cells []int // indexes into Plan.Cells; of a visit one
	Epoch bool
}

// Turns are the turns of a round in their order, which is shuffled by the seed.
// Each cell is in one of them.
func Turns(p sample.Plan, round int) []Turn {
	all := unshuffled(p)
	out := make([]Turn, 0, len(all))
	for _, i := range rand.New(rand.NewPCG(p.Seed, uint64(round))).Perm(len(all)) {
		out = append(out, all[i])
	}
	return out
}

// unshuffled are the turns of a round in the order of their first cells.
func unshuffled(p sample.Plan) []Turn {
	var out []Turn
	epochs := map[string]int{} // index into out by load
	for i, c := range p.Cells {
		if !isSliced(p, i) {
			out = append(out, Turn{Cells: []int{i}})
			continue
		}
		at, ok := epochs[c.Load]
		if !ok {
			at = len(out)
			epochs[c.Load] = at
			out = append(out, Turn{Epoch: true})
		}
		out[at].Cells = append(out[at].Cells, i)
	}
	return out
}

// Order is the order of the cells in a round, turn by turn: indexes into p.Cells.
func Order(p sample.Plan, round int) []int {
	out := make([]int, 0, len(p.Cells))
	for _, t := range Turns(p, round) {
		out = append(out, t.Cells...)
	}
	return out
}

// LeastRounds is how many rounds a run that is not cut short makes at least. An
// epoch has many pairs to judge by, a round of visits has one.
func LeastRounds(p sample.Plan) int {
	for i := range p.Cells {
		if !isSliced(p, i) {
			return MinRounds
		}
	}
	return 1
}

// FirstShare is the share of an epoch's slices that the first round's have: then
// there is something to say of every cell after a few seconds.
const FirstShare = 0.3

// turnTime estimates how long a turn takes, in seconds, whose epochs have that share
// of the plan's length.
func turnTime(p sample.Plan, t Turn, share float64) float64 {
	const second = 1e9
	if t.Epoch {
		return float64(Epoch(p, t.Cells, Pace{Length: share * p.Epoch}, 0).Length)/second + epochOverhead
	}
	c := p.Cells[t.Cells[0]]
	l := p.LoadFor(c)
	ends := max(1, c.Shape.Servers) + max(1, c.Shape.Clients*c.Shape.Procs)
	return l.Warmup + l.Window + visitOverhead + eachOverhead*float64(ends-2)
}
