package stats

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

const (
	sameAs     = 0.03
	goodEnough = 0.02
)

// 100 runs give a share of the rows to 1 %.
var simulations = flag.Int("simulations", 100,
	"simulated runs for each line: docs/method.md has 250")

// More noise in the run makes no interval narrower, and none is narrower than by the repetitions.
func TestAtLeastGrowsWithTheError(t *testing.T) {
	for _, freedom := range [][2]float64{{20, 3}, {3, 20}, {5, 5}, {1000, 1.5}} {
		repeats := Prior{0.055 * 0.055, freedom[1]}
		by := Estimate{Error: 0.055, Freedom: freedom[1], Pairs: 100}
		for _, level := range []float64{Confidence, sureConfidence, lookDiffer} {
			before := 0.0
			for err := 0.01; err < 0.5; err *= 1.05 {
				e := Estimate{Error: err, Freedom: freedom[0], Pairs: 100}
				_, own := e.Interval(level)
				_, least := by.Interval(level)
				_, got := e.AtLeast(repeats).Interval(level)
				if got < before*(1-1e-4) || got < max(own, least)*(1-1e-4) {
					t.Errorf("%v, %g: with an error of %.3f ±%.4f, its own ±%.4f, with less ±%.4f",
						freedom, level, err, got, own, before)
				}
				before = got
			}
		}
	}
}

// Repetitions that differ more than the run's error tells, by how much only few of them say.
func TestAtLeastCovers(t *testing.T) {
	const runs, freedom, weight, own = 4000, 20, 3, 0.04
	rng := rand.New(rand.NewPCG(7, 1))
	variance := func(sd, freedom float64) (sum float64) {
		for range int(freedom) {
			x := sd * rng.NormFloat64()
			sum += x * x / freedom
		}
		return sum
	}
	for _, times := range []float64{1, 1.5, 2, 3, 5} {
		missed := 0
		for range runs {
			e := Estimate{Centre: times * own * rng.NormFloat64(),
				Error: math.Sqrt(variance(own, freedom)), Freedom: freedom, Pairs: 100, Epochs: 10}
			low, high := e.AtLeast(Prior{variance(times*own, weight), weight}).Interval(
				sureConfidence)
			if low > 0 || high < 0 {
				missed++
			}
		}
		if share := float64(missed) / runs; share > 0.013 {
			t.Errorf("runs that differ by %g times the error: %.1f %% are outside", times,
				100*share)
		}
	}
}

func TestEstimateJudge(t *testing.T) {
	at := func(centre, err float64) Estimate {
		return Estimate{Centre: centre, Error: err, Freedom: 20, Pairs: 100, Epochs: 10}
	}
	for _, c := range []struct {
		name    string
		e       Estimate
		bias    float64
		higher  bool
		want    Verdict
		settled bool
	}{
		{"same", at(0, 0.005), 0, true, Same, true},
		{"same-but-not-for-a-look", at(0, 0.013), 0, true, Same, false},
		{"a-difference-that-does-not-matter", at(-0.015, 0.002), 0, true, Same, true},
		{"too-wide", at(0, 0.02), 0, true, Unclear, false},
		{"less-is-worse", at(-0.1, 0.01), 0, true, Worse, true},
		{"less-is-better", at(-0.1, 0.01), 0, false, Better, true},
		{"more-is-better", at(0.1, 0.01), 0, true, Better, true},
		{"more-is-worse", at(0.1, 0.01), 0, false, Worse, true},
		{"worse-but-not-for-a-look", at(-0.05, 0.015), 0, true, Worse, false},
		{"beyond-1-and-not-sure", at(-0.05, 0.02), 0, true, Unclear, false},
		{"not-beyond-the-bias", at(-0.05, 0.01), 0.03, true, Unclear, false},
		{"no-control", at(-0.1, 0.01), math.NaN(), true, Unclear, false},
		{"nothing", Estimate{}, 0, true, Unclear, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.e.Judge(c.bias, sameAs, c.higher); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if got := c.e.Settled(c.bias, sameAs, 0); got != c.settled {
				t.Errorf("settled: %t", got)
			}
			few := c.e
			few.Epochs = lookEpochs - 1
			if few.Settled(c.bias, sameAs, 1) {
				t.Error("settled after two epochs")
			}
		})
	}
}

func TestEstimateMoreAndOver(t *testing.T) {
	e := Estimate{Centre: math.Log(1.5), Error: 0.1, Freedom: 9, Pairs: 99, Epochs: 4}
	more := e.More(20)
	if math.Abs(more.Centre-10) > 1e-9 || math.Abs(more.Error-3) > 1e-9 || more.Freedom != 9 ||
		more.Pairs != 99 {
		t.Errorf("more %+v", more)
	}
	if far := (Estimate{Centre: 1e300, Error: 1e300, Freedom: 6, Pairs: 9}); math.IsInf(far.Ratio().High, 0) || math.IsInf(far.More(1e15).Centre, 0) {
		t.Errorf("not finite: %+v", far.Ratio())
	}
	if back := more.Over(20); math.Abs(back.Centre-e.Centre) > 1e-9 ||
		math.Abs(back.Error-e.Error) > 1e-9 {
		t.Errorf("back %+v", back)
	}
}

