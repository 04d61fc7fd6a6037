package truth

import (
	"fmt"
	"math"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
)

// amount is a number with half the width of its 95 % interval. An uneven interval counts as its
// larger half on both sides. Amounts that are subtracted must be independent.
type amount struct{ at, half float64 }

// mean returns the mean of independent amounts.
func mean[T ~struct{ at, half float64 }](all []T) T {
	var out amount
	n := float64(len(all))
	for _, x := range all {
		a := amount(x)
		out.at += a.at / n
		out.half = math.Hypot(out.half, a.half/n)
	}
	return T(out)
}

func (a amount) plus(b amount) amount { return amount{a.at + b.at, math.Hypot(a.half, b.half)} }

func (a amount) minus(b amount) amount { return amount{a.at - b.at, math.Hypot(a.half, b.half)} }

func (a amount) zero() bool { return math.Abs(a.at) <= a.half }

// estimate is a ratio's logarithm.
type estimate amount

func ofRatio(r *analysis.Ratio) (estimate, error) {
	switch {
	case r == nil:
		return estimate{}, fmt.Errorf("there is no ratio")
	case !(r.Low > 0) || math.IsInf(r.High, 0) || !(r.Low <= r.Median && r.Median <= r.High):
		return estimate{}, fmt.Errorf("the ratio %g has no interval: %g to %g", r.Median, r.Low,
			r.High)
	case r.Low == r.High:
		return estimate{}, fmt.Errorf("the ratio %g has an interval of no width", r.Median)
	}
	return estimate{math.Log(r.Median), max(math.Log(r.High/r.Median), math.Log(r.Median/r.Low))},
		nil
}

// The interval comes from the measurements' own spread.
func ofLogs(logs []float64) (estimate, error) {
	s := stats.Summarize(logs)
	if s.N < stats.MinValues {
		return estimate{}, fmt.Errorf("%d measurements are too few for an interval", s.N)
	}
	return estimate{s.Median, s.HalfWidth()}, nil
}

func (e estimate) over(o estimate) estimate { return estimate(amount(e).minus(amount(o))) }

// The n wider intervals hold jointly (Bonferroni).
func (e estimate) wider(n int) estimate {
	const miss = 1 - stats.Confidence
	return estimate{e.at, e.half * quantile(1-miss/2/float64(n)) / quantile(1-miss/2)}
}

func (e estimate) one() bool { return amount(e).zero() }

const percent = 100

// String returns text such as "0.953 ±0.8 %".
func (e estimate) String() string {
	return fmt.Sprintf("%.3f ±%.1f %%", math.Exp(e.at), percent*math.Expm1(e.half))
}

// agreement tests whether a ratio of ratios is 1, as one of n joint tests. limit is the largest
// half width that can still show agreement.
func agreement(ratio estimate, n int, limit float64) (wide estimate, v verdict) {
	wide = ratio.wider(n)
	switch {
	case !wide.one():
		return wide, no
	case math.Expm1(wide.half) > limit:
		return wide, tooWide
	}
	return wide, yes
}

// quantile returns a quantile of the standard normal distribution.
func quantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

// least returns the number of successes, in n trials of probability p, below which the probability
// is at most risk.
func least(n int, p, risk float64) int {
	below := 0.0
	for k := range n {
		below += binomial(n, k, p)
		if below > risk {
			return k
		}
	}
	return n
}

func binomial(n, k int, p float64) float64 {
	lgamma := func(x int) float64 { y, _ := math.Lgamma(float64(x) + 1); return y }
	return math.Exp(lgamma(n) - lgamma(k) - lgamma(n-k) + float64(k)*math.Log(p) +
		float64(n-k)*math.Log1p(-p))
}

func halfWidth(half float64) string { return fmt.Sprintf("±%.1f %%", percent*math.Expm1(half)) }
