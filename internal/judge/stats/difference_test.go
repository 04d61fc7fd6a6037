package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestDifferencesPairByRound(t *testing.T) {
	x := map[int]float64{0: 2, 1: 6, 2: 5, 4: math.Inf(1)}
	base := map[int]float64{0: 1, 1: 8, 3: 9, 4: 0}
	if got := Differences(x, base); !slices.Equal(got, []float64{1, -2}) {
		t.Errorf("Differences = %v, want [1 -2]", got)
	}
}

// Differences are signed, so two of them may be further apart than the largest float.
func TestMedianOfFarDifferences(t *testing.T) {
	if got := Median([]float64{-math.MaxFloat64, math.MaxFloat64}); got != 0 {
		t.Errorf("median %v", got)
	}
}

func TestJudgeDifference(t *testing.T) {
	const level = 50e-6
	at := func(low, high float64) Summary {
		return Summary{Median: (low + high) / 2 * 1e-6, Low: low * 1e-6, High: high * 1e-6, N: 10}
	}
	few := at(20, 30)
	few.N = MinJudged - 1
	for _, c := range []struct {
		name  string
		d     Summary
		level float64
		floor float64
		want  Verdict
	}{
		{"beyond-the-floor", at(3, 5), level, 0.04, Costs},
		{"below-zero-beyond-the-floor", at(-5, -3), level, 0.04, Gains},
		{"within-the-floor", at(-1, 1.5), level, 0.04, Nothing},
		{"within-the-margin", at(-0.5, 0.5), level, 0.001, Nothing},
		{"beyond-a-small-floor", at(0.3, 0.5), level, 0.001, Costs},
		{"across-the-floor", at(1, 5), level, 0.04, Unclear},
		{"wide", at(-20, 20), level, 0.04, Unclear},
		{"wide-within-an-absurd-floor", at(-20, 20), level, 2, Unclear},
		{"the-floor-grows-with-the-level", at(3, 5), 10 * level, 0.04, Nothing},
		{"few-rounds", few, level, 0.04, Unclear},
		{"no-control", at(20, 30), level, math.NaN(), Unclear},
		{"no-level", at(0, 0), 0, 0.04, Unclear},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := judgeDifference(c.d, c.level, c.floor, 0.02); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// In a ladder of many parts without any cost, three times as slow as the baseline that the floor
// comes from, few parts may be said to cost or gain something.
func TestFewFalseCosts(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 5))
	const runs, rungs, rounds, level = 60, 20, 12, 3.0
	wrong, absolute := 0, 0
	for range runs {
		drift := make([]float64, rounds)
		for r := range drift {
			drift[r] = math.Exp(0.3 * rng.NormFloat64())
		}
		visits := func(level float64) map[int]float64 {
			out := map[int]float64{}
			for r := range rounds {
				out[r] = level * drift[r] * math.Exp(0.04*rng.NormFloat64())
			}
			return out
		}
		base, control := visits(1), visits(1)
		floor := Floor(Summarize(Ratios(control, base)))
		apart := Summarize(Differences(control, base))
		below := visits(level)
		for range rungs {
			x := visits(level)
			d := Summarize(Differences(x, below))
			if v := judgeDifference(d, level, floor, 0.02); v == Costs || v == Gains {
				wrong++
			}
			if f := max(-apart.Low, apart.High); d.Low > f || d.High < -f {
				absolute++
			}
			below = x
		}
	}
	if share := float64(wrong) / (runs * rungs); share > 0.02 {
		t.Errorf("%.2f %% of parts that cost nothing were said to cost or gain something", 100*share)
	}
	if absolute <= wrong { // else the simpler floor would do
		t.Errorf("an absolute floor is wrong %d times, one that grows with the level %d times", absolute, wrong)
	}
	t.Logf("of %d: %d, with an absolute floor %d", runs*rungs, wrong, absolute)
}

// The cost of a part must be found with as many rounds.
func TestRealCostsAreFound(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 2))
	const runs, rounds = 200, 12
	found := 0
	for range runs {
		base, control, x := map[int]float64{}, map[int]float64{}, map[int]float64{}
		for r := range rounds {
			drift := math.Exp(0.3 * rng.NormFloat64())
			visit := func(level float64) float64 { return level * drift * math.Exp(0.04*rng.NormFloat64()) }
			base[r], control[r], x[r] = visit(1), visit(1), visit(1.25)
		}
		d := Summarize(Differences(x, base))
		if judgeDifference(d, 1, Floor(Summarize(Ratios(control, base))), 0.02) == Costs {
			found++
		}
	}
	if share := float64(found) / runs; share < 0.9 {
		t.Errorf("a part that costs a quarter was found in %.0f %% of runs", 100*share)
	}
}
