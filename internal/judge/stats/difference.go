package stats

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
