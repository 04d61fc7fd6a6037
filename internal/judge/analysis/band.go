package analysis

import (
	"cmp"
	"math"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
)

// Band says where a cell is with respect to what is called the same: beyond it on the
// expensive side, or not. Unlike a verdict it does not ask whether the cell differs at all.
type Band string

// The places.
const (
	Beyond  Band = "costs"   // it certainly costs more than what is called the same
	Within  Band = "within"  // it certainly does not
	Unknown Band = "unclear" // neither is certain
)

// BandOf is where cell i is with respect to cell b in a metric, at a level of confidence: both
// words are wrong no more often than one minus that. By rounds the median's interval is the sign
// test's, and takes a number of rounds that grows with the level.
func (j *Run) BandOf(i, b int, metric string, level float64) Band {
	s := j.Series[i]
	n, higher := j.noise(groupOf(s.Cell), metric), higherIsBetter(s.Load, metric)
	if e := j.Estimate(i, b, metric); e.Pairs > 0 {
		return j.sliced(e, n.bias, higher, level)
	}
	return j.rounds(i, b, metric, level, n.floor)
}

// rounds is the place of a ratio by rounds.
func (j *Run) rounds(i, b int, metric string, level, floor float64) Band {
	s := j.Series[i]
	low, high, ok := stats.MedianInterval(stats.Ratios(s.byRound(metric), j.Series[b].byRound(metric)), level)
	if !ok || !(low > 0) {
		return Unknown
	}
	return j.place(math.Log(low), math.Log(high), floor, higherIsBetter(s.Load, metric))
}

// sliced is the place of a ratio by slices.
func (j *Run) sliced(e stats.Estimate, bias float64, higher bool, level float64) Band {
	low, high := e.Interval(level)
	return j.place(low, high, bias, higher)
}

// place is that of a ratio whose logarithm is from low to high. What the control differs by is
// no price: where that is more than what is called the same, it takes its place.
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

// At what levels a run that looks at it while it goes on takes a place for known.
const (
	lookBeyond = 0.999
	lookWithin = 0.99
	lookEpochs = 3
)

// placed reports whether the place of cell i of a sweep is known well enough to end the run.
func (l *Live) placed(i, b int, x compared) bool {
	if x.slices.Pairs == 0 {
		return l.j.rounds(i, b, l.metric(i), lookBeyond, l.noise(i).floor) != Unknown
	}
	if x.slices.Epochs < lookEpochs {
		return false
	}
	higher, bias := higherIsBetter(l.j.Series[i].Load, l.metric(i)), l.noise(i).bias
	return l.j.sliced(x.slices, bias, higher, lookBeyond) != Unknown || l.j.sliced(x.slices, bias, higher, lookWithin) == Within
}
