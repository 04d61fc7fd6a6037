package sentence

import (
	"fmt"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/ladder"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// climb returns a ladder whose parts, named by letters, have these verdicts and prices in µs.
func climb(parts ...analysis.Price) *ladder.Report {
	r := &ladder.Report{Steps: []ladder.Step{{Label: "native", From: mode.FromHost, On: "lab"}}}
	r.Study, r.Cells = sample.StudyLadder, make([]analysis.Cell, 1)
	for i, p := range parts {
		s := ladder.Step{Label: fmt.Sprint("m", i), Below: r.Steps[i].Label, From: mode.FromHost,
			On: "lab", Part: string(rune('a' + i)), Prices: map[string]analysis.Price{}}
		if p.N > 0 {
			s.Prices[workload.LatencyP50] = p
		}
		r.Steps = append(r.Steps, s)
	}
	return r
}

func priced(v stats.Verdict, x float64) analysis.Price {
	return analysis.Price{Unit: "s", Median: x * 1e-6, Low: (x - 1) * 1e-6, High: (x + 1) * 1e-6, N: 12,
		Epochs: 6, Verdict: v}
}

func TestParts(t *testing.T) {
	costs, gains := priced(stats.Costs, 2), priced(stats.Gains, -4)
	nothing, unclear := priced(stats.Nothing, 0), priced(stats.Unclear, 2)
	varies, few := unclear, unclear
	varies.Varies = true
	few.N, few.Epochs = 2, 0
	const six = "The verdict is unclear: measure longer (--budget) or on a quieter machine."
	for name, tt := range map[string]struct {
		parts []analysis.Price
		want  []string
	}{
		"dearest": {[]analysis.Price{costs, priced(stats.Costs, 9), gains, nothing},
			[]string{"Median latency: b +9.0 µs; c -4.0 µs."}},
		"small": {[]analysis.Price{costs, priced(stats.Costs, 9)}, []string{"Median latency: b +9.0 µs."}},
		"one":   {[]analysis.Price{costs}, []string{"Median latency: a +2.0 µs."}},
		"none":  {[]analysis.Price{nothing, nothing}, []string{"Median latency: no part costs anything measurable."}},
		"unclear": {[]analysis.Price{unclear}, []string{
			"Median latency: no part is certain to change it (1 unclear).", six}},
		"all": {[]analysis.Price{costs, nothing, varies, unclear}, []string{"Median latency: a +2.0 µs.",
			"1 of 3 verdicts is unclear: measure longer (--budget) or on a quieter machine."}},
		"few": {[]analysis.Price{few}, []string{
			"Median latency: no part is certain to change it (1 unclear).", "The verdict is unclear, " +
				"because there are too few rounds: a verdict takes at least 5 (--rounds, --budget)."}},
		"no price": {[]analysis.Price{{}}, []string{
			"No part has a price: fewer than two modes have a result."}},
	} {
		r := climb(tt.parts...)
		r.Found = ladder.Findings(r)
		if Fill(r); r.Answer.Question != "What does each part of the path cost?" ||
			!slices.Equal(r.Answer.Text, tt.want) {
			t.Errorf("%s: %+v, want %q", name, *r.Answer, tt.want)
		}
	}
}

func TestPartsOnABusyMachine(t *testing.T) {
	r := climb(priced(stats.Unclear, 2))
	r.Warnings = []analysis.Warning{{Code: analysis.Busy, Text: "the machine was too busy. Wait"}}
	r.Found = ladder.Findings(r)
	want := []string{"The machine was too busy: measure again before you decide.",
		"Median latency: no part is certain to change it (1 unclear)."}
	if Fill(r); !slices.Equal(r.Answer.Text, want) {
		t.Errorf("%q, want %q", r.Answer.Text, want)
	}
}

func TestPartsInDetail(t *testing.T) {
	full := analysis.Price{Unit: analysis.RatioUnit, Median: 0.8, Low: 0.79, High: 0.81, N: 12,
		Verdict: stats.Unclear, LimitedBy: "wire"}
	r := climb(priced(stats.Costs, 3), priced(stats.Nothing, 0), priced(stats.Unclear, 2))
	r.Steps[1].Prices[workload.Throughput] = full
	r.Steps[3].On = "docker"
	r.Steps[0].To, r.Steps[1].To = mode.ToOutside, mode.ToOutside
	r.Found = append(ladder.Findings(r), analysis.Finding{Code: ladder.Sum, What: workload.LatencyP50,
		Rows: []int{1, 2}, Prices: []analysis.Price{priced(stats.Costs, 4)}},
		analysis.Finding{Code: ladder.Sum, What: workload.LatencyP50, Rows: []int{2, 3},
			Prices: []analysis.Price{priced(stats.Costs, 4)}})
	Fill(r)
	answer := []string{
		"Median latency on lab from the machine itself to outside: a +3.0 µs.",
		"Median latency on lab from the machine itself: no part costs anything measurable.",
		"Median latency on docker from the machine itself: no part is certain to change it (1 unclear).",
		"Throughput on lab from the machine itself to outside: no part is certain to change it (1 " +
			"hidden by a full wire).",
		"1 of 3 verdicts is unclear: measure longer (--budget) or on a quieter machine."}
	if r.Answer.Question != "What does each part of the way out cost?" ||
		!slices.Equal(r.Answer.Text, answer) {
		t.Errorf("%q, want %q", *r.Answer, answer)
	}
	details := []string{"Every row was witnessed: its bytes were counted on each hop of its path.",
		"Of m1's +4.0 ±1.0 µs of median latency over native, a is +3.0 ±1.0 µs.",
		"Of m2's +4.0 ±1.0 µs of median latency over m0, no part alone is beyond the noise.",
		"What costs nothing measurable in median latency: b (at most 1.0 µs).",
		"The wire is full with and without them, so its rate hides what these cost in throughput: a."}
	if !slices.Equal(r.Findings, details) {
		t.Errorf("%q, want %q", r.Findings, details)
	}
}
