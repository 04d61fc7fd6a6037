package chart

import (
	"cmp"
	"slices"
)

// An axis ends before outliers, because they would squeeze the rest. The drawing marks what is cut,
// and the tables have every figure.
const (
	leastFar  = 0.25 // the smallest distance of ratios that matters
	cutEnds   = 1    // spans that intervals may add to the axis on either side
	cutValues = 20   // a value this many times as far as any other is cut
	cutPad    = 1.5  // distances of the other values that the axis then reaches
	cutRounds = 3    // a round this many times as high as the highest median is cut
	roundsTop = 2    // medians at which the axis then ends
)

// limits returns the ends of an axis that shows values and the ends of their intervals around a
// line, or nil if nothing has to be cut. Distances less than least count as least.
func limits(line, least float64, values, ends []float64) *[2]float64 {
	if len(values) == 0 {
		return nil
	}
	kept := withoutFar(line, least, values)
	low, high := min(line, slices.Min(kept)), max(line, slices.Max(kept))
	span := cutEnds * max(high-low, least)
	all := slices.Concat(values, ends)
	out := [2]float64{max(low-span, slices.Min(all)), min(high+span, slices.Max(all))}
	if len(kept) < len(values) { // cut close to what is left
		out[0] = max(out[0], line-cutPad*max(line-low, least))
		out[1] = min(out[1], line+cutPad*max(high-line, least))
	}
	if out[0] <= slices.Min(all) && out[1] >= slices.Max(all) {
		return nil
	}
	return &out
}

// withoutFar leaves out values much farther from the line than all others.
func withoutFar(line, least float64, values []float64) []float64 {
	far := func(x float64) float64 { return max(x-line, line-x) }
	sorted := slices.Clone(values)
	slices.SortFunc(sorted, func(a, b float64) int { return cmp.Compare(far(a), far(b)) })
	n := len(sorted)
	for i := n - 1; i > 0 && i >= n-max(1, n/4); i-- {
		if far(sorted[i]) > cutValues*max(far(sorted[i-1]), least) {
			return sorted[:i]
		}
	}
	return sorted
}

// topOf returns the end of an axis of rounds, or nil if the axis reaches the highest round.
func topOf(medians []float64, highest float64) *float64 {
	if len(medians) == 0 {
		return nil
	}
	m := slices.Max(medians)
	if m <= 0 || highest <= cutRounds*m {
		return nil
	}
	m *= roundsTop
	return &m
}

func (s *intervals) cut() {
	var values, ends []float64
	for _, r := range s.Rows {
		if r.None {
			continue
		}
		if r.Varies { // a range has no typical value
			values = append(values, *r.Low, *r.High)
			continue
		}
		values = append(values, r.Value)
		if r.Beside != nil {
			values = append(values, *r.Beside)
		}
		if r.Low != nil && r.High != nil {
			ends = append(ends, *r.Low, *r.High)
		}
	}
	s.Limits = limits(1, leastFar, values, ends)
}

// cutNote explains the marks of what is cut. It returns "" if nothing is cut.
func (s *intervals) cutNote() string {
	if s.Limits == nil {
		return ""
	}
	return " ◂ and ▸: it goes on beyond the chart."
}
