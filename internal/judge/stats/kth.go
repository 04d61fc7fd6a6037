package stats

import (
	"math"
	"math/bits"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// Kth returns the value that would be at index k of sorted xs, and reorders xs: no value before k
// is larger, and none after it smaller. No value may be NaN.
func Kth(xs []float64, k int) float64 {
	lo, hi := 0, len(xs)-1
	for range 4 * bits.Len(uint(len(xs))) {
		if hi-lo < 16 {
			break
		}
		mid := lo + (hi-lo)/2
		pivot := max(min(xs[lo], xs[mid]), min(max(xs[lo], xs[mid]), xs[hi])) // median of three
		i, j := lo, hi
		for i <= j {
			for xs[i] < pivot {
				i++
			}
			for xs[j] > pivot {
				j--
			}
			if i <= j {
				xs[i], xs[j] = xs[j], xs[i]
				i++
				j--
			}
		}
		switch {
		case k <= j:
			hi = j
		case k >= i:
			lo = i
		default:
			return xs[k]
		}
	}
	slices.Sort(xs[lo : hi+1])
	return xs[k]
}

// MinSure is the number of values that a median's 99 % interval needs: of seven, one in 64 samples
// is on one side of the median.
const MinSure = 8

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
