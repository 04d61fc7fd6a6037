// Package stats compares cells over float64 slices: paired ratios by round, bootstrap intervals,
// verdicts.
//
//   - Only values of the same round are compared: machines drift by tens of per cent in minutes.
//   - A ratio's summary is its median with a 95 % percentile bootstrap interval (Efron &
//     Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13). No distribution is assumed.
//   - Cells that take turns in slices of milliseconds are paired by neighbouring slices and
//     repeated by epochs.
//   - A difference counts only if it exceeds the noise floor, which the baseline shows against
//     itself.
package stats

import (
	"math"
	"slices"
)

// Confidence is the level of every interval.
const Confidence = 0.95

// Summary is a median and its interval. If N, the number of values, is 0, the rest means nothing.
type Summary struct {
	Median, Low, High float64
	N                 int
}

// HalfWidth returns the larger distance from the median to an end of the interval.
func (s Summary) HalfWidth() float64 { return max(s.High-s.Median, s.Median-s.Low) }

// Median returns the median of xs, or NaN if xs is empty.
func Median(xs []float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	s, n := slices.Clone(xs), len(xs)
	if slices.ContainsFunc(s, math.IsNaN) {
		slices.Sort(s)
		return medianSorted(s)
	}
	high := Kth(s, n/2)
	if n%2 == 1 {
		return high
	}
	return medianSorted([]float64{slices.Max(s[:n/2]), high})
}

func medianSorted(s []float64) float64 {
	n := len(s)
	if n%2 == 1 {
		return s[n/2]
	}
	return s[n/2-1]/2 + s[n/2]/2 // avoids overflow
}

// Summarize returns the median of xs with its bootstrap interval. Equal values give equal
// intervals: the seed is fixed.
func Summarize(xs []float64) Summary {
	xs = finite(xs)
	out := Summary{Median: Median(xs), N: len(xs)}
	out.Low, out.High = out.Median, out.Median
	if len(xs) < 2 {
		return out
	}
	r := rank(xs)
	medians := make([]float64, resamples)
	resample(len(xs), func(i int, times []uint8) { medians[i] = r.median(times) })
	slices.Sort(medians)
	tail := (1 - Confidence) / 2
	out.Low = medians[int(math.Floor(tail*resamples))]
	out.High = medians[int(math.Ceil((1-tail)*resamples))-1]
	return out
}

// Ratios divides x by base; both map a round to its value. It skips rounds that only one of them
// has or whose ratio is not finite.
func Ratios(x, base map[int]float64) []float64 {
	return paired(x, base, func(x, base float64) float64 { return x / base })
}

func paired(x, base map[int]float64, compare func(x, base float64) float64) []float64 {
	rounds := make([]int, 0, len(x))
	for r := range x {
		if _, ok := base[r]; ok {
			rounds = append(rounds, r)
		}
	}
	slices.Sort(rounds)
	out := make([]float64, 0, len(rounds))
	for _, r := range rounds {
		out = append(out, compare(x[r], base[r]))
	}
	return finite(out)
}

func finite(xs []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(xs), func(x float64) bool {
		return math.IsNaN(x) || math.IsInf(x, 0)
	})
}

// Floor returns the noise floor: the largest deviation from 1 that the control's interval includes,
// or NaN without values.
func Floor(control Summary) float64 {
	if control.N == 0 {
		return math.NaN()
	}
	return max(math.Abs(control.Low-1), math.Abs(control.High-1))
}

// Verdict is the result of a comparison with the baseline.
type Verdict string

const (
	Better  Verdict = "better"
	Worse   Verdict = "worse"
	Same    Verdict = "same"
	Unclear Verdict = "unclear"
)

// MinJudged is the number of rounds that a verdict needs: fewer are too often on one side of 1 by
// chance.
const MinJudged = 5

// maxSame limits the interval that is called no difference: a noisy machine cannot show that two
// cells are the same.
const maxSame = 0.10

// Judge judges a ratio. It differs if the whole interval is beyond the noise floor: above 1+floor
// or below 1/(1+floor). It is the same if the whole interval is within the floor (but at most
// maxSame) or within margin, the run's requested precision. Otherwise, or with fewer than MinJudged
// rounds, it is unclear.
func Judge(ratio Summary, floor, margin float64, higherIsBetter bool) Verdict {
	if ratio.N < MinJudged || math.IsNaN(floor) {
		return Unclear
	}
	if v := differs(ratio.Low, ratio.High, floor, higherIsBetter); v != Unclear {
		return v
	}
	if within := max(min(floor, maxSame), margin); ratio.Low >= 1-within && ratio.High <= 1+within {
		return Same
	}
	return Unclear
}

// JudgeSame judges like Judge, but the ratio is the same if the whole interval is within the given
// same, however noisy the machine was.
func JudgeSame(ratio Summary, floor, same float64, higherIsBetter bool) Verdict {
	if ratio.N < MinJudged || math.IsNaN(floor) {
		return Unclear
	}
	if ratio.Low >= 1-same && ratio.High <= 1+same {
		return Same
	}
	return differs(ratio.Low, ratio.High, floor, higherIsBetter)
}

// differs returns the verdict on an interval that is wholly beyond a floor of noise, else unclear.
func differs(low, high, floor float64, higherIsBetter bool) Verdict {
	switch {
	case low > 1+floor:
		return pick(higherIsBetter)
	case high < 1/(1+floor):
		return pick(!higherIsBetter)
	}
	return Unclear
}

func pick(better bool) Verdict {
	if better {
		return Better
	}
	return Worse
}

// MinValues is the smallest number of values for which an interval is meaningful: with five, the
// widest possible one covers the median in less than 95 % of all cases.
const MinValues = 6

// Clusters returns the lower and the higher values, sorted, if xs fall into two clusters, otherwise
// nil: the largest gap leaves at least a quarter of the values on each side, is wider than both
// clusters' spread, and exceeds 5 % of the median.
func Clusters(xs []float64) (low, high []float64) {
	xs = finite(xs)
	const least = 8
	if len(xs) < least {
		return nil, nil
	}
	slices.Sort(xs)
	quarter := len(xs) / 4
	at, gap := 0, 0.0
	for i := quarter; i <= len(xs)-quarter; i++ {
		if g := xs[i] - xs[i-1]; g > gap {
			at, gap = i, g
		}
	}
	if at == 0 {
		return nil, nil
	}
	spread := max(xs[at-1]-xs[0], xs[len(xs)-1]-xs[at])
	if gap <= spread || gap <= 0.05*math.Abs(medianSorted(xs)) {
		return nil, nil
	}
	return xs[:at], xs[at:]
}
