package analysis_test

import (
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

// A row's level is the baseline's median plus what the row adds, or times its ratio, although its
// own median may be another.
func TestLevelsAgree(t *testing.T) {
	r := newSlicedRun(t, append(four(workload.Bulk), four(workload.RR)...)...)
	report := analysis.Judge(r.epochs(6, 40, 40, 40, 30, 50, 50, 50, 58).File)
	base := map[string]float64{}
	for _, c := range report.Cells {
		if m := c.Metrics[c.Primary]; c.Baseline {
			base[c.Load] = m.Median
			if m.Shown() != m.Median {
				t.Errorf("the baseline of %s shows %g, its median is %g", c.Load, m.Shown(),
					m.Median)
			}
		}
	}
	other := false
	for _, c := range report.Cells {
		m := c.Metrics[c.Primary]
		if c.Baseline {
			continue
		}
		want := base[c.Load] * m.Ratio.Median
		if m.Price != nil {
			want = base[c.Load] + m.Price.Median
		}
		if !judgetest.Near(m.Shown(), want) {
			t.Errorf("%s %s shows %g, not %g", c.Label(), c.Load, m.Shown(), want)
		}
		other = other || !judgetest.Near(m.Shown(), m.Median)
	}
	if !other {
		t.Error("each median agrees with its difference by itself")
	}
}

func TestEven(t *testing.T) {
	for want, r := range map[string]analysis.Ratio{
		"95 ±2":               {Median: 0.95, Low: 0.93, High: 0.96, N: 9},
		"118 ±17":             {Median: 1.18, Low: 1.03, High: 1.35, N: 9},
		"12.2× ±0.3":          {Median: 12.2, Low: 11.9, High: 12.4, N: 9},
		"0.100 ±0.010":        {Median: 0.001, Low: 0.0009, High: 0.00105, N: 9},
		"100.0 ±0.1":          {Median: 1, Low: 0.999, High: 1.001, N: 9},
		"227 (208–700)":       {Median: 2.27, Low: 2.08, High: 7, N: 9},
		"104.0 (100.3–109.0)": {Median: 1.04, Low: 1.003, High: 1.09, N: 9},
		"60 (20–90)":          {Median: 0.6, Low: 0.2, High: 0.9, N: 9},
		"82 ±21":              {Median: 0.82, Low: 0.61, High: 0.92, N: 9, Verdict: stats.Unclear},
		"86 ±?":               {Median: 0.86, Low: 0.86, High: 0.86, N: 1},
		"0.05–5.2":            {Median: 0.02, Low: 0.0005, High: 0.052, N: 9, Varies: true},
	} {
		if got := r.Even(); got != want {
			t.Errorf("%+v: %q, want %q", r, got, want)
		}
	}
	for want, p := range map[string]analysis.Price{
		"-3.3 ±1.3":           {Unit: "s", Median: -3.3e-6, Low: -4.6e-6, High: -2e-6, N: 9},
		"+3.8 ±1.7":           {Unit: "s", Median: 3.8e-6, Low: 2.2e-6, High: 5.5e-6, N: 9},
		"+0.8 (0.7–4.2)":      {Unit: "s", Median: 0.815e-6, Low: 0.7e-6, High: 4.198e-6, N: 9},
		"-3.0 (-9.0 to -1.0)": {Unit: "s", Median: -3e-6, Low: -9e-6, High: -1e-6, N: 9},
		"+0 ±2":               {Unit: "s", Median: -0.1e-6, Low: -2e-6, High: 2e-6, N: 9},
		"+2.0 ±?":             {Unit: "s", Median: 2e-6, Low: 2e-6, High: 2e-6, N: 1},
		"+0.5–41":             {Unit: "s", Median: 5e-6, Low: 0.5e-6, High: 41e-6, N: 9, Varies: true},
	} {
		if got := p.Even("µs"); got != want {
			t.Errorf("%+v: %q, want %q", p, got, want)
		}
	}
	if got := (analysis.Price{Unit: "s", Median: 0.0018, Low: 0.0014, High: 0.002, N: 9}).Even(
		"ms"); got != "+1.8 ±0.4" {
		t.Errorf("in ms: %q", got)
	}
}

func TestMark(t *testing.T) {
	for _, tt := range []struct {
		r    analysis.Ratio
		want string
	}{
		{analysis.Ratio{Verdict: stats.Better, N: 9}, ""},
		{analysis.Ratio{Verdict: stats.Worse, N: 9}, ""},
		{analysis.Ratio{Verdict: stats.Same, N: 9}, "="},
		{analysis.Ratio{Verdict: stats.Unclear, N: 9}, "?"},
		{analysis.Ratio{Verdict: stats.Nothing, N: 9}, "="},
		{analysis.Ratio{Verdict: stats.Unclear, N: 1}, ""},
		{analysis.Ratio{Verdict: stats.Unclear, Varies: true}, "~"},
		{analysis.Ratio{Verdict: stats.Worse, Varies: true}, ""},
	} {
		if got := tt.r.Mark(); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.r, got, tt.want)
		}
	}
}

func TestPricesInMilliseconds(t *testing.T) {
	p := analysis.Price{Unit: "s", Median: -2e-5, Low: -4e-4, High: 1.8e-3, N: 6, Verdict: stats.Unclear}
	if got := p.Plain(); got != "+0.0 ms (-0.4 to +1.8)" {
		t.Errorf("%q", got)
	}
	if got := p.Fitting(); got != "+0.0 ±1.8 ms ?" {
		t.Errorf("%q", got)
	}
	if p.N = 1; !strings.HasSuffix(p.Fitting(), " µs") {
		t.Errorf("%q", p.Fitting())
	}
}
