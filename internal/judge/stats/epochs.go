package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// What is assumed of a ratio before its own epochs say more.
const (
	// PriorSD is by how much the logarithm of a ratio differs from epoch to epoch, as a
	// standard deviation: each epoch has new processes and new connections, and two of
	// them on one path differ by up to 2 %.
	PriorSD = 0.012
	// priorWeight is how many epochs' worth of evidence that is, in degrees of freedom.
	priorWeight = 6
	// spreadWeight is how many pairs the spread of all epochs' pairs counts for beside those
	// of an epoch, which may have been a noisier one.
	spreadWeight = 20
	// minPairs is how many pairs an estimate takes at least: the spread of fewer is not
	// known.
	minPairs = 8
)

// Epoch is what the pairs of one epoch say of a ratio, as a logarithm, or of a
// difference.
type Epoch struct {
	Centre float64 // the median of the values
	Spread float64 // their robust standard deviation
	N      int     // values
	Worth  float64 // of how many independent pairs
}

// NewEpoch summarizes the values of an epoch, one for each pair of slices. Pairs that share
// slices are not independent; worth is how many independent ones they are worth.
func NewEpoch(values []float64, worth float64) Epoch {
	e := Epoch{Centre: Median(values), N: len(values), Worth: worth}
	apart := make([]float64, len(values))
	for i, x := range values {
		apart[i] = math.Abs(x - e.Centre)
	}
	e.Spread = ofNormal * fewValues(e.N) * Median(apart)
	return e
}

// ofNormal makes the median distance from the median a standard deviation.
const ofNormal = 1.4826

// fewValues corrects that for a bias that only few values have (Croux & Rousseeuw,
// Time-efficient algorithms for two highly robust estimators of scale, 1992).
func fewValues(n int) float64 {
	small := []float64{2: 1.196, 3: 1.495, 4: 1.363, 5: 1.206, 6: 1.200, 7: 1.140, 8: 1.129, 9: 1.107}
	switch {
	case n < 2:
		return 0
	case n < len(small):
		return small[n]
	}
	const bias = 0.8
	return float64(n) / (float64(n) - bias)
}

// Estimate is a mean over epochs and how well it is known: Error is its standard error,
// with so many degrees of freedom.
type Estimate struct {
	Centre, Error, Freedom float64
	Pairs, Epochs          int
}

// Moderate is the mean of the epochs' centres, weighted by how well each is known. That
// they differ has two causes: what new processes and connections do, of which prior is the
// standard deviation that is expected, and the spread of the pairs. What the centres do
// differ by corrects that expectation, the more the more epochs there are: the moderated
// t of Smyth, Linear models and empirical Bayes methods, 2004. So one epoch has an
// interval, and many are judged by themselves. Epochs of another state of the machine are not
// in it; if it is not known which those are, the interval is where an epoch is, not where their
// mean is. Pairs is 0 if they are too few.
func Moderate(epochs []Epoch, prior float64) Estimate {
	epochs, mixed := usual(epochs, prior)
	weights, pairs := weigh(epochs, prior)
	out := Estimate{Pairs: pairs, Epochs: len(epochs)}
	sum := 0.0
	for k, e := range epochs {
		sum += weights[k]
		out.Centre += weights[k] * e.Centre
	}
	if pairs < minPairs || !(sum > 0) || math.IsInf(sum, 0) {
		return Estimate{}
	}
	out.Centre /= sum
	scale := float64(priorWeight) // 1 for each degree of freedom if all is as expected
	for k, e := range epochs {
		scale += weights[k] * (e.Centre - out.Centre) * (e.Centre - out.Centre)
	}
	out.Freedom = priorWeight + float64(out.Epochs-1)
	out.Error = math.Sqrt(scale / out.Freedom / sum)
	if mixed {
		out.Error *= math.Sqrt(float64(out.Epochs))
	}
	return out
}

// weigh returns one over the variance that each epoch's centre is expected to have, and
// how many pairs there are.
func weigh(epochs []Epoch, prior float64) (weights []float64, pairs int) {
	// The median of normal values has this many times the variance of their mean.
	const medianVariance = math.Pi / 2
	spread, freedom := 0.0, 0.0
	for _, e := range epochs {
		pairs += e.N
		free := float64(e.N - 1)
		spread += free * e.Spread * e.Spread
		freedom += free
	}
	spread /= freedom // NaN: no epoch has two pairs
	weights = make([]float64, len(epochs))
	for k, e := range epochs {
		free := float64(e.N - 1)
		own := (spreadWeight*spread + free*e.Spread*e.Spread) / (spreadWeight + free)
		weights[k] = 1 / (prior*prior + medianVariance*own/e.Worth)
	}
	return weights, pairs
}

// Interval is where the mean is, at a level of confidence.
func (e Estimate) Interval(level float64) (low, high float64) {
	half := Student((1+level)/2, e.Freedom) * e.Error
	return e.Centre - half, e.Centre + half
}

// Summary is the estimate of a difference with its 95 % interval.
func (e Estimate) Summary() Summary {
	if e.Pairs == 0 {
		return Summary{}
	}
	low, high := e.Interval(Confidence)
	return Summary{Median: e.Centre, Low: low, High: high, N: e.Pairs}
}

// Ratio is the estimate of a ratio's logarithm as a ratio with its 95 % interval.
func (e Estimate) Ratio() Summary {
	s := e.Summary()
	if s.N > 0 {
		s.Median, s.Low, s.High = exp(s.Median), exp(s.Low), exp(s.High)
	}
	return s
}

// exp is a ratio of its logarithm, finite whatever a file says.
func exp(x float64) float64 {
	const most = 200
	return math.Exp(min(max(x, -most), most))
}

// Student returns the quantile p > 0.5 of Student's distribution with the given degrees of freedom.
func Student(p, freedom float64) float64 {
	x := mathext.InvRegIncBeta(freedom/2, 0.5, 2*(1-p))
	return math.Sqrt(freedom * (1 - x) / x)
}
