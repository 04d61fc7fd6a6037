package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestMedianInterval(t *testing.T) {
	eight := []float64{8, 1, 7, 2, 6, 3, 5, 4}
	for _, c := range []struct {
		level, low, high float64
		ok               bool
	}{
		{0.99, 1, 8, true},          // 2/256 outside
		{0.95, 1, 8, true},          // 18/256 would be too many
		{0.90, 2, 7, true},          // 18/256 = 7 %
		{0.995, 0, 0, false},        // 2/256 = 0.8 %
		{1 - 2.1/256, 1, 8, true},   // as certain as eight can be
		{1 - 74.1/256, 3, 6, true},  // 1 + 8 + 28 on each side
		{1 - 186.1/256, 4, 5, true}, // 1 + 8 + 28 + 56
	} {
		low, high, ok := MedianInterval(eight, c.level)
		if ok != c.ok || ok && (low != c.low || high != c.high) {
			t.Errorf("at %g: %g to %g, %v; want %g to %g, %v", c.level, low, high, ok, c.low,
				c.high, c.ok)
		}
	}
	if _, _, ok := MedianInterval([]float64{math.NaN(), 1, math.Inf(1)}, 0.5); ok {
		t.Error("one finite value has an interval")
	}
}

func TestMedianIntervalCovers(t *testing.T) {
	const runs, n, level = 4000, 12, 0.99
	rng := rand.New(rand.NewPCG(1, 2))
	missed := 0
	for range runs {
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = math.Exp(3 * rng.NormFloat64())
		}
		if low, high, ok := MedianInterval(xs, level); !ok || low > 1 || high < 1 {
			missed++
		}
	}
	if share := float64(missed) / runs; share > 1-level {
		t.Errorf("the median is outside in %.2f %% of the samples", 100*share)
	}
}

// A percentile bootstrap of few values has 93 to 98 % instead of 99 %.
func TestSureSummaryCovers(t *testing.T) {
	const runs = 4000
	rng := rand.New(rand.NewPCG(1, 4))
	for n := 2; n <= 20; n++ {
		missed, known := 0, 0
		for range runs {
			xs := make([]float64, n)
			for i := range xs {
				xs[i] = math.Exp(0.3 * rng.NormFloat64())
			}
			if s, ok := SummarizeSurely(xs, Estimate{}); ok {
				known++
				if s.Low > 1 || s.High < 1 {
					missed++
				}
			}
		}
		if (known == runs) != (n >= MinSure) || known > 0 && known < runs {
			t.Errorf("%d of %d samples of %d values have an interval", known, runs, n)
		}
		if share := float64(missed) / runs; share > 0.013 {
			t.Errorf("the median of %d is outside in %.2f %% of the samples", n, 100*share)
		}
	}
}
