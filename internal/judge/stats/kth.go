package stats

import (
	"math/bits"
	"slices"
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
