package plan

import (
	"math"
	"math/rand/v2"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Turn is what is measured at a time: one cell in a visit, or all sliced cells of one load,
// placement on CPUs and point of a sweep in an epoch.
type Turn struct {
	Cells []int // indexes into Plan.Cells
	Epoch bool
	// Brief means that all cells of the epoch are known, so its slices are as short as they may be.
	Brief bool
}

// Turns returns the turns of a round in an order shuffled by the seed. Each cell is in one of them.
func Turns(p sample.Plan, round int) []Turn {
	all := unshuffled(p)
	out := make([]Turn, 0, len(all))
	for _, i := range rand.New(rand.NewPCG(p.Seed, uint64(round))).Perm(len(all)) {
		out = append(out, all[i])
	}
	return out
}

// unshuffled returns the turns in the order of their first cells.
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

// LeastRounds returns the least number of rounds of a run. An epoch has many pairs to judge by, a
// round of visits has one; a curve's points are judged at a stricter level, and a trace needs every
// state more than once.
func LeastRounds(p sample.Plan) int {
	sliced := true
	for i := range p.Cells {
		sliced = sliced && isSliced(p, i)
	}
	switch {
	case p.Trace != nil:
		return traceBlocks * len(TracingStates(p))
	case p.Sweep != nil && sliced:
		return curveEpochs
	case p.Sweep != nil:
		return int(math.Ceil(1 + math.Log2(float64(len(p.Sweep.Points))/sample.CurveRisk)))
	case sliced:
		return 1
	}
	return MinRounds
}

const (
	curveEpochs = 3
	traceBlocks = 2
)

// FirstShare returns the share of an epoch's slices that the first round has, so that figures
// appear after a few seconds. The epochs of a trace are short, and all alike.
func FirstShare(p sample.Plan) float64 {
	if p.Trace != nil {
		return 1
	}
	return 0.3
}

func turnTime(p sample.Plan, t Turn, share float64) float64 {
	const second = 1e9
	if t.Epoch {
		seconds := float64(Epoch(p, t.Cells, Pace{Length: share * p.Epoch}, 0).Length)/second +
			epochOverhead
		if p.Trace != nil {
			seconds += traceOverhead
		}
		return seconds
	}
	c := p.Cells[t.Cells[0]]
	l := p.LoadFor(c)
	ends := max(1, c.Shape.Servers) + max(1, c.Shape.Clients*c.Shape.Procs)
	seconds := l.Warmup + l.Window + visitOverhead + eachOverhead*float64(ends-2)
	if sample.Distant(c.On) {
		seconds += farOverhead
	}
	return seconds
}

// farOverhead is the additional duration (s) of a visit by agents on other machines.
const farOverhead = 0.25

// TracingOf returns how the epochs of a round are traced: every state once in each block of rounds,
// in an order shuffled by the seed.
func TracingOf(p sample.Plan, round int) sample.Tracing {
	if p.Trace == nil {
		return sample.Untraced
	}
	all := TracingStates(p)
	block := uint64(round / len(all))
	const stream = 1 << 63 // apart from the orders of rounds and epochs
	order := rand.New(rand.NewPCG(p.Seed, stream|block)).Perm(len(all))
	return all[order[round%len(all)]]
}

// TracingStates returns the states of a traced plan's epochs.
func TracingStates(p sample.Plan) []sample.Tracing {
	all := []sample.Tracing{sample.Untraced, sample.Traced, sample.TracedThrice}
	if p.Trace.Hooks {
		all = append(all, sample.TracedHooks)
	}
	return all
}
