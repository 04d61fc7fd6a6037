package stats

// The verdicts on what a part costs.
const (
	Costs   Verdict = "costs"
	Gains   Verdict = "gains"
	Nothing Verdict = "nothing" // nothing measurable
)

// Differences subtracts base from x round by round. Rounds that only one of
// them has, or whose difference is not finite, are left out.
func Differences(x, base map[int]float64) []float64 {
	return paired(x, base, func(x, base float64) float64 { return x - base })
}

// judgeDifference judges the interval of a difference from a cell whose own median is level, in a
// metric where less is better. It judges the difference as a share of level, by the rules of Judge:
// a part costs something if its whole interval is beyond the noise floor, and nothing measurable if
// it is within.
//
// Note: the control's difference in the metric's unit would be the simpler floor. But noise grows
// with the level, and a ladder's upper rungs can be many times the baseline: equal rungs up there
// would be called different more often (TestFewFalseCosts).
func judgeDifference(d Summary, level, floor, margin float64) Verdict {
	return Judge(Share(d, level), floor, margin, false).Part()
}

// Share converts a difference from something with the given level to a ratio to it.
func Share(d Summary, level float64) Summary {
	return Summary{Median: 1 + d.Median/level, Low: 1 + d.Low/level, High: 1 + d.High/level, N: d.N}
}

// Part converts the verdict on a ratio to the verdict on the part that makes the difference.
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
