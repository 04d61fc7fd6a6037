package stats

import "math"

// sureConfidence is the level of the verdicts better and worse. A report has many rows, and few
// equal ones may be called different.
const sureConfidence = 0.99

// A run that looks at its results and may end has more chances to be wrong. Before its end it needs
// these levels and at least this many epochs.
const (
	lookSame   = 0.99
	lookDiffer = 0.999
	lookEpochs = 3
)

// Judge judges the estimate of a ratio's logarithm. Same requires that the whole 95 % interval is
// within same of 1; better and worse, that the whole 99 % interval is further from 1 than bias, the
// distance of the control's ratio from 1. The verdict is unclear if bias is NaN.
func (e Estimate) Judge(bias, same float64, higherIsBetter bool) Verdict {
	return e.judge(bias, same, Confidence, sureConfidence, higherIsBetter)
}

// Settled reports whether a run may take the ratio for known before its end: it has a verdict at
// the higher levels, or it is the same and its interval's relative half-width is at most precision.
// With precision of at least same, the width alone is enough.
func (e Estimate) Settled(bias, same, precision float64) bool {
	if e.Epochs < lookEpochs {
		return false
	}
	s := e.Ratio()
	precise := s.HalfWidth() <= precision*s.Median
	return precise && (precision >= same || e.Judge(bias, same, true) == Same) ||
		e.judge(bias, same, lookSame, lookDiffer, true) != Unclear
}

func (e Estimate) judge(bias, same, sameLevel, differLevel float64, higherIsBetter bool) Verdict {
	if e.Pairs == 0 || math.IsNaN(bias) {
		return Unclear
	}
	if low, high := e.Interval(sameLevel); low >= math.Log1p(-same) && high <= math.Log1p(same) {
		return Same
	}
	switch low, high := e.Interval(differLevel); {
	case low > math.Log1p(bias):
		return pick(higherIsBetter)
	case high < -math.Log1p(bias):
		return pick(!higherIsBetter)
	}
	return Unclear
}

// Bias returns the distance of the control's ratio from 1, where e is the ratio's logarithm, or NaN
// if it is not known.
func (e Estimate) Bias() float64 {
	if e.Pairs == 0 {
		return math.NaN()
	}
	return math.Expm1(math.Abs(e.Centre))
}

// AtLeast returns the estimate with intervals at least as wide as its own and as those by the prior:
// an estimate is not more exact than its repetitions agree. They are as wide as the wider one at the
// highest level, whose Freedom is between the two, so more noise makes none narrower.
func (e Estimate) AtLeast(repeats Prior) Estimate {
	const highest, steps = (1 + lookDiffer) / 2, 20
	sd := math.Sqrt(repeats.Variance)
	own, its := Student(highest, e.Freedom)*e.Error, Student(highest, repeats.Freedom)*sd
	if e.Error >= sd && own >= its {
		return e
	}
	low, high := min(e.Freedom, repeats.Freedom), max(e.Freedom, repeats.Freedom)
	e.Error = max(e.Error, sd)
	for range steps {
		if mid := math.Sqrt(low * high); Student(highest, mid)*e.Error > max(own, its) {
			low = mid
		} else {
			high = mid
		}
	}
	e.Freedom = low
	return e
}

// Times returns the estimate multiplied by a factor.
func (e Estimate) Times(by float64) Estimate {
	e.Centre *= by
	e.Error *= math.Abs(by)
	return e
}

// More returns the excess of a quantity over level, if e is the logarithm of their ratio. The error
// is correct to first order.
func (e Estimate) More(level float64) Estimate {
	ratio := exp(e.Centre)
	e.Centre, e.Error = level*(ratio-1), level*ratio*e.Error
	return e
}

// Over inverts More.
func (e Estimate) Over(level float64) Estimate {
	ratio := 1 + e.Centre/level
	e.Centre, e.Error = math.Log(ratio), e.Error/math.Abs(level*ratio)
	return e
}

// Plus returns the sum of two independent estimates, with the degrees of freedom of Welch and
// Satterthwaite.
func (e Estimate) Plus(o Estimate) Estimate {
	e.Centre += o.Centre
	both := math.Hypot(e.Error, o.Error)
	if mine, its := e.Error/both, o.Error/both; both > 0 {
		e.Freedom = 1 / (math.Pow(mine, 4)/e.Freedom + math.Pow(its, 4)/o.Freedom)
	}
	e.Error = both
	e.Pairs, e.Epochs = min(e.Pairs, o.Pairs), min(e.Epochs, o.Epochs)
	return e
}
