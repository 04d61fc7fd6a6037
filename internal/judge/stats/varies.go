package stats

import (
	"math"
	"slices"
)

const (
	// A quantity varies if its upper quartile is more than this multiple of its lower one, or its
	// upper decile more than the square of it.
	maxQuartiles = 3
	// ownShare is the part of that distance, as logarithms, that the noise may have.
	ownShare = 0.5
	// edge is the share of the values beyond either end of their range.
	edge = 0.05
)

// AllInRange is the largest number of values whose Range has them all.
const AllInRange = 1 / edge

// Varies reports whether values lie so far apart that their median describes few of them: the
// quartiles differ by more than a factor of 3, or the deciles by more than 9, and the noise's by
// less than the square root of that. Values and noise are logarithms. It returns false if either
// has too few values.
func Varies(values, noise []float64) bool {
	if len(values) < MinValues || len(noise) < MinValues {
		return false
	}
	const quartile, decile = 0.25, 0.1
	apart := func(part, least float64) bool {
		x := quantile(values, 1-part) - quantile(values, part)
		return x > least && quantile(noise, 1-part)-quantile(noise, part) < ownShare*x
	}
	least := math.Log(maxQuartiles)
	return apart(quartile, least) || apart(decile, 2*least)
}

// quantile interpolates between the nearest values.
func quantile(xs []float64, q float64) float64 {
	s, at := slices.Sorted(slices.Values(xs)), q*float64(len(xs)-1)
	below, part := math.Modf(at)
	return (1-part)*s[int(below)] + part*s[min(int(below)+1, len(s)-1)]
}

// Range returns the ends of the range of nine tenths of the values, or of all if these are few.
func Range(xs []float64) (low, high float64) {
	s := slices.Sorted(slices.Values(xs))
	beyond := int(edge * float64(len(s)-1))
	return s[beyond], s[len(s)-1-beyond]
}
