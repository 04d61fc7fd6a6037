package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestKth(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for n := 1; n < 300; n++ {
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = math.Round(10 * rng.NormFloat64())
		}
		sorted := slices.Sorted(slices.Values(xs))
		k := rng.IntN(n)
		if got := Kth(slices.Clone(xs), k); got != sorted[k] {
			t.Fatalf("%d of %v is %v, want %v", k, xs, got, sorted[k])
		}
		if got, want := Median(xs), medianSorted(sorted); got != want {
			t.Fatalf("the median of %v is %v, want %v", xs, got, want)
		}
	}
}