func TestSettledByPrecision(t *testing.T) {
	at := func(centre, err float64) Estimate {
		return Estimate{Centre: centre, Error: err, Freedom: 20, Pairs: 100, Epochs: 10}
	}
	for _, c := range []struct {
		name      string
		e         Estimate
		precision float64
		want      bool
	}{
		{"same-and-precise", at(0.009, 0.009), 0.02, true},
		{"same-and-not-precise", at(0, 0.013), 0.02, false},
		{"precise-and-unclear", at(-0.02, 0.009), 0.02, false},
		{"precise-and-less-but-not-for-a-look", at(-0.03, 0.009), 0.02, false},
		{"precise-enough-for-who-wants-no-more", at(-0.06, 0.03), 0.1, true},
		{"not-precise-enough-for-him", at(-0.06, 0.06), 0.1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.e.Settled(0, sameAs, c.precision); got != c.want {
				t.Errorf("settled: %t", got)
			}
		})
	}
}

func TestJudgeSame(t *testing.T) {
	at := func(low, high float64) Summary {
		return Summary{Median: (low + high) / 2, Low: low, High: high, N: 10}
	}
	few := at(0.5, 0.5)
	few.N = MinJudged - 1
	for _, c := range []struct {
		name  string
		ratio Summary
		floor float64
		want  Verdict
	}{
		{"within", at(0.98, 1.02), 0.5, Same},
		{"within-and-beyond-the-floor", at(0.975, 0.985), 0.01, Same},
		{"within-a-wide-floor-only", at(0.95, 1.05), 0.09, Unclear},
		{"beyond", at(0.8, 0.85), 0.1, Worse},
		{"above", at(1.2, 1.3), 0.1, Better},
		{"few", few, 0.1, Unclear},
		{"no-control", at(0.8, 0.85), math.NaN(), Unclear},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := JudgeSame(c.ratio, c.floor, sameAs, true); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

type table struct {
	simulated
	rows, epochs int
	truth        float64 // of every row
	stops        bool    // it ends when all rows are settled
}

// took is in epochs.
func (c table) run(rng *rand.Rand) (verdicts []Verdict, took int) {
	end := c.session / math.Sqrt(1.5) // the baseline's slices are those of two cells
	steady := c.simulated
	steady.state = 0 // the control changes state with the baseline
	rows, control := make([][]Epoch, c.rows), []Epoch{}
	for took < c.epochs {
		took++
		base, again := end*rng.NormFloat64(), end*rng.NormFloat64()
		control = append(control, steady.epoch(rng, again-base))
		for r := range rows {
			rows[r] = append(rows[r], c.epoch(rng,
				math.Log1p(c.truth)+end*rng.NormFloat64()-(base+again)/2))
		}
		if c.stops && took >= lookEpochs && c.settled(rows, control) {
			break
		}
	}
	all, bias := estimates(rows, control)
	for _, e := range all {
		verdicts = append(verdicts, e.Judge(bias, sameAs, true))
	}
	return verdicts, took
}

// Each row uses the prior of the other rows and the control; bias is the control's.
func estimates(rows [][]Epoch, control []Epoch) (out []Estimate, bias float64) {
	for r, row := range rows {
		others := slices.Delete(append(slices.Clone(rows), control), r, r+1)
		out = append(out, Moderate(row, Learn(Assumed, others)))
	}
	return out, Moderate(control, Learn(Assumed, rows)).Bias()
}

func (c table) settled(rows [][]Epoch, control []Epoch) bool {
	all, bias := estimates(rows, control)
	return !slices.ContainsFunc(all, func(e Estimate) bool {
		return !e.Settled(bias, sameAs, goodEnough)
	})
}

type shares struct {
	verdicts map[Verdict]float64
	differ   float64
	took     float64 // epochs, on average
}

func (c table) shares(seed uint64) shares {
	runs := *simulations
	rng := rand.New(rand.NewPCG(seed, 9))
	out := shares{verdicts: map[Verdict]float64{}}
	for range runs {
		verdicts, took := c.run(rng)
		out.took += float64(took) / float64(runs)
		differs := 0.0
		for _, v := range verdicts {
			out.verdicts[v] += 1 / float64(runs*c.rows)
			if v == Better || v == Worse {
				differs = 1 / float64(runs)
			}
		}
		out.differ += differs
	}
	return out
}

func (s shares) String() string {
	return fmt.Sprintf("| %.1f | %.1f | %.1f | %.1f | %.1f | %.1f |", 100*s.verdicts[Same],
		100*s.verdicts[Worse], 100*s.verdicts[Better],
		100*s.verdicts[Unclear], 100*s.differ, s.took)
}

// docs/method.md has these figures.
func TestVerdictsOfSimulatedRuns(t *testing.T) {
	t.Parallel()
	with := func(slices int, change ...func(*simulated)) simulated {
		s := typical
		s.slices = slices
		for _, f := range change {
			f(&s)
		}
		return s
	}
	twice := func(s *simulated) { s.session *= 2 }
	heavy := func(s *simulated) { s.heavy = true }
	other := func(s *simulated) { s.state = 0.5 } // two thirds more
	for i, c := range []struct {
		name  string
		table table
		check func(shares) bool
	}{
		{"two rows, 20 s: equal", table{with(60), 2, 8, 0, false}, func(s shares) bool {
			return s.verdicts[Same] >= 0.95 && s.differ <= 0.01
		}},
		{"two rows, 30 s: 3 % less", table{with(60), 2, 12, -0.03, false}, func(s shares) bool {
			return s.verdicts[Worse] >= 0.90 && s.verdicts[Better] == 0
		}},
		{"seven rows, 60 s: equal", table{with(13), 7, 13, 0, false}, func(s shares) bool {
			return s.differ <= 0.04
		}},
		{"seven rows, 60 s: 1 % less", table{with(13), 7, 13, -0.01, false}, nil},
		{"seven rows, 60 s: 2 % less", table{with(13), 7, 13, -0.02, false}, nil},
		{"seven rows, 60 s: 3 % less", table{with(13), 7, 13, -0.03, false}, func(s shares) bool {
			return s.verdicts[Same] <= 0.05
		}},
		{"seven rows, 60 s: 5 % less", table{with(13), 7, 13, -0.05, false}, func(s shares) bool {
			return s.verdicts[Worse] >= 0.85 && s.verdicts[Same] <= 0.001
		}},
		{"40 slices: equal", table{with(40), 7, 13, 0, false}, func(s shares) bool {
			return s.verdicts[Same] >= 0.95 && s.differ <= 0.02
		}},
		{"40 slices: 1 % less", table{with(40), 7, 13, -0.01, false}, nil},
		{"40 slices: 2 % less", table{with(40), 7, 13, -0.02, false}, nil},
		{"40 slices: 3 % less", table{with(40), 7, 13, -0.03, false}, func(s shares) bool {
			return s.verdicts[Same] <= 0.05
		}},
		{"40 slices: 5 % less", table{with(40), 7, 13, -0.05, false}, func(s shares) bool {
			return s.verdicts[Worse] >= 0.99
		}},
		{"eight rows, looks: equal", table{with(40), 8, 25, 0, true}, func(s shares) bool {
			return s.differ <= 0.02 && s.verdicts[Same] >= 0.95 && s.took < 12
		}},
		{"eight rows, looks: equal, epochs differ twice as much",
			table{with(40, twice), 8, 25, 0, true}, func(s shares) bool {
				return s.differ <= 0.02 && s.verdicts[Same] >= 0.95
			}},
		{"eight rows, looks: equal, heavy tails", table{with(13, heavy), 8, 25, 0, true},
			func(s shares) bool {
				return s.differ <= 0.05
			}},
		{"eight rows, looks: equal, slowed slices", table{with(40, func(s *simulated) {
			s.slowed = true
		}), 8, 25, 0, true}, func(s shares) bool { return s.differ <= 0.02 }},
		{"40 slices: equal, another state", table{with(40, other), 7, 13, 0, false},
			func(s shares) bool {
				return s.verdicts[Better]+s.verdicts[Worse] <= 0.03 && s.verdicts[Same] >= 0.7
			}},
		{"40 slices: 10 % less, another state", table{with(40, other), 7, 13, -0.10, false},
			func(s shares) bool {
				return s.verdicts[Worse] >= 0.7 && s.verdicts[Same]+s.verdicts[Better] <= 0.01
			}},
		{"eight rows, looks: 3 % less", table{with(40), 8, 25, -0.03, true}, func(s shares) bool {
			return s.verdicts[Worse] >= 0.9
		}},
		{"eight rows, looks: 10 % less", table{with(40), 8, 25, -0.10, true}, func(s shares) bool {
			return s.verdicts[Worse] >= 0.99 && s.took < 8
		}},
	} {
		if c.check == nil && !testing.Verbose() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := c.table.shares(uint64(i))
			t.Logf("| %s %s", c.name, got)
			if c.check != nil && !c.check(got) {
				t.Errorf("%s: %s", c.name, got)
			}
		})
	}
}
