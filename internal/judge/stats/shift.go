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

// SummarizeSurely does what Summarize does, with a 99 % interval.
func SummarizeSurely(xs []float64) Summary {
	xs = finite(xs)
	out := Summary{Median: Median(xs), N: len(xs)}
	out.Low, out.High = out.Median, out.Median
	if len(xs) > 1 {
		all := medians(xs)
		slices.Sort(all)
		out.Low, out.High = tails(all, sureConfidence)
	}
	return out
}

// Judge returns same if the whole 95 % interval is within same of 1, and better or worse if the
// whole 99 % interval is further from 1 than noise, the combined noise of both runs' controls. The
// verdict is unclear if noise is NaN.
func (s Shift) Judge(noise, same float64, higherIsBetter bool) Verdict {
	if s.N == 0 || s.Epochs == 0 && s.N < MinJudged || math.IsNaN(noise) {
		return Unclear
	}
	switch {
	case s.Low >= 1-same && s.High <= 1+same:
		return Same
	case s.SureLow > 1+noise:
		return pick(higherIsBetter)
	case s.SureHigh < 1/(1+noise):
		return pick(!higherIsBetter)
	}
	return Unclear
}

// BothNoises returns the combined noise of two independent runs, or NaN if either is not known.
func BothNoises(a, b float64) float64 { return math.Sqrt(a*a + b*b) }

const (
	Costs   Verdict = "costs"
	Gains   Verdict = "gains"
	Nothing Verdict = "nothing"
)

// Differences subtracts base from x round by round. It skips rounds that only one of them has or
// whose difference is not finite.
func Differences(x, base map[int]float64) []float64 {
	return paired(x, base, func(x, base float64) float64 { return x - base })
}

// FloorAt returns the noise floor, as a share of level, of a difference d at a level other than the
// control's, which shows floor. The floor is between the same share and the same amount; the
// half-width of d's own interval decides.
func FloorAt(floor, control, level float64, d Summary) float64 {
	amount := floor * control / level
	return min(max(d.HalfWidth()/level, min(floor, amount)), max(floor, amount))
}

// Share converts a difference from something with the given level to a ratio to it.
func Share(d Summary, level float64) Summary {
	return Summary{Median: 1 + d.Median/level, Low: 1 + d.Low/level, High: 1 + d.High/level, N: d.N}
}

// Part converts the verdict on a ratio to the verdict on the part that causes it.
func (v Verdict) Part() Verdict {
	switch v {
	case Worse:
		return Costs
	case Better:
		return Gains
	case Same:
		return Nothing
	}
	return v
}

// Window holds what two clocks counted in a window: All counts everything, Part a part.
type Window struct{ All, Part float64 }

// Factor returns the sum of All over the sum of Part, or NaN or infinity if Part is 0.
func Factor(ws []Window) float64 {
	var all, part float64
	for _, w := range ws {
		all, part = all+w.All, part+w.Part
	}
	return all / part
}

// minWindows is the least number of windows for each factor. An interval from fewer would be
// useless.
const minWindows = 3

// Factors returns the logarithm of the ratio of mine's Factor to that of its; both have windows of
// the same rounds, in the same order. The standard error is by the delta method (Cochran, Sampling
// Techniques, 1977, chapter 6). Other work of the machine is in both windows of a round, and is not
// part of the error. Pairs is 0 if there are too few windows.
func Factors(mine, its []Window) Estimate {
	f, g := Factor(mine), Factor(its)
	n := float64(len(mine))
	e := Estimate{Centre: math.Log(f / g), Freedom: n - 1, Pairs: len(mine), Epochs: len(mine)}
	if len(mine) < minWindows || math.IsNaN(e.Centre) || math.IsInf(e.Centre, 0) {
		return Estimate{}
	}
	var a, b float64
	for k := range mine {
		a, b = a+mine[k].All/n, b+its[k].All/n
	}
	squares := 0.0
	for k := range mine {
		off := (mine[k].All-f*mine[k].Part)/a - (its[k].All-g*its[k].Part)/b
		squares += off * off
	}
	e.Error = math.Sqrt(squares / (n - 1) / n)
	return e
}

const (
	// A quantity varies if its upper quartile is more than this multiple of its lower one, or its
	// upper decile more than the square of it.
	maxQuartiles = 3
	// ownShare is the part of that distance, as logarithms, that the noise may have.
	ownShare = 0.5
	// edge is the share of the values beyond either end of their range.
	edge = 0.05
)

// AllInRange is the largest number of values whose Range has them all.
const AllInRange = 1 / edge

// Varies reports whether values lie so far apart that their median describes few of them: the
// quartiles differ by more than a factor of 3, or the deciles by more than 9, and the noise's by
// less than the square root of that. Values and noise are logarithms. It returns false if either
// has too few values.
func Varies(values, noise []float64) bool {
	if len(values) < MinValues || len(noise) < MinValues {
		return false
	}
	const quartile, decile = 0.25, 0.1
	apart := func(part, least float64) bool {
		x := quantile(values, 1-part) - quantile(values, part)
		return x > least && quantile(noise, 1-part)-quantile(noise, part) < ownShare*x
	}
	least := math.Log(maxQuartiles)
	return apart(quartile, least) || apart(decile, 2*least)
}

// quantile interpolates between the nearest values.
func quantile(xs []float64, q float64) float64 {
	s, at := slices.Sorted(slices.Values(xs)), q*float64(len(xs)-1)
	below, part := math.Modf(at)
	return (1-part)*s[int(below)] + part*s[min(int(below)+1, len(s)-1)]
}

// Range returns the ends of the range of nine tenths of the values, or of all if these are few.
func Range(xs []float64) (low, high float64) {
	s := slices.Sorted(slices.Values(xs))
	beyond := int(edge * float64(len(s)-1))
	return s[beyond], s[len(s)-1-beyond]
}
