package model

import (
	"math"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
)

// lowMedian returns the median or, of an even number of values, the smaller middle one, so that one
// slow link of two does not make a node slow. It returns NaN without values, and reorders xs.
func lowMedian(xs []float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	return stats.Kth(xs, (len(xs)-1)/2)
}

func median(xs []float64) float64 {
	n := len(xs)
	return (stats.Kth(xs, (n-1)/2) + stats.Kth(xs, n/2)) / 2
}

// spread returns a robust standard deviation of xs about m; it reorders and changes xs.
func spread(xs []float64, m float64) float64 {
	if len(xs) < 2 {
		return math.NaN()
	}
	for i, x := range xs {
		xs[i] = math.Abs(x - m)
	}
	return normal * median(xs)
}
