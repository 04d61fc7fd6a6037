package truth

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
)

func near(t *testing.T, what string, got, want, by float64) {
	t.Helper()
	if !(math.Abs(got-want) <= by) {
		t.Errorf("%s: got %v, want %v ± %v", what, got, want, by)
	}
}

func ratio(low, median, high float64) *analysis.Ratio {
	return &analysis.Ratio{Low: low, Median: median, High: high, N: 10}
}

func TestOfRatio(t *testing.T) {
	e, err := ofRatio(ratio(0.9, 0.95, 0.96))
	if err != nil {
		t.Fatal(err)
	}
	near(t, "log", e.at, math.Log(0.95), 1e-12)
	near(t, "half", e.half, math.Log(0.95/0.9), 1e-12) // the farther end
	if got := e.String(); got != "0.950 ±5.6 %" {
		t.Errorf("got %q", got)
	}
	for name, r := range map[string]*analysis.Ratio{
		"none":       nil,
		"no-width":   ratio(1, 1, 1),
		"negative":   ratio(-0.1, 1, 1.1),
		"nan":        ratio(math.NaN(), 1, 1.1),
		"infinite":   ratio(0.9, 1, math.Inf(1)),
		"inside-out": ratio(1.1, 1, 0.9),
	} {
		if e, err := ofRatio(r); err == nil {
			t.Errorf("%s: got %v and no error", name, e)
		}
	}
}

func TestOfLogs(t *testing.T) {
	if _, err := ofLogs([]float64{0.1, 0.1, 0.2}); err == nil {
		t.Error("three are no interval")
	}
	e, err := ofLogs([]float64{-0.1, -0.05, -0.02, 0, 0.02, 0.05, 0.1})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "log", e.at, 0, 1e-12)
	if !(e.half > 0.01 && e.half <= 0.1) {
		t.Errorf("half %v", e.half)
	}
}

func TestPool(t *testing.T) {
	e := mean([]estimate{{0.02, 0.04}, {0.04, 0.04}, {0.03, 0.04}, {0.03, 0.04}})
	near(t, "log", e.at, 0.03, 1e-12)
	near(t, "half", e.half, 0.02, 1e-12)
}

func TestAgreement(t *testing.T) {
	for _, c := range []struct {
		name       string
		a, b       estimate
		tests      int
		limit      float64
		want       verdict
		half, size float64
	}{
		{"same", estimate{-0.05, 0.01}, estimate{-0.05, 0.01}, 1, 0.05, yes, 0.01414, 0},
		{"within", estimate{-0.05, 0.01}, estimate{-0.06, 0.01}, 1, 0.05, yes, 0.01414, 0.01},
		{"apart", estimate{-0.05, 0.01}, estimate{-0.07, 0.01}, 1, 0.05, no, 0.01414, 0.02},
		{"apart-alone-but-one-of-ten", estimate{-0.05, 0.01}, estimate{-0.07, 0.01}, 10, 0.05, yes,
			0.02025, 0.02},
		{"cannot-tell", estimate{-0.05, 0.01}, estimate{-0.05, 0.06}, 1, 0.05, tooWide, 0.06083, 0},
		{"apart-however-wide", estimate{-0.05, 0.01}, estimate{-0.5, 0.06}, 1, 0.05, no, 0.06083,
			0.45},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, v := agreement(c.a.over(c.b), c.tests, c.limit)
			if v != c.want {
				t.Errorf("got %q, want %q", v, c.want)
			}
			near(t, "half", got.half, c.half, 1e-4)
			near(t, "log", got.at, c.size, 1e-12)
		})
	}
}

func TestAgreementIsJoint(t *testing.T) {
	const tables, rows, se = 2000, 10, 0.005
	rng := rand.New(rand.NewPCG(1, 2))
	draw := func() estimate { return estimate{rng.NormFloat64() * se, 1.95996 * se} }
	bad := 0
	for range tables {
		for range rows { // each row has its own partner: the worst case
			if _, v := agreement(draw().over(draw()), rows, narrow); v != yes {
				bad++
				break
			}
		}
	}
	near(t, "false alarms", float64(bad)/tables, 0.05, 0.015)
}

func TestQuantile(t *testing.T) {
	near(t, "97.5 %", quantile(0.975), 1.959964, 1e-6)
	near(t, "99.75 %", quantile(0.9975), 2.807034, 1e-6)
}

func TestLeast(t *testing.T) {
	for _, c := range []struct{ n, want int }{{0, 0}, {1, 0}, {3, 1}, {4, 2}, {20, 16}, {40, 34}} {
		got := least(c.n, 0.95, missRisk)
		if got != c.want {
			t.Errorf("of %d: got %d, want %d", c.n, got, c.want)
		}
		below := 0.0
		for k := range got {
			below += binomial(c.n, k, 0.95)
		}
		if below > missRisk || c.n > 0 && got < c.n && below+binomial(c.n, got, 0.95) <= missRisk {
			t.Errorf("of %d: fewer than %d have the probability %v", c.n, got, below)
		}
	}
	sum := 0.0
	for k := range 21 {
		sum += binomial(20, k, 0.9)
	}
	near(t, "sum", sum, 1, 1e-9)
}
