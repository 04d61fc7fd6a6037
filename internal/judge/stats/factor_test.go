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

// A value of CPU time has a factor of the whole run in it, whose error the rounds' values do not
// show.
func TestIntervalOfAFactorsProductCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	const runs, truth = 2000, 3.0
	for _, n := range []int{8, 13, 30} {
		usual, sure := 0, 0
		for range runs {
			ws, xs := make([]Window, n), make([]float64, n)
			for k := range ws {
				part := 0.05 * (1 + 0.1*rng.NormFloat64())
				ws[k] = Window{3*part + 0.04*rng.NormFloat64(), part}
			}
			e := LogFactor(ws)
			for k := range xs {
				xs[k] = math.Exp(e.Centre + 0.02*rng.NormFloat64())
			}
			if s := Summarize(xs).By(e, Confidence); s.Low <= truth && truth <= s.High {
				usual++
			}
			if s, ok := SummarizeSurely(xs, e); ok && s.Low <= truth && truth <= s.High {
				sure++
			}
		}
		if share := float64(usual) / runs; share < 0.93 || share > 0.985 {
			t.Errorf("of %d rounds the 95 %% interval covers the truth in %.1f %%", n, 100*share)
		}
		if share := float64(sure) / runs; share < 0.985 {
			t.Errorf("of %d rounds the 99 %% interval covers the truth in %.1f %%", n, 100*share)
		}
	}
}

func TestProductWithoutFactor(t *testing.T) {
	s := Summary{Median: 2, Low: 1, High: 3, N: 9}
	if got := s.By(Estimate{}, Confidence); got != s {
		t.Errorf("%+v", got)
	}
	none := Summary{Median: 2, Low: math.NaN(), High: math.NaN(), N: 2}
	if got := none.By(Estimate{Error: 1, Freedom: 3, Pairs: 4}, Confidence); !math.IsNaN(got.Low) {
		t.Errorf("%+v", got)
	}
}
