package stats

import (
	"math"
	"slices"
)

const (
	// asideAt is the distance, in standard deviations, beyond which an epoch is set aside. Hardly two
	// in a thousand runs without another state of the machine have such an epoch.
	asideAt   = 5
	leastKept = 4
)

// Aside reports which epochs are further from the median of all than their own error, the prior and
// the distance of the middle epochs allow. A machine may be in another state, with other ratios,
// for seconds at a time. If out is true, these epochs are to be left out. It is false if there are
// none, if they are more than a third, or if few would be left.
//
// Weights that fall smoothly with the distance (Huber, Tukey) would keep a share of the other state
// in the mean.
func Aside(epochs []Epoch) (which []bool, out bool) {
	which = make([]bool, len(epochs))
	var at []int
	var some []Epoch
	var centres []float64
	for k, e := range epochs {
		if e.N > 0 {
			at, some, centres = append(at, k), append(some, e), append(centres, e.Centre)
		}
	}
	if len(some) == 0 {
		return which, false
	}
	weights, _ := weigh(some, Assumed.Variance)
	middle := lowerMedian(centres)
	off := make([]float64, len(some)) // in expected standard deviations
	for k, e := range some {
		off[k] = math.Abs(e.Centre-middle) * math.Sqrt(weights[k])
	}
	n := float64(len(some))
	seen := ofNormal * lowerMedian(off)
	scale := math.Sqrt((priorWeight + n*seen*seen) / (priorWeight + n))
	count := 0
	for k := range some {
		if off[k] > asideAt*scale {
			which[at[k]] = true
			count++
		}
	}
	return which, count > 0 && 3*count <= len(some) && len(some)-count >= leastKept
}

// lowerMedian returns a value within one of two clusters, not between them.
func lowerMedian(xs []float64) float64 { return Kth(slices.Clone(xs), (len(xs)-1)/2) }

// usual returns the epochs with pairs, without those to be left out. mixed reports whether epochs
// of another state are among them.
func usual(epochs []Epoch) (kept []Epoch, mixed bool) {
	aside, out := Aside(epochs)
	for k, e := range epochs {
		if e.N > 0 && (!out || !aside[k]) {
			kept = append(kept, e)
		}
	}
	return kept, !out && slices.Contains(aside, true)
}
