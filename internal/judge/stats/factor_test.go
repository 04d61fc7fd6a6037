package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestFactorsCover(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{3, 6, 13} {
		const runs = 2000
		covered := 0
		for range runs {
			mine, its := make([]Window, n), make([]Window, n)
			for k := range mine {
				others := 0.02 * rng.ExpFloat64()
				x, y := 0.05*(1+0.1*rng.NormFloat64()), 0.07*(1+0.1*rng.NormFloat64())
				mine[k] = Window{2*x + 1.4*others + 0.006*rng.NormFloat64(), x}
				its[k] = Window{y + others + 0.006*rng.NormFloat64(), y}
			}
			// The foreign load takes 0.02 of 0.07 s of its window on average.
			truth := math.Log((0.1 + 0.028) / 0.05 / ((0.07 + 0.02) / 0.07))
			if low, high := Factors(mine, its).Interval(Confidence); low <= truth && truth <= high {
				covered++
			}
		}
		if share := float64(covered) / runs; share < 0.9 || share > 0.985 {
			t.Errorf("of %d rounds the interval covers the truth in %.1f %% of runs", n, 100*share)
		}
	}
}

func TestFactorsOfTooLittle(t *testing.T) {
	w := []Window{{2, 1}, {2, 1}}
	if e := Factors(w, w); e != (Estimate{}) {
		t.Errorf("two windows: %+v", e)
	}
	some := append(w, Window{2, 1})
	for _, its := range [][]Window{{{}, {}, {}}, {{1, 0}, {1, 0}, {1, 0}},
		{{0, 1}, {0, 1}, {0, 1}}} {
		if e := Factors(some, its); e != (Estimate{}) {
			t.Errorf("%v: %+v", its, e)
		}
	}
	if e := Factors(some, some); e.Centre != 0 || e.Error != 0 || e.Freedom != 2 {
		t.Errorf("%+v", e)
	}
}
