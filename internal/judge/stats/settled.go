package stats

import "math"

// sureConfidence is the level at which a row is said to differ: there are many rows in a
// report, and none of those that do not differ may be said to.
const sureConfidence = 0.99

// A run that looks at what it has and ends when it knows enough has more chances to be
// wrong. While it runs it therefore only takes for known what is known at these levels,
// and after that many epochs.
const (
	lookSame   = 0.99
	lookDiffer = 0.999
	lookEpochs = 3
)

// Judge judges the estimate of a ratio's logarithm. If its whole 95 % interval is within
// same of 1, it is the same. If its whole 99 % interval is further from 1 than bias, it is
// better or worse. All else is unclear. Bias is how far the control's own ratio is from
// 1, NaN if there is no control.
func (e Estimate) Judge(bias, same float64, higherIsBetter bool) Verdict {
	return e.judge(bias, same, Confidence, sureConfidence, higherIsBetter)
}

// Settled reports whether a run that looks before its end may take the ratio for known.
// One that is as precise as was asked for, by the relative half-width of its interval, is if
// it is the same; so is any if no such interval could be: it was not asked for.
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

// Bias is how far the ratio whose logarithm this is, the control's, is from 1; NaN if
// it is not known.
func (e Estimate) Bias() float64 {
	if e.Pairs == 0 {
		return math.NaN()
	}
	return math.Expm1(math.Abs(e.Centre))
}

// Times is the estimate in another unit.
func (e Estimate) Times(by float64) Estimate {
	e.Centre *= by
	e.Error *= math.Abs(by)
	return e
}

// More is what something has more than what has the level, if e is the logarithm of their
// ratio; its error is to first order.
func (e Estimate) More(level float64) Estimate {
	ratio := exp(e.Centre)
	e.Centre, e.Error = level*(ratio-1), level*ratio*e.Error
	return e
}

// Over is the reverse of More.
func (e Estimate) Over(level float64) Estimate {
	ratio := 1 + e.Centre/level
	e.Centre, e.Error = math.Log(ratio), e.Error/math.Abs(level*ratio)
	return e
}

// Plus is the sum of two independent estimates, with the degrees of freedom of Welch and
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
