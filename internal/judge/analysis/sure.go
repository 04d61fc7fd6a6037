package analysis

import (
	"math"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
)

// Bounds are between which values a figure certainly is, as certainly as a verdict of
// better or worse is. Known is false if there is too little to say.
type Bounds struct {
	Median, Low, High float64
	N                 int // pairs of slices, or rounds
	Epochs            int // as of a Ratio
	Known             bool
	Control           bool    // there is one, without which no ratio is known
	Noise             float64 // what that shows, by which Low and High are widened: 0.02 is 2 %
}

// RatioBounds are those of the ratio of cell i's metric to cell b's, widened by what the
// group's control shows; N is 0 if they have nothing in common.
func (j *Run) RatioBounds(i, b int, metric string) Bounds {
	x, n := j.compare(i, b, metric), j.noiseBeside(b, metric)
	out := Bounds{Median: x.Median, Low: x.Low, High: x.High, N: x.N, Epochs: x.slices.Epochs, Known: x.N > 0}
	if x.N == 0 {
		return Bounds{}
	}
	down, up := 1+n.floor, 1-n.floor
	out.Noise = n.floor
	if x.slices.Pairs > 0 {
		out.Low, out.High = x.slices.Sure()
		down, up, out.Noise = 1+n.bias, 1/(1+n.bias), n.bias
	} else {
		out.Known = x.N >= stats.MinJudged
	}
	out.Control = !math.IsNaN(down)
	out.Known = out.Known && out.Control && up > 0 // a floor of 1 allows anything
	if out.Known {
		out.Low, out.High = out.Low/down, out.High/up
	}
	return out
}

// noiseBeside is the noise by which ratios to cell b are judged: what a control of its own
// mode shows, as each mode of a search has one, else that of its group's.
func (j *Run) noiseBeside(b int, metric string) noise {
	of := j.Series[b].Cell
	if first, ok := j.ctl[groupOf(of)]; ok && j.Series[first].Cell.Mode == of.Mode {
		return j.noise(groupOf(of), metric)
	}
	for k, s := range j.Series {
		c := s.Cell
		if !c.Control || c.Mode != of.Mode || groupOf(c) != groupOf(of) || j.Failed(k) {
			continue
		}
		c.Control = false
		twin := slices.IndexFunc(j.Series, func(o *Series) bool { return o.Cell == c })
		if twin < 0 || j.Failed(twin) {
			continue
		}
		if x := j.compare(k, twin, metric); x.N > 0 {
			return noise{stats.Floor(x.Summary), x.slices.Bias()}
		}
	}
	return j.noise(groupOf(of), metric)
}

// ValueBounds are those of cell i's metric itself, over rounds.
func (j *Run) ValueBounds(i int, metric string) Bounds {
	s := stats.SummarizeSurely(Ordered(j.Series[i].Values[metric]))
	if s.N == 0 {
		return Bounds{}
	}
	return Bounds{Median: s.Median, Low: s.Low, High: s.High, N: s.N, Known: s.N >= stats.MinJudged, Control: true}
}
