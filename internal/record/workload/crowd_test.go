package workload

import (
	"math"
	"testing"
)

func TestJain(t *testing.T) {
	for _, tt := range []struct {
		xs   []float64
		want float64
	}{
		{[]float64{5}, 1}, {[]float64{3, 3, 3, 3}, 1}, {[]float64{8, 0, 0, 0}, 0.25},
		{[]float64{1, 2, 3}, 36.0 / 42}, {[]float64{0, 0}, math.NaN()},
	} {
		if got := jain(tt.xs); math.Abs(got-tt.want) > 1e-12 ||
			math.IsNaN(got) != math.IsNaN(tt.want) {
			t.Errorf("jain(%v) = %v, want %v", tt.xs, got, tt.want)
		}
	}
}
