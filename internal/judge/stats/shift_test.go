package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func (s simulated) run(rng *rand.Rand, epochs int, truth float64) Estimate {
	all := make([]Epoch, epochs)
	for k := range all {
		all[k] = s.epoch(rng, truth+s.session*rng.NormFloat64())
	}
	return Moderate(all, Assumed)
}

// Equal runs must hardly ever be called different, and the interval covers the truth.
func TestShiftOfEqualRuns(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	const runs, truth = 800, -0.2
	for _, epochs := range [][2]int{{1, 1}, {3, 3}, {2, 12}, {10, 10}} {
		t.Run(fmt.Sprintf("%d-and-%d-epochs", epochs[0], epochs[1]), func(t *testing.T) {
			covered, told := 0, 0
			for range runs {
				old, now := typical.run(rng, epochs[0], truth), typical.run(rng, epochs[1], truth)
				noise := BothNoises(typical.run(rng, epochs[0], 0).Bias(),
					typical.run(rng, epochs[1], 0).Bias())
				s := Shifted(old, now)
				if s.Low <= 1 && 1 <= s.High {
					covered++
				}
				if v := s.Judge(noise, 0.03, true); v == Better || v == Worse {
					told++
				}
			}
			if share := float64(covered) / runs; share < 0.93 {
				t.Errorf("the interval covers the truth in %.1f %% of runs", 100*share)
			}
			if share := float64(told) / runs; share > 0.005 {
				t.Errorf("%.2f %% of equal runs are told apart", 100*share)
			}
		})
	}
}

// The values are as skewed as a latency's tail.
func TestShiftOfEqualValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 2))
	const runs = 200
	for _, rounds := range [][2]int{{5, 5}, {5, 20}, {12, 12}, {30, 30}} {
		t.Run(fmt.Sprintf("%d-and-%d-rounds", rounds[0], rounds[1]), func(t *testing.T) {
			values := func(n int) []float64 {
				out := make([]float64, n)
				for i := range out {
					out[i] = math.Exp(0.1 * rng.NormFloat64())
				}
				return out
			}
			covered, told := 0, 0
			for range runs {
				s := ShiftedValues(values(rounds[0]), values(rounds[1]))
				if s.Low <= 1 && 1 <= s.High {
					covered++
				}
				if v := s.Judge(0, 0.03, true); v == Better || v == Worse {
					told++
				}
			}
			if share := float64(covered) / runs; share < 0.92 {
				t.Errorf("the interval covers the truth in %.1f %% of runs", 100*share)
			}
			if share := float64(told) / runs; share > 0.03 {
				t.Errorf("%.2f %% of equal runs are told apart without any noise floor", 100*share)
			}
		})
	}
}

// --fail-above 5% must not fail for a difference of 3 %. docs/commands/diff.md has the shares; -v
// prints them.
func TestShiftOfRunsThatDiffer(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	const runs = 400
	for _, c := range []struct {
		epochs                 int
		less                   float64 // the new run's ratio is smaller by this
		leastWorse, mostBeyond float64 // shares of the runs: called worse, and by more than 5 %
		leastBeyond            float64
	}{
		{5, 0, 0, 0, 0}, {13, 0, 0, 0, 0}, {13, 0.03, 0.4, 0, 0}, {13, 0.05, 0.95, 0.03, 0},
		{5, 0.1, 0.98, 1, 0.8}, {13, 0.1, 1, 1, 0.98},
	} {
		t.Run(fmt.Sprintf("%d-epochs-%g-less", c.epochs, c.less), func(t *testing.T) {
			count, beyond := map[Verdict]float64{}, 0.0
			for range runs {
				old, now := typical.run(rng, c.epochs, 0),
					typical.run(rng, c.epochs, math.Log1p(-c.less))
				noise := BothNoises(typical.run(rng, c.epochs, 0).Bias(),
					typical.run(rng, c.epochs, 0).Bias())
				s := Shifted(old, now)
				v := s.Judge(noise, 0.03, true)
				count[v] += 1.0 / runs
				if v == Worse && s.SureHigh < 1-0.05 {
					beyond += 1.0 / runs
				}
			}
			t.Logf("%v, %.3f by more than 5 %%", count, beyond)
			if count[Better] > 0.005 || c.less == 0 && count[Worse] > 0.005 {
				t.Errorf("%.3f better, %.3f worse", count[Better], count[Worse])
			}
			if count[Worse] < c.leastWorse-1e-9 || beyond < c.leastBeyond ||
				beyond > c.mostBeyond+1e-9 {
				t.Errorf("%.3f worse, %.3f by more than 5 %%", count[Worse], beyond)
			}
		})
	}
}

func TestJudgeShift(t *testing.T) {
	at := func(low, high float64) Shift {
		return Shift{Summary: Summary{Median: (low + high) / 2, Low: low, High: high, N: 10},
			SureLow: low - 0.01, SureHigh: high + 0.01}
	}
	few := at(1.2, 1.3)
	few.N = MinJudged - 1
	one := few
	one.Epochs = 1
	for _, c := range []struct {
		name  string
		s     Shift
		noise float64
		want  Verdict
	}{
		{"more", at(1.1, 1.2), 0.05, Better},
		{"less", at(0.8, 0.9), 0.05, Worse},
		{"within-the-noise", at(1.1, 1.2), 0.12, Unclear},
		{"less-within-the-noise", at(0.8, 0.9), 0.12, Unclear},
		{"certain-at-95-only", at(1.055, 1.2), 0.05, Unclear},
		{"equal", at(0.98, 1.02), 0.05, Same},
		{"wide", at(0.5, 2), 0.05, Unclear},
		{"few-rounds", few, 0.05, Unclear},
		{"one-epoch", one, 0.05, Better},
		{"no-control", at(1.1, 1.2), math.NaN(), Unclear},
		{"none", Shift{}, 0.05, Unclear},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.s.Judge(c.noise, 0.03, true); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	if at(0.8, 0.9).Judge(0.05, 0.03, false) != Better {
		t.Error("where less is better, less is not better")
	}
}

func TestShiftOfOddValues(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range [][2][]float64{{nil, {1}}, {{0}, {1}}, {{1}, {-1, 0}}, {{math.NaN()}, {inf}},
		{{1e-300}, {1e300}}, {{1e300, 1}, {1e-300}}, {{5e-324}, {5e-324, 1}}} {
		s := ShiftedValues(c[0], c[1])
		for _, x := range []float64{s.Median, s.Low, s.High, s.SureLow, s.SureHigh} {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				t.Errorf("%v: %+v", c, s)
			}
		}
	}
	if s := ShiftedValues([]float64{2}, []float64{3}); s.N != 1 || s.Median != 1.5 || s.Low != 1.5 {
		t.Errorf("%+v", s)
	}
}
