package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// MedianInterval returns an interval for the median of the values' distribution by the sign test,
// which assumes no distribution; a bootstrap of few values underestimates it. ok is false if there
// are too few values for the level.
func MedianInterval(xs []float64, level float64) (low, high float64, ok bool) {
	xs = finite(xs)
	slices.Sort(xs)
	n, outside := len(xs), -1 // values outside on each side
	for k := 0; 2*k < n; k++ {
		if 2*binomialTail(n, k) > 1-level {
			break
		}
		outside = k
	}
	if outside < 0 {
		return math.NaN(), math.NaN(), false
	}
	return xs[outside], xs[n-1-outside], true
}

func binomialTail(n, k int) float64 {
	const fair = 0.5
	return mathext.RegIncBeta(float64(n-k), float64(k+1), fair)
}
