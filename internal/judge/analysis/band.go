package analysis

import (
	"cmp"
	"math"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
)

// Band is the relation of a cell's cost to the difference that is called none. Unlike a verdict, it
// leaves open whether the cell differs at all.
type Band string

const (
	Beyond  Band = "costs"  // certainly more than the difference that is called none
	Within  Band = "within" // certainly not more
	Unknown Band = "unclear"
)

// BandOf returns the band of cell i relative to cell b in a metric. Beyond and Within are each
// wrong with a probability of at most 1 - level. By rounds, a higher level needs more rounds.
func (j *Run) BandOf(i, b int, metric string, level float64) Band {
	s := j.Series[i]
	n, higher := j.noise(groupOf(s.Cell), metric), higherIsBetter(s.Load, metric)
	if e := j.Estimate(i, b, metric); e.Pairs > 0 {
		return j.sliced(e, n.bias, higher, level)
	}
	return j.rounds(i, b, metric, level, n.floor)
}

func (j *Run) rounds(i, b int, metric string, level, floor float64) Band {
	s := j.Series[i]
	low, high, ok := stats.MedianInterval(stats.Ratios(
		s.byRound(metric), j.Series[b].byRound(metric)), level)
	if !ok || !(low > 0) {
		return Unknown
	}
	return j.place(math.Log(low), math.Log(high), floor, higherIsBetter(s.Load, metric))
}

func (j *Run) sliced(e stats.Estimate, bias float64, higher bool, level float64) Band {
	low, high := e.Interval(level)
	return j.place(low, high, bias, higher)
}

func (j *Run) place(low, high, noise float64, higher bool) Band {
	p := j.File.Header.Plan
	same := cmp.Or(p.Same, p.Precision)
	edge := math.Log1p(same)
	if higher {
		low, high, edge = -high, -low, -math.Log1p(-same)
	}
	switch {
	case math.IsNaN(noise):
		return Unknown
	case low > max(edge, math.Log1p(noise)):
		return Beyond
	case high <= edge:
		return Within
	}
	return Unknown
}

// A run that looks at its results before its end takes a band as known at these levels, by slices
// only from lookEpochs epochs on.
const (
	lookBeyond = 0.999
	lookWithin = 0.99
	lookEpochs = 3
)

func (l *Live) placed(i, b int, x compared) bool {
	if x.slices.Pairs == 0 {
		return l.j.rounds(i, b, l.metric(i), lookBeyond, l.noise(i).floor) != Unknown
	}
	if x.slices.Epochs < lookEpochs {
		return false
	}
	higher, bias := higherIsBetter(l.j.Series[i].Load, l.metric(i)), l.noise(i).bias
	return l.j.sliced(x.slices, bias, higher, lookBeyond) != Unknown ||
		l.j.sliced(x.slices, bias, higher, lookWithin) == Within
}
