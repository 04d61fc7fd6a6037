package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mathext"
)

type group struct {
	simulated
	rows    int
	history Prior
	odd     func(*simulated) // changes the first row; may be nil
}

// All ratios are 1, the control is last, and all rows of an epoch share one baseline.
func (g group) epochs(rng *rand.Rand, n int) [][]Epoch {
	rows := make([][]Epoch, g.rows+1)
	const shared = 1.5 // the baseline's slices are those of two cells
	for range n {
		end := g.session / math.Sqrt(shared)
		base, again := end*rng.NormFloat64(), end*rng.NormFloat64()
		for r := range g.rows {
			s := g.simulated
			if r == 0 && g.odd != nil {
				g.odd(&s)
			}
			off := s.session / math.Sqrt(shared) * rng.NormFloat64()
			rows[r] = append(rows[r], s.epoch(rng, off-(base+again)/2))
		}
		rows[g.rows] = append(rows[g.rows], g.epoch(rng, again-base))
	}
	return rows
}

type tally struct{ rows, covered, half, before float64 }

func (c *tally) add(row []Epoch, p Prior) {
	low, high := Moderate(row, p).Interval(Confidence)
	c.rows++
	c.half += (high - low) / 2
	if low <= 0 && 0 <= high {
		c.covered++
	}
	low, high = Moderate(row, Assumed).Interval(Confidence)
	c.before += (high - low) / 2
}

func (g group) learn(rng *rand.Rand, epochs int) (usual, odd tally) {
	const runs = 200
	for range runs {
		rows := g.epochs(rng, epochs)
		for r := range g.rows {
			p := Learn(g.history, append(append([][]Epoch{}, rows[:r]...), rows[r+1:]...))
			if r == 0 && g.odd != nil {
				odd.add(rows[r], p)
			} else {
				usual.add(rows[r], p)
			}
		}
	}
	return usual, odd
}

// The interval must cover the truth in about 95 % of the rows, and be narrower where epochs differ
// less than is assumed. docs/method.md has these figures.
func TestLearnedIntervalCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 7))
	quiet := simulated{session: 0.003, slice: 0.04, slices: 40} // like most machines
	with := func(change func(*simulated)) simulated {
		s := quiet
		change(&s)
		return s
	}
	assumed, noisy := func(s *simulated) {
		s.session = priorSD
	}, func(s *simulated) { s.session = 0.03 }
	bad := func(s *simulated) { s.session = 0.05 }
	learned := Prior{0.003 * 0.003, 12}
	for _, c := range []struct {
		name string
		group
		first, least, odd float64 // shares of the rows: of two epochs, of more, of the odd row
		// largest width of five epochs' intervals, relative to the prior's
		gain float64
	}{
		{"epochs hardly differ", group{quiet, 7, Assumed, nil}, 0.95, 0.93, 0, 0.95},
		{"the same, two rows", group{quiet, 2, Assumed, nil}, 0.95, 0.93, 0, 0.98},
		{"the same, with a history", group{quiet, 2, learned, nil}, 0.93, 0.92, 0, 0.92},
		{"as assumed", group{with(assumed), 7, Assumed, nil}, 0.93, 0.93, 0, 1.02},
		{"epochs differ by 3 %", group{with(noisy), 7, Assumed, nil}, 0.77, 0.92, 0, 1.5},
		{"the same, two rows", group{with(noisy), 2, Assumed, nil}, 0.77, 0.89, 0, 1.5},
		{"a history of a quieter machine", group{with(assumed), 7, learned, nil}, 0.88, 0.92, 0, 1},
		{"the same, two rows", group{with(assumed), 2, learned, nil}, 0.88, 0.91, 0, 1},
		{"a history of a noisier machine", group{quiet, 7, Prior{0.03 * 0.03, 12}, nil}, 0.95, 0.93,
			0, 0.95},
		{"one row differs by 5 %", group{quiet, 7, Assumed, bad}, 0.95, 0.93, 0.8, 0.97},
		{"one row of two does", group{quiet, 2, Assumed, bad}, 0.95, 0.93, 0.73, 1.4},
		{"one row is noisier", group{quiet, 7, Assumed, func(s *simulated) {
			s.slice *= 4
		}}, 0.95, 0.93, 0.9, 0.96},
		{"one row has two states", group{quiet, 7, Assumed, func(s *simulated) {
			s.state = 0.5
		}}, 0.95, 0.93, 0.9, 0.96},
		{"one slice in five is 3.5 times as noisy", group{with(func(s *simulated) {
			s.heavy = true
		}), 7, Assumed, nil}, 0.95, 0.93, 0, 0.97},
		{"one slice in four is slower by a third", group{with(func(s *simulated) {
			s.slowed = true
		}), 7, Assumed, nil}, 0.95, 0.93, 0, 0.98},
		{"each slice is the partner of two", group{with(func(s *simulated) {
			s.shared = true
		}), 7, Assumed, nil}, 0.95, 0.93, 0, 0.96},
		{"five slices in an epoch", group{with(func(s *simulated) {
			s.slices = 5
		}), 7, Assumed, nil}, 0.95, 0.93, 0, 1.01},
	} {
		text := ""
		for _, k := range []int{2, 5, 12} {
			usual, odd := c.learn(rng, k)
			share, half, before := usual.covered/usual.rows, usual.half/usual.rows,
				usual.before/usual.rows
			text += fmt.Sprintf(" | %.0f %%, ±%.2f %% (±%.2f %%)", 100*share, 100*half, 100*before)
			least := c.least
			if k == 2 {
				least = c.first
			}
			if share < least || k == 12 && share > 0.995 {
				t.Errorf("%s: of %d epochs the interval covers the truth in %.1f %% of the rows",
					c.name, k, 100*share)
			}
			if k == 5 && half > c.gain*before {
				t.Errorf("%s: of %d epochs the interval is %.2f times as wide as without learning",
					c.name, k, half/before)
			}
			if odd.rows == 0 {
				continue
			}
			share = odd.covered / odd.rows
			text += fmt.Sprintf(", the odd row %.0f %%", 100*share)
			if k > 2 && share < c.odd {
				t.Errorf(
					"%s: of %d epochs the interval of the odd row covers the truth in %.1f "+
						"%% of the runs", c.name, k, 100*share)
			}
		}
		t.Logf("%s%s", c.name, text)
	}
}

func TestPolygamma(t *testing.T) {
	for x := 1e-3; x < 1e4; x *= 1.07 {
		for name, f := range map[string][2]float64{"trigamma": {trigamma(x), mathext.Zeta(2, x)},
			"tetragamma": {tetragamma(x), -2 * mathext.Zeta(3, x)}} {
			if math.Abs(f[0]/f[1]-1) > 1e-12 {
				t.Errorf("%s(%g) = %g, want %g", name, x, f[0], f[1])
			}
		}
		if got := inverseTrigamma(trigamma(x)); x > 0.1 && math.Abs(got/x-1) > 1e-6 {
			t.Errorf("the inverse of trigamma(%g) is %g", x, got)
		}
	}
	if x := trigamma(-1) + tetragamma(0); !math.IsNaN(x) {
		t.Errorf("below 0: %g", x)
	}
}
