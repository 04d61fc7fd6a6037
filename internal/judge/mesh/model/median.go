package model

import (
	"math"
	"math/bits"
	"slices"
)

// lowMedian is the median of xs, which it reorders, or of an even number the
// smaller one of the two in the middle: the faster. So the level of a node with
// two links is that of the faster one, and one slow link does not make it slow.
// NaN if there are none.
func lowMedian(xs []float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	return kth(xs, (len(xs)-1)/2)
}

// median is that of at least one value; xs is reordered.
func median(xs []float64) float64 {
	n := len(xs)
	return (kth(xs, (n-1)/2) + kth(xs, n/2)) / 2
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

// kth is what would be at k if xs were sorted; xs is reordered. It is Hoare's
// selection, which sorting would make five times slower; a file made to be slow
// to select from is sorted.
func kth(xs []float64, k int) float64 {
	lo, hi := 0, len(xs)-1
	for range 4 * bits.Len(uint(len(xs))) {
		if hi-lo < 16 {
			break
		}
		mid := lo + (hi-lo)/2
		pivot := max(min(xs[lo], xs[mid]), min(max(xs[lo], xs[mid]), xs[hi])) // of three
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
