package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The defaults were measured on real slices.
type simulated struct {
	session float64 // standard deviation from epoch to epoch
	slice   float64 // standard deviation of a slice's logarithm
	slices  int     // per epoch
	heavy   bool    // one slice in five is several times as noisy
	shared  bool    // each slice of the baseline is the partner of two
	bursts  bool    // three epochs in ten are three times as noisy
	slowed  bool    // one slice in four is slower by a third
	state   float64 // shift of the logarithm in one epoch of four
}

var typical = simulated{session: priorSD, slice: 0.075, slices: 40}

func (s simulated) epoch(rng *rand.Rand, truth float64) Epoch {
	sd := s.slice
	if s.bursts && rng.Float64() < 0.3 {
		sd *= 3
	}
	if s.state != 0 && rng.Float64() < 0.25 {
		truth += s.state
	}
	slice := func() float64 {
		if s.heavy && rng.Float64() < 0.2 {
			return 3.5 * sd * rng.NormFloat64()
		}
		if s.slowed && rng.Float64() < 0.25 {
			return math.Log(0.67) + sd*rng.NormFloat64()
		}
		return sd * rng.NormFloat64()
	}
	var values []float64
	before := slice()
	for range s.slices {
		own, after := truth+slice(), slice()
		values = append(values, own-before, own-after)
		before = after
		if !s.shared {
			before = slice()
		}
	}
	// The variance of the mean of all pairs, relative to a slice's, is 1/n + 1/2n, or 2/n if
	// partners are shared. A pair has twice a slice's variance.
	worth := 4.0 / 3 * float64(s.slices)
	if s.shared {
		worth = float64(s.slices)
	}
	return NewEpoch(values, worth)
}

// The interval must cover the truth in about 95 % of runs, and in nearly as many if the assumed
// deviation between epochs is wrong.
func TestModeratedIntervalCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	epochs := []int{1, 2, 3, 5, 12, 25}
	for _, c := range []struct {
		name   string
		change func(*simulated)
		least  float64 // share of the runs
	}{
		{"as-assumed", func(*simulated) {}, 0.93},
		{"epochs-differ-twice-as-much", func(s *simulated) { s.session *= 2 }, 0.88},
		{"epochs-differ-half-as-much", func(s *simulated) { s.session /= 2 }, 0.93},
		{"heavy-tails", func(s *simulated) { s.heavy = true }, 0.93},
		{"shared-partners", func(s *simulated) { s.shared = true }, 0.93},
		{"noisy-epochs", func(s *simulated) { s.bursts = true }, 0.93},
		{"slowed-slices", func(s *simulated) { s.slowed = true }, 0.93},
		{"few-slices", func(s *simulated) { s.slices = 5 }, 0.87},
	} {
		s := typical
		c.change(&s)
		text := ""
		for _, k := range epochs {
			const runs = 400
			covered, half := 0, 0.0
			for range runs {
				es := make([]Epoch, k)
				for i := range es {
					es[i] = s.epoch(rng, s.session*rng.NormFloat64())
				}
				low, high := Moderate(es, Assumed).Interval(Confidence)
				half += (high - low) / 2 / runs
				if low <= 0 && 0 <= high {
					covered++
				}
			}
			share := float64(covered) / runs
			text += fmt.Sprintf(" | %.0f %%, ±%.1f %%", 100*share, 100*half)
			if share < c.least {
				t.Errorf("%s: of %d epochs the interval covers the truth in %.1f %% of runs",
					c.name, k, 100*share)
			}
			if k == epochs[len(epochs)-1] && share > 0.995 {
				t.Errorf("%s: of %d epochs the interval is too wide: it always covers the truth",
					c.name, k)
			}
		}
		t.Logf("%s%s", c.name, text)
	}
}

