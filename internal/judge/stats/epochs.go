package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

const (
	// priorSD is the standard deviation of a ratio's logarithm from epoch to epoch, and priorWeight
	// its degrees of freedom.
	priorSD     = 0.006
	priorWeight = 6
	// leastWeight is the degrees of freedom of a prior that a row's epochs contradict.
	leastWeight = priorWeight / 2
	// spreadWeight is the weight, in pairs, of the spread of all epochs. One epoch's own spread may
	// be unusual.
	spreadWeight = 20
	minPairs     = 8
	// leastDense bounds how much more precise than that of normal values a median may be, as a
	// variance.
	leastDense = 0.4
)

// Epoch summarizes the pairs of one epoch for a ratio, as logarithms, or for a difference.
type Epoch struct {
	Centre float64
	Spread float64 // robust standard deviation
	// Near is the standard deviation of normal values that are as close together near the centre;
	// 0: not known.
	Near  float64
	N     int
	Worth float64 // number of independent pairs
}

// NewEpoch summarizes the values of an epoch, one for each pair of slices. worth is the equivalent
// number of independent pairs: pairs may share slices.
func NewEpoch(values []float64, worth float64) Epoch {
	e := Epoch{Centre: Median(values), N: len(values), Worth: worth}
	apart := make([]float64, len(values))
	for i, x := range values {
		apart[i] = math.Abs(x - e.Centre)
	}
	e.Spread = ofNormal * fewValues(e.N) * Median(apart)
	if e.N >= leastNear {
		e.Near = ofNear * float64(e.N) / float64(e.N-1) * quantile(apart, nearShare)
	}
	return e
}

// ofNormal and ofNear are the factors from the distance of the nearest half and of the nearest
// nearShare of normal values to a standard deviation.
const (
	ofNormal  = 1.4826
	ofNear    = 3.1383
	nearShare = 0.25
	leastNear = 5 // values, of which the nearest share is not the median itself
)

// fewValues returns the correction of ofNormal for n values by Croux & Rousseeuw, Time-efficient
// algorithms for two highly robust estimators of scale, 1992.
func fewValues(n int) float64 {
	small := []float64{2: 1.196, 3: 1.495, 4: 1.363, 5: 1.206, 6: 1.200, 7: 1.140, 8: 1.129,
		9: 1.107}
	switch {
	case n < 2:
		return 0
	case n < len(small):
		return small[n]
	}
	const bias = 0.8
	return float64(n) / (float64(n) - bias)
}

// Estimate is a mean over epochs, its standard error and the error's degrees of freedom.
type Estimate struct {
	Centre, Error, Freedom float64
	Pairs, Epochs          int
}

// Moderate returns the weighted mean of the epochs' centres, with the moderated t of Smyth (Linear
// models and empirical Bayes methods, 2004), so even a single epoch has an interval. A prior that
// the epochs contradict counts for less. Epochs of another state of the machine are left out; if
// the usual state is not known, the interval covers single epochs, not their mean. Pairs is 0 if
// there are too few.
func Moderate(epochs []Epoch, prior Prior) Estimate {
	epochs, mixed := usual(epochs)
	weights, pairs := weigh(epochs, prior.Variance)
	out := Estimate{Pairs: pairs, Epochs: len(epochs)}
	sum := 0.0
	for k, e := range epochs {
		sum += weights[k]
		out.Centre += weights[k] * e.Centre
	}
	if pairs < minPairs || !(prior.Freedom > 0) || !(sum > 0) || math.IsInf(sum, 0) {
		return Estimate{}
	}
	out.Centre /= sum
	squares, freedom := 0.0, float64(out.Epochs-1)
	for k, e := range epochs {
		squares += weights[k] * (e.Centre - out.Centre) * (e.Centre - out.Centre)
	}
	expected := prior.Freedom
	switch {
	case mixed:
		expected = min(expected, priorWeight)
	case freedom > 0:
		p := beyond(squares/freedom, freedom, prior.Freedom)
		expected = max(expected*trust(p), min(expected, leastWeight))
	}
	out.Freedom = expected + freedom
	out.Error = math.Sqrt((expected + squares) / out.Freedom / sum)
	if mixed {
		out.Error *= math.Sqrt(float64(out.Epochs))
	}
	return out
}

func weigh(epochs []Epoch, variance float64) (weights []float64, pairs int) {
	weights, pairs = within(epochs)
	for k, w := range weights {
		weights[k] = 1 / (variance + w)
	}
	return weights, pairs
}

func within(epochs []Epoch) (variances []float64, pairs int) {
	const medianVariance = math.Pi / 2
	spread, freedom, near, all := 0.0, 0.0, 0.0, 0.0
	for _, e := range epochs {
		pairs += e.N
		free := float64(e.N - 1)
		spread += free * e.Spread * e.Spread
		freedom += free
		if e.Near > 0 {
			near, all = near+free*e.Near*e.Near, all+free*e.Spread*e.Spread
		}
	}
	// How close together values are near a median decides how precise it is. Of slices many are
	// close together and some far off. One epoch tells too little about that.
	dense := 1.0
	if near > 0 {
		dense = max(leastDense, near/all)
	}
	spread /= freedom // NaN if no epoch has two pairs
	variances = make([]float64, len(epochs))
	for k, e := range epochs {
		free := float64(e.N - 1)
		own := (spreadWeight*spread + free*e.Spread*e.Spread) / (spreadWeight + free)
		variances[k] = medianVariance * dense * own / e.Worth
	}
	return variances, pairs
}

// Interval returns the mean's interval at a level of confidence.
func (e Estimate) Interval(level float64) (low, high float64) {
	half := Student((1+level)/2, e.Freedom) * e.Error
	return e.Centre - half, e.Centre + half
}

// Summary returns the estimate of a difference with its 95 % interval.
func (e Estimate) Summary() Summary {
	if e.Pairs == 0 {
		return Summary{}
	}
	low, high := e.Interval(Confidence)
	return Summary{Median: e.Centre, Low: low, High: high, N: e.Pairs}
}

// Ratio converts the estimate of a ratio's logarithm to the ratio, with its 95 % interval.
func (e Estimate) Ratio() Summary {
	s := e.Summary()
	if s.N > 0 {
		s.Median, s.Low, s.High = exp(s.Median), exp(s.Low), exp(s.High)
	}
	return s
}

// exp returns e to the power of x, limited so that any value in a file gives a finite ratio.
func exp(x float64) float64 {
	const most = 200
	return math.Exp(min(max(x, -most), most))
}

// Student returns the quantile p > 0.5 of Student's distribution.
func Student(p, freedom float64) float64 {
	x := mathext.InvRegIncBeta(freedom/2, 0.5, 2*(1-p))
	return math.Sqrt(freedom * (1 - x) / x)
}

// MeanHalf returns half the width of the 95 % interval of the mean of independent values, by
// Student's distribution. It returns 0 for fewer than MinJudged values.
func MeanHalf(xs []float64) float64 {
	n := float64(len(xs))
	if len(xs) < MinJudged {
		return 0
	}
	mean, squares := 0.0, 0.0
	for _, x := range xs {
		mean += x / n
	}
	for _, x := range xs {
		squares += (x - mean) * (x - mean)
	}
	return Student(1-(1-Confidence)/2, n-1) * math.Sqrt(squares/(n-1)/n)
}
