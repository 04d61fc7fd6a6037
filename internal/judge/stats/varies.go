package stats

import (
	"math"
	"slices"
)

const (
	// A quantity varies if its upper quartile is more than this multiple of its lower one.
	maxQuartiles = 3
	// ownShare is the part of that distance, as logarithms, that the noise may have.
	ownShare = 0.5
	// edge is the share of the values beyond either end of their range.
	edge = 0.05
)

// AllInRange is the largest number of values whose Range has them all.
const AllInRange = 1 / edge

// Varies reports whether values lie so far apart that their median describes few of them: the
// quartiles differ by more than a factor of 3, and those of the noise by less than its root. Both
// are logarithms; without noise it is false.
func Varies(values, noise []float64) bool {
	return len(values) >= MinValues && len(noise) >= MinValues &&
		quartiles(values) > math.Log(maxQuartiles) &&
		quartiles(noise) < ownShare*quartiles(values)
}

func quartiles(xs []float64) float64 { return quantile(xs, 0.75) - quantile(xs, 0.25) }

// Range returns the ends between which nine tenths of the values lie; of few values, all.
func Range(xs []float64) (low, high float64) { return quantile(xs, edge), quantile(xs, 1-edge) }

// quantile returns the nearest value, away from the middle.
func quantile(xs []float64, q float64) float64 {
	s, at := slices.Sorted(slices.Values(xs)), q*float64(len(xs)-1)
	if q < 0.5 {
		return s[int(at)]
	}
	return s[int(math.Ceil(at))]
}
