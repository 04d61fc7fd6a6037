package analysis

import (
	"cmp"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Match holds the indexes of a cell in two runs.
type Match struct{ Old, New int }

// Runs compares cells of two runs.
type Runs struct{ Old, New *Run }

// Shifted holds a cell's ratios to the baselines of two runs, and the shift between them.
type Shifted struct {
	Old, New Ratio
	stats.Shift
	Verdict stats.Verdict
}

// Ratio compares a cell's ratio to the baseline of the old run with that of the new run. ok is
// false if a run has no such ratio.
func (r Runs) Ratio(m Match, metric string) (s Shifted, ok bool) {
	x, baseOld, okOld := r.Old.toBaseline(m.Old, metric)
	y, baseNew, okNew := r.New.toBaseline(m.New, metric)
	if !okOld || !okNew {
		return s, false
	}
	if x.slices.Pairs > 0 && y.slices.Pairs > 0 {
		s.Shift = stats.Shifted(x.slices, y.slices)
	} else {
		s.Shift = stats.ShiftedValues(r.Old.ratios(m.Old, baseOld, metric),
			r.New.ratios(m.New, baseNew, metric))
	}
	if s.N == 0 {
		return s, false
	}
	if (x.slices.Pairs > 0) != (y.slices.Pairs > 0) { // slices against rounds
		by := y.Median / x.Median / s.Median
		s.Median, s.Low, s.High = by*s.Median, by*s.Low, by*s.High
		s.SureLow, s.SureHigh = by*s.SureLow, by*s.SureHigh
	}
	s.Old, s.New = ratioOf(x, Label(r.Old.Series[baseOld].Cell)),
		ratioOf(y, Label(r.New.Series[baseNew].Cell))
	higher := higherIsBetter(r.New.Series[m.New].Load, metric)
	s.Old.Verdict = r.Old.verdict(x, r.Old.noise(groupOf(r.Old.Series[m.Old].Cell), metric), higher)
	s.New.Verdict = r.New.verdict(y, r.New.noise(groupOf(r.New.Series[m.New].Cell), metric), higher)
	s.Verdict = s.Judge(r.noise(r.New.Series[m.New].Cell, metric, s.Epochs > 0), r.Same(), higher)
	if x.varies || y.varies {
		s.Verdict = stats.Unclear
	}
	return s, true
}

// Value returns the shift of a cell's metric itself between the runs, by rounds. It has no verdict,
// because the machine may have been in another state. N is 0 if a run lacks the metric.
func (r Runs) Value(m Match, metric string) stats.Shift {
	old, now := r.Old.Series[m.Old], r.New.Series[m.New]
	return stats.ShiftedValues(Ordered(old.Values[metric]), Ordered(now.Values[metric])).By(
		old.Factor(metric)).By(now.Factor(metric))
}

// Same returns the larger of the plans' relative differences that are called none.
func (r Runs) Same() float64 {
	of := func(p sample.Plan) float64 { return cmp.Or(p.Same, p.Precision) }
	return max(of(r.Old.File.Header.Plan), of(r.New.File.Header.Plan))
}

func (r Runs) noise(c sample.Cell, metric string, sliced bool) float64 {
	old, now := r.Old.noise(groupOf(c), metric), r.New.noise(groupOf(c), metric)
	if sliced {
		return stats.BothNoises(old.bias, now.bias)
	}
	return stats.BothNoises(old.floor, now.floor)
}

// toBaseline compares cell i with its baseline b. ok is false if cell i is the baseline itself, or
// if they have no pairs.
func (j *Run) toBaseline(i int, metric string) (x compared, b int, ok bool) {
	b, ok = j.BaselineOf(i)
	if !ok || b == i {
		return x, b, false
	}
	x = j.compare(i, b, metric)
	return x, b, x.N > 0
}

func (j *Run) ratios(i, b int, metric string) []float64 {
	return stats.Ratios(j.Series[i].byRound(metric), j.Series[b].byRound(metric))
}
