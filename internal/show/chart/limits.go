package chart

import (
	"cmp"
	"slices"
)

// Outliers would squeeze the rest of an axis. The axis ends before them, and the drawing marks what
// is cut. The tables below the charts have every figure.
const (
	leastFar  = 0.25 // the smallest distance of ratios that matters
	cutEnds   = 1    // intervals may lengthen the axis by this many spans, on either side
	cutValues = 20   // a value this many times as far from the line as any other is cut
	cutPad    = 1.5  // the axis then reaches this many distances of the other values
	cutRounds = 3    // a round this many times as high as the highest row's median is cut
	roundsTop = 2    // the axis then ends at this many medians
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

// withoutFar returns the values without those that are much farther from the line than all others.
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

// topOf returns the end of the rounds' axis, or nil if it reaches the highest round.
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

// cut sets the ends of the axis of ratios.
func (s *intervals) cut() {
	var values, ends []float64
	for _, r := range s.Rows {
		if r.None {
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

// cutNote says that something is cut, or returns "" if nothing is.
func (s *intervals) cutNote() string {
	if s.Limits == nil {
		return ""
	}
	return " ◂ and ▸: it goes on beyond the chart."
}
