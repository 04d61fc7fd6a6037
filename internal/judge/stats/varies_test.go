package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestVaries(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	normal := func(n int, sd float64) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = sd * r.NormFloat64()
		}
		return out
	}
	for _, tt := range []struct {
		name          string
		values, noise []float64
		want          bool
	}{
		{"steady", normal(100, 0.1), normal(100, 0.1), false},
		{"a-hundredfold", normal(100, 2), normal(100, 0.1), true},
		{"so-does-the-machine", normal(100, 2), normal(100, 1.5), false},
		{"too-few", normal(MinValues-1, 2), normal(100, 0.1), false},
		{"unknown-noise", normal(100, 2), nil, false},
		{"an-eighth-stalls", append(normal(13, 0.1), -7, -7), normal(100, 0.1), true},
		{"one-stalls", append(normal(11, 0.1), -7), normal(100, 0.1), false},
		{"a-few-outliers", append(normal(90, 0.1), normal(10, 5)...), normal(100, 0.1), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Varies(tt.values, tt.noise); got != tt.want {
				t.Errorf("quartiles %.2f, of the noise %.2f: %t",
					math.Exp(quantile(tt.values, 0.75)-quantile(tt.values, 0.25)), tt.noise, got)
			}
		})
	}
}

func TestRange(t *testing.T) {
	if low, high := Range([]float64{3, 1, 2}); low != 1 || high != 3 {
		t.Errorf("few: %v to %v", low, high)
	}
	xs := make([]float64, 101)
	for i := range xs {
		xs[i] = float64(i)
	}
	if low, high := Range(xs); low != 5 || high != 95 {
		t.Errorf("many: %v to %v", low, high)
	}
}
