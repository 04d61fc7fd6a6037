package trace

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// The standard deviations, in s, that are assumed for the difference between two cells from epoch
// to epoch, each with new processes. They were measured on a busy virtual machine.
const (
	sdRow   = 0.06e-6 // a part of the path: 0.02 to 0.1 µs
	sdPath  = 0.1e-6  // the whole path
	sdWakes = 4e-6
	sdRelay = 2e-6
)

var spreads = map[kind]float64{inPath: sdRow, inWakes: sdWakes, inRelay: sdRelay, inEnds: sdWakes}

// nothing is the largest time in the path, in s, that is reported as none.
const nothing = 0.15e-6

// part is a part of any cell's trips.
type part struct {
	name string
	of   func(seen) *sum // returns nil if the epoch lacks the part
	kind kind
	sd   float64
}

// difference is what a part adds, as an estimate and by epoch.
type difference struct {
	stats.Estimate
	rounds []float64 // single epochs, in s, without what tracing costs
}

// added returns what a part takes longer in cell i's trips than in cell b's.
//
// Differences are taken within an epoch, between neighbouring slices, and each epoch gives one
// value. What tracing costs at events that both cells have cancels. The cost of cell i's further
// events is learned from epochs with copies of each program: from how much pairs of steps grew and
// from how much this part grew, each as far as it is known.
func (s *study) added(i, b int, p part) difference {
	key := paired{i: i, b: b, part: p.name}
	d, ok := s.differences[key]
	if !ok {
		d = s.difference(i, b, p)
		s.differences[key] = d
	}
	return d
}

func (s *study) difference(i, b int, p part) difference {
	once := s.epochs(i, b, p, sample.Traced)
	if p.kind == inRelay && !s.costs.relays { // tracing slows relays for other reasons, too
		return difference{s.moderate(i, b, p, once, nil), centres(p, once, 0)}
	}
	thrice := s.epochs(i, b, p, sample.TracedThrice)
	first, third := s.moderate(i, b, p, once, nil), s.moderate(i, b, p, nil, thrice)
	cost := s.further(i, b, p)
	if first.Pairs > 0 && third.Pairs > 0 {
		cost = together(cost, third.Plus(first.Times(-1)).Times(1.0/more))
	}
	one := s.costs.first.each
	three := one + more
	e := s.moderate(i, b, p, shifted(once, -one*cost.Centre/unit(p)),
		shifted(thrice, -three*cost.Centre/unit(p)))
	times := one
	if n := float64(len(once) + len(thrice)); n > 0 {
		times += more * float64(len(thrice)) / n
	}
	e.Error = math.Hypot(math.Hypot(e.Error, times*cost.Error), cost.Centre*s.costs.first.err)
	return difference{e, append(centres(p, once, one*cost.Centre),
		centres(p, thrice, three*cost.Centre)...)}
}

// more is the number of additional copies of each program in epochs with copies.
const more = sample.TraceCopies - 1

// unit returns the unit of a part's epochs, in s, in which stats.Assumed is their prior.
func unit(p part) float64 { return p.sd / math.Sqrt(stats.Assumed.Variance) }

type paired struct {
	i, b  int
	part  string
	state sample.Tracing
}

func (s *study) epochs(i, b int, p part, state sample.Tracing) (out []stats.Epoch) {
	key := paired{i, b, p.name, state}
	if out, ok := s.known[key]; ok {
		return out
	}
	defer func() { s.known[key] = out }()
	for _, mine := range s.cells[i].by[state] {
		its, ok := s.cells[b].round(state, mine.round)
		if !ok {
			continue
		}
		if e := analysis.PairUp(inUnits(mine, p), inUnits(its, p)); e.N > 0 {
			out = append(out, e)
		}
	}
	return out
}

func inUnits(x seen, p part) []analysis.SliceValue {
	slots := x.slotsOf(p.of(x))
	out := make([]analysis.SliceValue, len(slots))
	for k, s := range slots {
		out[k] = analysis.SliceValue{At: s.At, X: s.X / unit(p)}
	}
	return out
}

// unsure is the most, in s, by which what tracing costs a part is assumed to differ from the cost of
// its events. A relay and the ends of a route, which have the same events on both, may be woken
// later, and on another CPU. On the network between them packets are captured at further devices,
// as at bridges and their ports. On a route with a relay each copy delayed both ends by 6 to 8 µs: an
// assumption as large as that would hide a part of what growth shows.
const (
	unsure        = 5e-6
	unsureRelayed = 20e-6
)

// further returns what each further copy of the programs costs at the events, in s, that cell i's
// part has in addition to cell b's.
func (s *study) further(i, b int, p part) stats.Estimate {
	out := stats.Estimate{Pairs: 1}
	switch {
	case p.name == rowPart(rowTransfer).name: // it has any number of packets
		out.Error = s.longest(i, p) + s.longest(b, p)
	case p.kind == inRelay, p.kind == inEnds, p.name == rowPart(rowNetwork).name,
		strings.HasPrefix(p.name, partOfRow(rowNetwork)):
		if out.Error = unsure; s.cells[i].relayed() || s.cells[b].relayed() {
			out.Error = unsureRelayed
		}
	}
	mine, its := s.events(i, p, sample.Traced), s.events(b, p, sample.Traced)
	for at, n := range its {
		mine[at] -= n
	}
	for _, at := range slices.SortedFunc(maps.Keys(mine), byName) {
		c := s.costs.between(at, p.kind)
		out.Centre += mine[at] * c.each
		out.Error += math.Abs(mine[at]) * c.err
	}
	return out
}

