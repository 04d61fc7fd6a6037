package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// MedianInterval is where the median is that the values are drawn around, at a level of
// confidence that need not be 95 %: between two of the values, by the sign test, which assumes no
// distribution. (The ends of a bootstrap of few values are not known that well.) ok is false if
// there are too few: even between the least and the greatest it is not that certain.
func MedianInterval(xs []float64, level float64) (low, high float64, ok bool) {
	xs = finite(xs)
	slices.Sort(xs)
	n, outside := len(xs), -1 // how many values on each side are outside
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

// binomialTail is how likely at most k of n fair coins show heads.
func binomialTail(n, k int) float64 {
	const fair = 0.5
	return mathext.RegIncBeta(float64(n-k), float64(k+1), fair)
}
