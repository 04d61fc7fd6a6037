package stats

import (
	"maps"
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

func TestMedianOfFarDifferences(t *testing.T) {
	if got := Median([]float64{-math.MaxFloat64, math.MaxFloat64}); got != 0 {
		t.Errorf("median %v", got)
	}
}

func judgeDifference(d Summary, level, floor, margin float64) Verdict {
	return Judge(Share(d, level), floor, margin, false).Part()
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

// A ladder of many parts without cost, three times as slow as the baseline that the floor comes
// from, must have few false verdicts.
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
		t.Errorf("%.2f %% of parts that cost nothing were said to cost or gain something",
			100*share)
	}
	if absolute <= wrong { // else the simpler floor would do
		t.Errorf("an absolute floor is wrong %d times, one that grows with the level %d times",
			absolute, wrong)
	}
	t.Logf("of %d: %d, with an absolute floor %d", runs*rungs, wrong, absolute)
}

// The noise may be a share or an amount, at any level of the control.
func TestDifferencesAtOtherLevels(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 36))
	const runs, same = 300, 0.03
	for _, tt := range []struct {
		name                 string
		control, level, x    float64
		share, amount, drift float64
		want                 Verdict
	}{
		{"alike, noise a share", 1, 1, 1, 0.3, 0, 0.3, ""},
		{"alike, much noise", 1, 1, 1, 0.7, 0, 0.3, ""},
		{"alike, noise an amount", 1, 1, 1, 0.02, 1, 0.1, ""},
		{"alike above the control, noise a share", 1, 50, 50, 0.3, 0, 0.3, ""},
		{"alike above the control, noise an amount", 1, 50, 50, 0.02, 1, 0.1, ""},
		{"alike below the control, noise a share", 50, 1, 1, 0.3, 0, 0.3, ""},
		{"alike below the control, noise an amount", 50, 1, 1, 0.02, 1, 0.1, ""},
		{"slower than a noisy control", 0.2, 0.2, 18, 0.7, 0, 0.1, Costs},
		{"faster than a noisy control", 18, 18, 0.2, 0.7, 0, 0.1, Gains},
		{"slower, both far above the control", 0.2, 18, 30, 0.05, 0.3, 0.1, Costs},
	} {
		for _, rounds := range []int{MinJudged, 8} {
			different, found := 0, 0
			for range runs {
				base, control := map[int]float64{}, map[int]float64{}
				its, mine := map[int]float64{}, map[int]float64{}
				for r := range rounds {
					drift := math.Exp(tt.drift * rng.NormFloat64())
					visit := func(level float64) float64 {
						return level*drift*math.Exp(tt.share*rng.NormFloat64()) +
							tt.amount*rng.ExpFloat64()
					}
					base[r], control[r] = visit(tt.control), visit(tt.control)
					its[r], mine[r] = visit(tt.level), visit(tt.x)
				}
				floor := Floor(Summarize(Ratios(control, base)))
				at := Median(slices.Collect(maps.Values(base)))
				if tt.control == tt.level {
					its = base
				}
				d := Summarize(Differences(mine, its))
				level := min(Median(slices.Collect(maps.Values(mine))),
					Median(slices.Collect(maps.Values(its))))
				if tt.control != tt.level {
					floor = FloorAt(floor, at, level, d)
				}
				v := JudgeSame(Share(d, level), floor, same, false).Part()
				if v == Costs || v == Gains {
					different++
				}
				if v == tt.want {
					found++
				}
			}
			if share := float64(different) / runs; tt.want == "" && share > 0.05 {
				t.Errorf("%s, %d rounds: %.1f %% were called different", tt.name, rounds, 100*share)
			}
			if share := float64(found) / runs; tt.want != "" && rounds > MinJudged && share < 0.9 {
				t.Errorf("%s, %d rounds: it was found in %.0f %%", tt.name, rounds, 100*share)
			}
		}
	}
}

func TestRealCostsAreFound(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 2))
	const runs, rounds = 200, 12
	found := 0
	for range runs {
		base, control, x := map[int]float64{}, map[int]float64{}, map[int]float64{}
		for r := range rounds {
			drift := math.Exp(0.3 * rng.NormFloat64())
			visit := func(level float64) float64 {
				return level * drift * math.Exp(0.04*rng.NormFloat64())
			}
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
