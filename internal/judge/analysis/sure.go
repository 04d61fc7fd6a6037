package analysis

import (
	"math"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
)

// Bounds are the limits of a figure at the certainty of a verdict of better or worse. Known is
// false if there is too little data.
type Bounds struct {
	Median, Low, High float64
	N                 int // slice pairs, or rounds
	Epochs            int
	Least             int // number of rounds that bounds need
	Known             bool
	Control           bool // the group has a control, without which no ratio is known
}

// RatioBounds returns the bounds of the ratio of cell i's metric to cell b's, or its range if it
// varies, widened by the noise of the group's control; N is 0 if they have no pairs.
func (j *Run) RatioBounds(i, b int, metric string) Bounds {
	x, n := j.compare(i, b, metric), j.noiseBeside(b, metric)
	out := Bounds{Median: x.Median, Low: x.Low, High: x.High, N: x.N, Epochs: x.slices.Epochs,
		Least: stats.MinJudged, Known: x.N > 0}
	if x.N == 0 {
		return Bounds{}
	}
	noise := n.floor
	if x.slices.Pairs > 0 {
		if noise = n.bias; !x.varies {
			out.Low, out.High = x.slices.Sure()
		}
	} else {
		out.Known = x.N >= out.Least
	}
	out.Control = !math.IsNaN(noise)
	if out.Known = out.Known && out.Control; out.Known {
		out.Low, out.High = out.Low/(1+noise), out.High*(1+noise)
	}
	return out
}

// noiseBeside returns the noise of a control of cell b's own mode, which each mode of a search has,
// or else the noise of its group's control.
func (j *Run) noiseBeside(b int, metric string) noise {
	of := j.Series[b].Cell
	if first, ok := j.ctl[groupOf(of)]; ok && j.Series[first].Cell.Name() == of.Name() {
		return j.noise(groupOf(of), metric)
	}
	for k, s := range j.Series {
		c := s.Cell
		if !c.Control || c.Name() != of.Name() || groupOf(c) != groupOf(of) || j.Failed(k) {
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

// ValueBounds returns the bounds of cell i's metric itself, over rounds, or its range if it varies.
func (j *Run) ValueBounds(i int, metric string) Bounds {
	s, ok := stats.SummarizeSurely(Ordered(j.Series[i].Values[metric]),
		j.Series[i].Factor(metric))
	if s.N == 0 {
		return Bounds{}
	}
	if v := j.Variation(i); v != nil && v.Metric == metric {
		s.Low, s.High, ok = v.Low, v.High, s.N >= stats.MinJudged
	}
	return Bounds{Median: s.Median, Low: s.Low, High: s.High, N: s.N, Least: stats.MinSure,
		Known: ok, Control: true}
}
