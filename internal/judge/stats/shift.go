package stats

import (
	"math"
	"slices"
)

// Shift is the ratio of a quantity in a new run to the same quantity in an old one. Its intervals
// include the uncertainty of both runs, which are independent.
type Shift struct {
	Summary                   // 95 %
	SureLow, SureHigh float64 // 99 %
	Epochs            int     // of the run with fewer; 0: by rounds
}

// Shifted returns the shift between two estimates of a ratio's logarithm. N is 0 if either has no
// pairs.
func Shifted(old, now Estimate) Shift {
	if old.Pairs == 0 || now.Pairs == 0 {
		return Shift{}
	}
	e := now.Plus(old.Times(-1))
	low, high := e.Sure()
	return Shift{Summary: e.Ratio(), SureLow: low, SureHigh: high, Epochs: e.Epochs}
}

// ShiftedValues returns the shift of the median between two runs, one value for each round, by
// resampling both independently (Efron & Tibshirani, chapter 8). It skips values that are not
// positive. N is the smaller number of values.
func ShiftedValues(old, now []float64) Shift {
	old, now = positive(old), positive(now)
	out := Shift{Summary: Summary{N: min(len(old), len(now))}}
	if out.N == 0 || !ratio(slices.Min(now), slices.Max(old)) ||
		!ratio(slices.Max(now), slices.Min(old)) {
		return Shift{}
	}
	out.Median = Median(now) / Median(old)
	a, b := medians(old), medians(now)
	ratios := make([]float64, resamples)
	for i := range ratios {
		// Samples of equal size have the same resamples in the same order, so different ones are paired.
		ratios[i] = b[i] / a[(i+resamples/2)%resamples]
	}
	slices.Sort(ratios)
	out.Low, out.High = tails(ratios, Confidence)
	out.SureLow, out.SureHigh = tails(ratios, sureConfidence)
	return out
}

// By does what Summary.By does, at both levels.
func (s Shift) By(e Estimate) Shift {
	sure := Summary{Median: s.Median, Low: s.SureLow, High: s.SureHigh}.By(e, sureConfidence)
	s.Summary, s.SureLow, s.SureHigh = s.Summary.By(e, Confidence), sure.Low, sure.High
	return s
}

// ratio reports whether x/by is positive and finite. The quotient of two numbers from a file may
// overflow.
func ratio(x, by float64) bool { return x/by > 0 && !math.IsInf(x/by, 0) }

func positive(xs []float64) []float64 {
	return slices.DeleteFunc(finite(xs), func(x float64) bool { return !(x > 0) })
}

func medians(xs []float64) []float64 {
	r, out := rank(xs), make([]float64, resamples)
	resample(len(xs), func(i int, times []uint8) { out[i] = r.median(times) })
	return out
}

func tails(sorted []float64, level float64) (low, high float64) {
	tail := (1 - level) / 2
	n := float64(len(sorted))
	return sorted[int(math.Floor(tail*n))], sorted[int(math.Ceil((1-tail)*n))-1]
}

// Sure converts the estimate of a ratio's logarithm to the ratio's 99 % interval.
func (e Estimate) Sure() (low, high float64) {
	low, high = e.Interval(sureConfidence)
	return exp(low), exp(high)
}

// SummarizeSurely returns the median of xs, times a factor whose logarithm is by, with its 99 %
// interval. N is the number of values; ok is false if there are too few for an interval.
func SummarizeSurely(xs []float64, by Estimate) (s Summary, ok bool) {
	xs = finite(xs)
	s = Summary{Median: Median(xs), N: len(xs)}
	s.Low, s.High, ok = MedianInterval(xs, sureConfidence)
	return s.By(by, sureConfidence), ok
}

// Judge returns same if the whole 95 % interval is within same of 1, and better or worse if the
// whole 99 % interval is further from 1 than noise, the combined noise of both runs' controls. The
// verdict is unclear if noise is NaN.
func (s Shift) Judge(noise, same float64, higherIsBetter bool) Verdict {
	if s.N == 0 || s.Epochs == 0 && s.N < MinJudged || math.IsNaN(noise) {
		return Unclear
	}
	if s.Low >= 1-same && s.High <= 1+same {
		return Same
	}
	return differs(s.SureLow, s.SureHigh, noise, higherIsBetter)
}

// BothNoises returns the combined noise of two independent runs, or NaN if either is not known.
func BothNoises(a, b float64) float64 { return math.Sqrt(a*a + b*b) }