func TestAnotherStateIsSetAside(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 1))
	for _, c := range []struct {
		name  string
		off   float64
		share int // one epoch in this many
	}{
		{"two thirds more", 0.5, 3},
		{"a quarter less", -0.29, 4},
	} {
		text := ""
		for _, k := range []int{6, 12, 25} {
			const runs = 300
			covered, half, quiet := 0, 0.0, 0.0
			for range runs {
				var es, usual []Epoch
				for i := range k {
					e := typical.epoch(rng, typical.session*rng.NormFloat64())
					usual = append(usual, e)
					if i%c.share == 1 {
						e.Centre += c.off
					}
					es = append(es, e)
				}
				low, high := Moderate(es, Assumed).Interval(Confidence)
				half += (high - low) / 2 / runs
				if low <= 0 && 0 <= high {
					covered++
				}
				low, high = Moderate(usual, Assumed).Interval(Confidence)
				quiet += (high - low) / 2 / runs
			}
			share := float64(covered) / runs
			text += fmt.Sprintf(" | %.0f %%, ±%.1f %%", 100*share, 100*half)
			if share < 0.91 || half > 2*quiet {
				t.Errorf(
					"%s: of %d epochs the interval covers the usual state's ratio in %.1f %% of "+
						"runs, and is ±%.3f, of a steady machine ±%.3f",
					c.name, k, 100*share, half, quiet)
			}
		}
		t.Logf("%s%s", c.name, text)
	}
}

func TestFewEpochsAreSetAside(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 2))
	for _, c := range []struct {
		name   string
		change func(*simulated)
		most   float64 // share of the runs that set any aside
	}{
		{"as-assumed", func(*simulated) {}, 0.006},
		{"epochs-differ-twice-as-much", func(s *simulated) { s.session *= 2 }, 0.015},
		{"heavy-tails", func(s *simulated) { s.heavy = true }, 0.004},
		{"noisy-epochs", func(s *simulated) { s.bursts = true }, 0.005},
		{"few-slices", func(s *simulated) { s.slices = 5 }, 0.02},
	} {
		s := typical
		c.change(&s)
		any := 0.0
		const runs = 3000
		for i := range runs {
			es := make([]Epoch, []int{3, 6, 12}[i%3])
			for i := range es {
				es[i] = s.epoch(rng, s.session*rng.NormFloat64())
			}
			if which, _ := Aside(es); slices.Contains(which, true) {
				any += 1.0 / runs
			}
		}
		t.Logf("%s: %.2f %%", c.name, 100*any)
		if any > c.most {
			t.Errorf("%s: %.2f %% of the runs set epochs aside", c.name, 100*any)
		}
	}
	at := func(centres ...float64) (out []Epoch) {
		for _, c := range centres {
			out = append(out, Epoch{Centre: c, Spread: 0.05, N: 50, Worth: 50})
		}
		return out
	}
	for _, tt := range []struct {
		name string
		es   []Epoch
		want []bool
		out  bool
	}{
		{"one-of-six", at(0, 0.01, 0.7, 0, -0.01, 0),
			[]bool{false, false, true, false, false, false}, true},
		{"half", at(0, 0.7, 0, 0.7, 0, 0.7), []bool{false, true, false, true, false, true}, false},
		{"too-few-left", at(0, 0.7, 0, 0), []bool{false, true, false, false}, false},
		{"two-that-agree", at(0, 0.03), make([]bool, 2), false},
		{"one", at(0.5), make([]bool, 1), false},
		{"none-has-pairs", []Epoch{{}, {}}, make([]bool, 2), false},
		{"nothing", nil, []bool{}, false},
	} {
		if got, out := Aside(tt.es); !slices.Equal(got, tt.want) || out != tt.out {
			t.Errorf("%s: %v, left out: %t", tt.name, got, out)
		}
	}
}

func TestModerate(t *testing.T) {
	var es []Epoch
	for _, c := range []float64{0.01, 0.02, 0.06} {
		es = append(es, Epoch{Centre: c, Spread: 0.08, N: 50, Worth: 50})
	}
	e := Moderate(es, Assumed)
	within := priorSD*priorSD + math.Pi/2*0.08*0.08/50
	s2 := 0.0007
	tau := math.Sqrt((priorWeight*within + 2*s2) / (priorWeight + 2))
	if math.Abs(e.Centre-0.03) > 1e-12 || math.Abs(e.Error-tau/math.Sqrt(3)) > 1e-12 ||
		e.Freedom != priorWeight+2 || e.Pairs != 150 || e.Epochs != 3 {
		t.Errorf("%+v, want an error of %g", e, tau/math.Sqrt(3))
	}
}