// longest returns the longest mid-mean, in s, of cell i's part.
func (s *study) longest(i int, p part) (most float64) {
	for _, x := range s.cells[i].judged() {
		if r := p.of(x); r != nil {
			most = max(most, r.midMean)
		}
	}
	return most
}

// events returns the mean number of events per trip in cell i's part.
func (s *study) events(i int, p part, state sample.Tracing) map[steps]float64 {
	out := map[steps]float64{}
	all := s.cells[i].by[state]
	for _, x := range all {
		if r := p.of(x); r != nil {
			for at, n := range r.events {
				out[at] += n / float64(len(all))
			}
		}
	}
	return out
}

// moderate returns the mean of epochs, in s.
func (s *study) moderate(i, b int, p part, once, thrice []stats.Epoch) stats.Estimate {
	return stats.Moderate(slices.Concat(once, thrice), s.prior(i, b, p)).Times(unit(p))
}

// prior learns how much epochs differ from the other pairs of cells. In the path it learns only
// from the control's pair, because the others also differ by the cost of further events. Hooks
// learn from all hooks of the control.
func (s *study) prior(i, b int, p part) stats.Prior {
	key := paired{i: i, b: b, part: p.name}
	if out, ok := s.priors[key]; ok {
		return out
	}
	var rows [][]stats.Epoch
	for _, o := range s.pairs {
		control := s.Series[o[0]].Cell.Control
		switch {
		case o == [2]int{i, b}, !control && (p.kind == inPath || p.kind == inHook):
		case p.kind == inHook:
			rows = append(rows, s.hookEpochs(o[0], o[1])...)
		default:
			rows = append(rows, s.epochs(o[0], o[1], p, sample.Traced),
				s.epochs(o[0], o[1], p, sample.TracedThrice))
		}
	}
	s.priors[key] = stats.Learn(stats.Assumed, rows)
	return s.priors[key]
}

func (s *study) hookEpochs(i, b int) (out [][]stats.Epoch) {
	for _, row := range s.rowsOf(i, b) {
		for _, hook := range s.hooksOf(i, b, row) {
			out = append(out, s.epochs(i, b, hookPart(row, hook), sample.TracedHooks))
		}
	}
	return out
}

func shifted(epochs []stats.Epoch, by float64) []stats.Epoch {
	out := make([]stats.Epoch, len(epochs))
	for k, e := range epochs {
		e.Centre += by
		out[k] = e
	}
	return out
}

func centres(p part, epochs []stats.Epoch, cost float64) (out []float64) {
	for _, e := range epochs {
		out = append(out, e.Centre*unit(p)-cost)
	}
	return out
}

// price judges an estimate in s. bias is what the control shows, none the time that is reported as
// none.
func price(e stats.Estimate, bias, none float64) analysis.Price {
	sum := e.Summary()
	out := analysis.Price{Unit: "s", Verdict: stats.Unclear}
	for _, x := range []float64{sum.Median, sum.Low, sum.High} {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return out
		}
	}
	out.Median, out.Low, out.High = sum.Median, sum.Low, sum.High
	out.N, out.Epochs = sum.N, e.Epochs
	if sum.N == 0 {
		return out
	}
	const sure = 0.99
	switch low, high := e.Interval(sure); {
	case low > bias:
		out.Verdict = stats.Costs
	case high < -bias:
		out.Verdict = stats.Gains
	case sum.Low >= -none && sum.High <= none:
		out.Verdict = stats.Nothing
	}
	return out
}

// Change returns by how much more, in s, a part adds in run now than in run old. A part that a run
// lacks adds nothing there.
func Change(old, now analysis.Price) analysis.Price {
	out := analysis.Price{Unit: "s", Median: now.Median - old.Median,
		N: max(old.N, now.N), Epochs: max(old.Epochs, now.Epochs), Verdict: stats.Unclear}
	if old.N > 0 && now.N > 0 {
		out.N, out.Epochs = min(old.N, now.N), min(old.Epochs, now.Epochs)
	}
	half := math.Hypot((old.High-old.Low)/2, (now.High-now.Low)/2)
	out.Low, out.High = out.Median-half, out.Median+half
	const surely = 1.35 // 99 % instead of 95 %
	switch {
	case out.N == 0:
	case math.Abs(out.Median) > surely*half:
		out.Verdict = stats.Costs
		if out.Median < 0 {
			out.Verdict = stats.Gains
		}
	case -out.Low <= nothing && out.High <= nothing:
		out.Verdict = stats.Nothing
	}
	return out
}
