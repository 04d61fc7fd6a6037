package model

import (
	"math"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
)

// lowMedian is the median of xs, which it reorders, or of an even number the
// smaller one of the two in the middle: the faster. So the level of a node with
// two links is that of the faster one, and one slow link does not make it slow.
// NaN if there are none.
func lowMedian(xs []float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	return stats.Kth(xs, (len(xs)-1)/2)
}

// median is that of at least one value; xs is reordered.
func median(xs []float64) float64 {
	n := len(xs)
	return (stats.Kth(xs, (n-1)/2) + stats.Kth(xs, n/2)) / 2
}

// spread is a robust standard deviation of xs, which it reorders and changes,
// about m.
func spread(xs []float64, m float64) float64 {
	if len(xs) < 2 {
		return math.NaN()
	}
	for i, x := range xs {
		xs[i] = math.Abs(x - m)
	}
	return normal * median(xs)
}