func TestModerateWeighs(t *testing.T) {
	es := []Epoch{{Centre: 0, Spread: 0.1, N: 50, Worth: 50},
		{Centre: 0.1, Spread: 0.1, N: 2, Worth: 2}}
	if e := Moderate(es, Assumed); !(e.Centre > 0 && e.Centre < 0.02) {
		t.Errorf("few pairs: %+v", e)
	}
	es[1] = Epoch{Centre: 0.1, Spread: 1, N: 50, Worth: 50}
	if e := Moderate(es, Assumed); !(e.Centre > 0 && e.Centre < 0.03) {
		t.Errorf("a noisy epoch: %+v", e)
	}
}

func TestModerateOfTooLittle(t *testing.T) {
	for name, es := range map[string][]Epoch{
		"nothing":      nil,
		"no pairs":     {NewEpoch(nil, 0), NewEpoch(nil, 0)},
		"seven pairs":  {NewEpoch([]float64{0, 0.1, 0.2, 0, 0.1, 0.2, 0}, 3)},
		"single pairs": slices.Repeat([]Epoch{NewEpoch([]float64{0}, 1)}, 9),
	} {
		if e := Moderate(es, Assumed); e != (Estimate{}) {
			t.Errorf("%s: %+v", name, e)
		}
	}
	some := []Epoch{NewEpoch([]float64{0, 0.1, 0.2, 0.1, 0, 0.1, 0.2, 0.1}, 4)}
	if a, b := Moderate(some, Assumed), Moderate(append(some, NewEpoch(nil, 0)), Assumed); a.Pairs != 8 || a != b {
		t.Errorf("an epoch without pairs makes %+v of %+v", b, a)
	}
	if e := Moderate([]Epoch{NewEpoch(make([]float64, 9), 9)}, Prior{0, 6}); e != (Estimate{}) {
		t.Errorf("without noise and prior: %+v", e)
	}
}

// quantiles from tables, two-sided 95 and 99.9 %
func TestStudent(t *testing.T) {
	for _, c := range []struct{ p, freedom, want float64 }{
		{0.975, 1, 12.706}, {0.975, 6, 2.447}, {0.975, 30, 2.042}, {0.9995, 6, 5.959},
		{0.9995, 1000, 3.300},
	} {
		if got := Student(c.p, c.freedom); math.Abs(got-c.want) > 0.001 {
			t.Errorf("t(%g, %g) = %.4f, want %.3f", c.p, c.freedom, got, c.want)
		}
	}
}

func TestEpochSpread(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, n := range []int{2, 3, 4, 7, 9, 10, 25} {
		const runs = 4000
		sum := 0.0
		for range runs {
			values := make([]float64, n)
			for i := range values {
				values[i] = 5 + rng.NormFloat64()
			}
			sum += NewEpoch(values, float64(n)).Spread / runs
		}
		if math.Abs(sum-1) > 0.05 {
			t.Errorf("of %d values with a standard deviation of 1: %.3f on average", n, sum)
		}
	}
}

func TestEstimatesAdd(t *testing.T) {
	a := Estimate{Centre: 2, Error: 3, Freedom: 10, Pairs: 50, Epochs: 5}
	b := Estimate{Centre: 1, Error: 2, Freedom: 8, Pairs: 60, Epochs: 4}
	got := a.Plus(b.Times(-2))
	freedom := 625 / (81.0/10 + 256.0/8)
	if math.Abs(got.Freedom-freedom) > 1e-9 {
		t.Errorf("%g degrees of freedom, want %g", got.Freedom, freedom)
	}
	if got.Freedom = 0; got != (Estimate{Centre: 0, Error: 5, Pairs: 50, Epochs: 4}) {
		t.Errorf("%+v", got)
	}
	if same := a.Plus(Estimate{Freedom: 2}); same.Error != 3 || math.Abs(same.Freedom-10) > 1e-9 {
		t.Errorf("what is known exactly changes %+v to %+v", a, same)
	}
}

func TestMeanHalf(t *testing.T) {
	// The standard deviation, 6.099, by the root of 5, times 2.7764.
	if got := MeanHalf([]float64{1, 2, 4, 8, 16}); math.Abs(got-7.5731) > 0.0001 {
		t.Errorf("got %g", got)
	}
	if got := MeanHalf([]float64{1, 2, 4, 8}); got != 0 {
		t.Errorf("too few: got %g", got)
	}
}
