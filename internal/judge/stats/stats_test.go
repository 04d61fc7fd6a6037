package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		name string
		in   []float64
		want float64
	}{
		{"odd", []float64{3, 1, 2}, 2},
		{"even", []float64{4, 1, 2, 3}, 2.5},
		{"one", []float64{7}, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Median(c.in); got != c.want {
				t.Errorf("Median(%v) = %v, want %v", c.in, got, c.want)
			}
		})
	}
	if !math.IsNaN(Median(nil)) {
		t.Error("median of nothing is a number")
	}
}

func TestSummarizeIsDeterministicAndOrdered(t *testing.T) {
	xs := []float64{1.02, 0.98, 1.01, 0.99, 1.00, 1.03, 0.97, math.NaN(), math.Inf(1)}
	a, b := Summarize(xs), Summarize(xs)
	if a != b {
		t.Errorf("%+v, then %+v", a, b)
	}
	if a.N != 7 || a.Median != 1 || !(a.Low >= 0.97 && a.Low <= a.Median && a.Median <= a.High &&
		a.High <= 1.03) {
		t.Errorf("summary %+v", a)
	}
	if s := Summarize([]float64{5}); s.Low != 5 || s.High != 5 || s.N != 1 {
		t.Errorf("one value: %+v", s)
	}
}

func TestIntervalCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for _, n := range []int{6, 12, 24} {
		covered, runs := 0, 400
		for range runs {
			xs := make([]float64, n)
			for i := range xs {
				xs[i] = math.Exp(0.1 * rng.NormFloat64())
			}
			if s := Summarize(xs); s.Low <= 1 && 1 <= s.High {
				covered++
			}
		}
		if share := float64(covered) / float64(runs); share < 0.90 {
			t.Errorf("n=%d: covered %.3f", n, share)
		}
	}
}

func TestRatiosPairByRound(t *testing.T) {
	x := map[int]float64{0: 2, 1: 6, 2: 5, 4: 1}
	base := map[int]float64{0: 1, 1: 3, 3: 9, 4: 0}
	got := Ratios(x, base)
	if len(got) != 2 || got[0] != 2 || got[1] != 2 {
		t.Errorf("Ratios = %v, want [2 2]", got)
	}
}

func TestJudge(t *testing.T) {
	at := func(low, high float64) Summary {
		return Summary{Median: (low + high) / 2, Low: low, High: high, N: 10}
	}
	for _, c := range []struct {
		name          string
		ratio         Summary
		floor, margin float64
		higher        bool
		want          Verdict
	}{
		{"less throughput", at(0.80, 0.85), 0.02, 0.02, true, Worse},
		{"more throughput", at(1.10, 1.15), 0.02, 0.02, true, Better},
		{"less latency", at(0.80, 0.85), 0.02, 0.02, false, Better},
		{"more latency", at(1.10, 1.15), 0.02, 0.02, false, Worse},
		{"within the floor", at(0.97, 1.02), 0.04, 0.02, true, Same},
		{"within the margin", at(0.985, 1.01), 0.001, 0.02, true, Same},
		{"clear beyond a small floor", at(0.985, 0.99), 0.001, 0.02, true, Worse},
		{"not beyond the floor", at(0.90, 0.99), 0.05, 0.02, true, Unclear},
		{"wide", at(0.80, 1.30), 0.02, 0.02, true, Unclear},
		{"within an absurd floor", at(0.5, 1.8), 5, 0.02, true, Unclear},
		{"no rounds", Summary{}, 0.02, 0.02, true, Unclear},
		{"too few rounds", Summary{Median: 0.5, Low: 0.5, High: 0.5, N: 4}, 0.02, 0.02, true,
			Unclear},
		{"no control", at(0.80, 0.85), math.NaN(), 0.02, true, Unclear},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Judge(c.ratio, c.floor, c.margin, c.higher); got != c.want {
				t.Errorf("Judge(%+v) = %s, want %s", c.ratio, got, c.want)
			}
		})
	}
}

// Each interval alone is a 95 % one; the noise floor keeps false differences rare.
func TestFewFalseDifferencesAmongManyModes(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 3))
	const runs, modes, rounds = 60, 20, 12
	wrong := 0
	for range runs {
		base, control := map[int]float64{}, map[int]float64{}
		drift := make([]float64, rounds)
		value := func(r int) float64 { return drift[r] * math.Exp(0.04*rng.NormFloat64()) }
		for r := range rounds {
			drift[r] = math.Exp(0.3 * rng.NormFloat64())
			base[r], control[r] = value(r), value(r)
		}
		floor := Floor(Summarize(Ratios(control, base)))
		for range modes {
			x := map[int]float64{}
			for r := range rounds {
				x[r] = value(r)
			}
			if v := Judge(Summarize(Ratios(x, base)), floor, 0.02, true); v == Better ||
				v == Worse {
				wrong++
			}
		}
	}
	if share := float64(wrong) / (runs * modes); share > 0.02 {
		t.Errorf("%.2f %% of equal modes were called different", 100*share)
	}
}

func TestClusters(t *testing.T) {
	for _, c := range []struct {
		name string
		in   []float64
		low  int // values in the lower cluster; 0: none
	}{
		{"two clusters", []float64{20, 10.1, 20.2, 10.1, 10, 20.1, 10.2, 20.1, 20.3}, 4},
		{"one cluster", []float64{10, 10.1, 10.2, 10.3, 10.4, 10.5, 10.6, 10.7}, 0},
		{"one outlier", []float64{10, 10.1, 10.2, 10.1, 10, 10.2, 10.1, 30}, 0},
		{"too close to matter", []float64{10, 10, 10, 10, 10.1, 10.1, 10.1, 10.1}, 0},
		{"too few", []float64{10, 10, 20, 20}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			low, high := Clusters(c.in)
			if len(low) != c.low || c.low == 0 && high != nil ||
				c.low > 0 && (len(high) != len(c.in)-c.low || slices.Max(low) > slices.Min(high)) {
				t.Errorf("Clusters(%v) = %v, %v", c.in, low, high)
			}
		})
	}
}
