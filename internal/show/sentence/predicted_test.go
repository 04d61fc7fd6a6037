package sentence

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/predict"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
)

func TestPredictionIsNoStrongerThanVerdicts(t *testing.T) {
	verdicts := []stats.Verdict{stats.Costs, stats.Gains, stats.Nothing, stats.Unclear}
	rnd := rand.New(rand.NewPCG(7, 8))
	for range 200 {
		p := &predict.Prediction{Baseline: "host", Rows: []predict.Row{
			{Mode: "host", Label: "host", From: "host", Baseline: true}}}
		of := map[string]stats.Verdict{}
		for _, name := range []string{"<a>", "<b>", "<c>"} {
			v := verdicts[rnd.IntN(len(verdicts))]
			x := map[stats.Verdict]float64{stats.Costs: 3e-4, stats.Gains: -3e-4,
				stats.Nothing: 1e-6, stats.Unclear: 2e-4}[v]
			of[name] = v
			p.Rows = append(p.Rows, predict.Row{Mode: name, Label: name, From: "host",
				Over: map[string]analysis.Price{predict.Page: {
					Unit: "s", Median: x, Low: x - 1e-5, High: x + 1e-5, N: 12, Verdict: v}}})
		}
		text := predicted(p)
		sure, open, _ := strings.Cut(text[0], "Unclear: ")
		sure, nothing, _ := strings.Cut(sure, "Nothing measurable: ")
		for name, v := range of {
			if strings.Contains(text[0], "not clear yet") {
				if v != stats.Unclear {
					t.Errorf("%v: %q", of, text)
				}
				continue
			}
			if strings.Contains(sure, name+" adds ") != (v == stats.Costs) ||
				strings.Contains(sure, name+" takes ") != (v == stats.Gains) ||
				strings.Contains(nothing, name+" (at most ") != (v == stats.Nothing) ||
				strings.Contains(open, name) != (v == stats.Unclear) {
				t.Errorf("%v: %q", of, text)
			}
		}
	}
	alone := predicted(&predict.Prediction{Baseline: "host",
		Rows: []predict.Row{{Mode: "host", Baseline: true}}})
	const want = "Nothing can be compared: the file has no mode but the baseline host."
	if !slices.Equal(alone, []string{want}) {
		t.Errorf("%q", alone)
	}
}

func predicted(p *predict.Prediction) []string {
	p.Found = predict.Findings(p)
	Fill(p)
	return p.Answer.Text
}

func TestTemplatesOfPredictions(t *testing.T) {
	over := map[string]analysis.Price{}
	for key, unit := range map[string]string{predict.Page: "s", predict.CPU: analysis.CoreUnit,
		predict.StreamCPU: analysis.CoreUnit} {
		over[key] = analysis.Price{Unit: unit, Median: 0.05, Low: 0.04, High: 0.06, N: 12,
			Verdict: stats.Costs}
	}
	p := &predict.Prediction{Baseline: "host", Rows: []predict.Row{
		{Label: "host", From: "host", On: "lab", Baseline: true},
		{Label: "bridge", From: "host", On: "lab", Over: over}}}
	want := []string{"Time of a page, over host's: bridge adds X.",
		"CPU time of the queries, of a core, over host's: bridge adds X.",
		"CPU time of the tokens, of a core, over host's: bridge adds X."}
	for i, key := range []string{predict.Page, predict.CPU, predict.StreamCPU} {
		want[i] = strings.Replace(want[i], "X", over[key].Amount(), 1)
	}
	if got := predicted(p); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if q := "What would each mode cost this application?"; p.Answer.Question != q {
		t.Errorf("%q, want %q", p.Answer.Question, q)
	}
	p.Rows = append(p.Rows, predict.Row{Label: "host", From: "remote", On: "docker",
		Baseline: true})
	if got := predicted(p)[0]; !strings.HasPrefix(got,
		"Time of a page, over host's, from the machine itself on lab: bridge adds ") {
		t.Errorf("of several places: %q", got)
	}
}
