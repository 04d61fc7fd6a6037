package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Prior is the expected difference between a row's epochs, before these are considered.
type Prior struct {
	// Variance is the variance of the epochs' ratios, as logarithms, that the spread of their
	// slices does not explain.
	Variance float64
	// Freedom is the weight of Variance, in degrees of freedom.
	Freedom float64
}

// Assumed is the prior without earlier runs. Epochs of most machines differ by less.
var Assumed = Prior{priorSD * priorSD, priorWeight}

const (
	// likelyAlike is the probability below which a variance contradicts a prior, which then counts
	// for less (Phipson et al., Robust hyperparameter estimation, 2016).
	likelyAlike = 0.05
	// differWeight is the prior's weight, in rows, as evidence of how much the variances of rows
	// differ.
	differWeight = 1
)

// Learn combines the known prior with the epochs of other rows. The variance is that of Paule and
// Mandel (Consensus values and weighting factors, 1982), the degrees of freedom follow from how
// alike the rows are (Smyth 2004, section 6.2). Learn ignores rows whose epochs are of two states,
// and rows with more variance than the others explain.
func Learn(known Prior, rows [][]Epoch) Prior {
	var all []scatter
	for _, r := range rows {
		if s := scatterOf(r); s.freedom > 0 {
			all = append(all, s)
		}
	}
	for {
		p := fit(known, all)
		worst, least := -1, outlier
		for k, s := range all {
			if s.surprise(p) > suspect {
				continue // an outlier in p is never that likely
			}
			if p := s.surprise(fit(known, without(all, k))); p < least {
				worst, least = k, p
			}
		}
		if worst < 0 {
			return p
		}
		all = without(all, worst)
	}
}

const (
	// probability below which a row's variance is an outlier
	outlier = 0.01
	// probability that no outlier reaches, even with a prior learned from it
	suspect = 0.5
)

type scatter struct {
	centres, within []float64 // within is the variance that the slices explain
	freedom         float64
}

// scatterOf returns the scatter of a row. It has no degrees of freedom if the row has two states,
// fewer than two epochs or too few pairs.
func scatterOf(epochs []Epoch) scatter {
	which, _ := Aside(epochs)
	var some []Epoch
	for k, e := range epochs {
		if which[k] {
			return scatter{}
		}
		if e.N > 0 {
			some = append(some, e)
		}
	}
	within, pairs := within(some)
	if pairs < minPairs {
		return scatter{}
	}
	s := scatter{within: within, freedom: float64(len(some) - 1)}
	for k, e := range some {
		s.centres = append(s.centres, e.Centre)
		if !(within[k] > 0) || math.IsInf(within[k], 0) {
			return scatter{}
		}
	}
	return s
}

// squares returns the weighted sum of squares. It has a chi-squared distribution with the scatter's
// degrees of freedom if the variance is right.
func (s scatter) squares(variance float64) float64 {
	sum, mean := 0.0, 0.0
	for k, x := range s.centres {
		w := 1 / (variance + s.within[k])
		sum += w
		mean += w * (x - mean) / sum
	}
	out := 0.0
	for k, x := range s.centres {
		out += (x - mean) * (x - mean) / (variance + s.within[k])
	}
	return out
}

// surprise returns the probability that epochs under the prior differ at least as much.
func (s scatter) surprise(p Prior) float64 {
	return beyond(s.squares(p.Variance)/s.freedom, s.freedom, p.Freedom)
}

func beyond(f, of, over float64) float64 {
	x := over / (over + of*f)
	switch {
	case !(of > 0) || !(over > 0) || x >= 1:
		return 1
	case !(x > 0): // NaN, too
		return 0
	}
	return mathext.RegIncBeta(over/2, of/2, x)
}

func without(all []scatter, k int) []scatter {
	out := append([]scatter{}, all[:k]...)
	return append(out, all[k+1:]...)
}

func fit(known Prior, rows []scatter) Prior {
	if len(rows) == 0 {
		return known
	}
	typical := make([]float64, len(rows))
	freedom := 0.0
	for k, r := range rows {
		typical[k] = Median(r.within)
		freedom += r.freedom
	}
	usual := Median(typical)
	pooled := func(variance float64) (sum float64) {
		for _, r := range rows {
			sum += r.squares(variance)
		}
		return sum
	}
	// The known prior counts for less if the rows contradict it in either direction.
	p := beyond(pooled(known.Variance)/freedom, freedom, known.Freedom)
	weight := known.Freedom * trust(min(p, 1-p))
	excess := func(variance float64) float64 {
		return weight*(known.Variance+usual)/(variance+usual) + pooled(variance) - weight - freedom
	}
	out := Prior{root(excess), weight + freedom}
	out.Freedom = min(out.Freedom, alike(known, rows, out.Variance))
	return out
}

func trust(p float64) float64 { return min(1, p/likelyAlike) }

// root returns the zero of a falling function, or 0 if it is never positive.
func root(f func(float64) float64) float64 {
	if f(0) <= 0 {
		return 0
	}
	low, high := 0.0, 1e-6
	for f(high) > 0 && high < 1e6 {
		low, high = high, 4*high
	}
	for range 12 { // to within a thousandth
		if mid := (low + high) / 2; f(mid) > 0 {
			low = mid
		} else {
			high = mid
		}
	}
	return (low + high) / 2
}

func alike(known Prior, rows []scatter, variance float64) float64 {
	var logs, noises, weights []float64
	assumed := trigamma(known.Freedom / 2)
	sum, mean := 0.0, 0.0
	for _, r := range rows {
		s2 := r.squares(variance) / r.freedom
		if !(s2 > 0) {
			continue
		}
		noise := trigamma(r.freedom / 2)
		w := assumed / (assumed + noise)
		logs = append(logs, math.Log(s2)-mathext.Digamma(r.freedom/2)+math.Log(r.freedom/2))
		noises, weights = append(noises, noise), append(weights, w*w)
		sum += w * w
		mean += w * w * (logs[len(logs)-1] - mean) / sum
	}
	excess, n := differWeight*assumed, float64(len(logs))
	if n > 1 {
		for k, x := range logs {
			excess += weights[k] * ((x-mean)*(x-mean)*n/(n-1) - noises[k])
		}
		excess /= differWeight + sum
	}
	const most = 1e3
	return 2 * inverseTrigamma(max(excess, trigamma(most/2)))
}

// series is the argument from which on the asymptotic series of the polygamma functions have 12
// digits.
const series = 15

// trigamma returns NaN unless x > 0 (Abramowitz & Stegun 6.4.6, 6.4.12).
func trigamma(x float64) float64 {
	if !(x > 0) {
		return math.NaN()
	}
	sum := 0.0
	for ; x < series; x++ {
		sum += 1 / (x * x)
	}
	y := 1 / (x * x)
	return sum + 1/x + y/2 + y/x*(1./6-y*(1./30-y*(1./42-y/30)))
}

// tetragamma returns NaN unless x > 0 (6.4.6, 6.4.13).
func tetragamma(x float64) float64 {
	if !(x > 0) {
		return math.NaN()
	}
	sum := 0.0
	for ; x < series; x++ {
		sum -= 2 / (x * x * x)
	}
	y := 1 / (x * x)
	return sum - y - y/x - y*y*(1./2-y*(1./6-y*(1./6-y*3/10)))
}

// inverseTrigamma uses Newton's method for the reciprocal, which is nearly straight (Smyth 2004,
// appendix).
func inverseTrigamma(y float64) float64 {
	x := 0.5 + 1/y
	for range 8 {
		t := trigamma(x)
		x += t * (1 - t/y) / tetragamma(x)
	}
	return x
}
