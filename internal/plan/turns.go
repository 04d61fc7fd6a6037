package plan

import (
	"math"
	"math/rand/v2"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Turn is what is measured at a time: one cell in a visit, or in an epoch all sliced cells of
// one load and one placement on CPUs, of a sweep at one point.
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
	type workload struct{ load, point, pin string }
	epochs := map[workload]int{} // index into out
	for i, c := range p.Cells {
		if !isSliced(p, i) {
			out = append(out, Turn{Cells: []int{i}})
			continue
		}
		w := workload{c.Load, c.Point, c.Pin}
		at, ok := epochs[w]
		if !ok {
			at = len(out)
			epochs[w] = at
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
//
// A curve takes more: of few epochs the interval is wide, and by rounds the median of fewer than
// this is nowhere known at the level at which a curve's points are judged.
func LeastRounds(p sample.Plan) int {
	sliced := true
	for i := range p.Cells {
		sliced = sliced && isSliced(p, i)
	}
	switch {
	case p.Sweep != nil && sliced:
		return curveEpochs
	case p.Sweep != nil:
		return int(math.Ceil(1 + math.Log2(float64(len(p.Sweep.Points))/sample.CurveRisk)))
	case sliced:
		return 1
	}
	return MinRounds
}

// curveEpochs is how many epochs each point of a sweep has at least.
const curveEpochs = 3

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
	seconds := l.Warmup + l.Window + visitOverhead + eachOverhead*float64(ends-2)
	if farBackends[c.On] {
		seconds += farOverhead
	}
	return seconds
}

// farOverhead is what a visit takes besides where agents on other machines make it, in seconds:
// clocks are compared before it, its ends are told in time, and late words are waited for (see
// internal/measure/engine). On a Kubernetes whose nodes are on one machine it was 0.27 s of a visit on average.
const farOverhead = 0.25

// farBackends are those that do so. Plans do not know who builds but by name.
var farBackends = map[string]bool{sample.Swarm: true, sample.Kubernetes: true, sample.Peer: true}
