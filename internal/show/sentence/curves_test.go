package sentence

import (
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/sweep"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

func sweptPlan() analysis.Plan {
	p := analysis.Plan{Baseline: "host", Same: 0.03, Sweep: &sample.Sweep{Axis: "request"},
		Loads: []sample.Load{{Kind: workload.RR}}}
	for i, name := range []string{"1", "2", "3", "4", "5"} {
		p.Sweep.Points = append(p.Sweep.Points, sample.Point{Name: name, Value: float64(i + 1)})
	}
	return p
}

func TestWordsOfKnees(t *testing.T) {
	bands := map[rune]analysis.Band{'c': analysis.Beyond, 'w': analysis.Within,
		'?': analysis.Unknown}
	p := sweptPlan()
	for points, want := range map[string]string{
		"ccccc": "at every request size",
		"cc?cc": "at every request size (unclear at 3 B)",
		"wwwww": "at none",
		"wwccc": "from between 2 B and 3 B up",
		"w?c?c": "from between 1 B and 3 B up (unclear at 2 B and 4 B)",
		"??ccc": "at 3 B, 4 B and 5 B (unclear at 1 B and 2 B)",
		"ccwww": "up to between 2 B and 3 B",
		"?cw?w": "up to between 2 B and 3 B (unclear at 1 B and 4 B)",
		"cc???": "at 1 B and 2 B (unclear at 3 B, 4 B and 5 B)",
		"cwcww": "at 1 B and 3 B, not at 2 B, 4 B and 5 B",
		"wcw?w": "at 2 B, not at 1 B, 3 B and 5 B (unclear at 4 B)",
		"ww???": "not at 1 B and 2 B, unclear at 3 B, 4 B and 5 B",
		"?????": "unclear",
	} {
		var at []sweep.Point
		for i, b := range points {
			at = append(at, sweep.Point{Point: p.Sweep.Points[i].Name, Band: bands[b]})
		}
		if got := kneeWords(p, sweep.KneeOf(at)); got != want {
			t.Errorf("%s: %q, want %q", points, got, want)
		}
	}
}

func TestTemplatesOfCurves(t *testing.T) {
	of := func(label string, k sweep.Knee) sweep.Curve {
		return sweep.Curve{Label: label, Load: workload.RR, Metric: workload.LatencyP50,
			Points: []sweep.Point{{Point: "1"}}, Knee: k}
	}
	r := &sweep.Report{Curves: []sweep.Curve{of("a", sweep.Knee{Shape: sweep.None}),
		of("b", sweep.Knee{Shape: sweep.Every}), of("c", sweep.Knee{Shape: sweep.None})},
		OverIPv4: []sweep.Curve{of("b :ctr6", sweep.Knee{Shape: sweep.Unclear})}}
	r.Study, r.Plan = sample.StudySweep, sweptPlan()
	for _, tt := range []struct {
		code, want string
		rows       []int
	}{
		{sweep.KneesOverIPv4, "IPv6: Median latency more than 3 % above IPv4's: unclear: b :ctr6.",
			[]int{0}},
		{sweep.Knees, "Median latency more than 3 % above host's: at every request " +
			"size: b; at none: " +
			"a, c.", []int{0, 1, 2}},
		{sweep.NoCurve, "There is no result other than host's: nothing to compare.", nil},
	} {
		r.Found = []analysis.Finding{{Code: tt.code, Rows: tt.rows}, {Code: sweep.Meaning}}
		Fill(r)
		if a := r.Answer; a == nil || !slices.Equal(a.Text, []string{tt.want}) ||
			a.Question != "From which request size on does a mode cost more?" {
			t.Errorf("%s: %+v, want %q", tt.code, a, tt.want)
		}
		if !slices.Equal(r.Findings, []string{"Each point has an interval of 95 %. Statements about a " +
			"whole curve hold for 95 % of curves: each of its 5 points is judged with a " +
			"confidence of " +
			"99 %."}) {
			t.Errorf("findings %q", r.Findings)
		}
	}
	if n := len(ofCurves); n != 4 {
		t.Errorf("of %d templates 4 are tested", n)
	}
}
