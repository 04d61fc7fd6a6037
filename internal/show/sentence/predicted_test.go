package sentence

import (
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/predict"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
)

func TestPredictionIsNoStrongerThanVerdicts(t *testing.T) {
	verdicts := []stats.Verdict{stats.Costs, stats.Gains, stats.Nothing, stats.Unclear}
	about := map[stats.Verdict]float64{stats.Costs: 3e-4, stats.Gains: -3e-4, stats.Nothing: 1e-6,
		stats.Unclear: 2e-4}
	for n := range len(verdicts) * len(verdicts) * len(verdicts) {
		p := &predict.Prediction{Baseline: "host", Rows: []predict.Row{
			{Mode: "host", Label: "host", From: "host", Baseline: true}}}
		of := map[stats.Verdict][]string{} // what may be said of each mode
		for i, name := range []string{"a", "b", "c"} {
			v := verdicts[n>>(2*i)%len(verdicts)]
			x := about[v]
			price := analysis.Price{Unit: "s", Median: x, Low: x - 1e-5, High: x + 1e-5, N: 12,
				Verdict: v}
			p.Rows = append(p.Rows, predict.Row{Mode: name, Label: name, From: "host",
				Over: map[string]analysis.Price{predict.Page: price}})
			of[v] = append(of[v], name+map[stats.Verdict]string{
				stats.Costs: " adds " + price.Amount(), stats.Gains: " takes " + price.Amount() + " off",
				stats.Nothing: " (at most " + price.In(price.Most()) + ")"}[v])
		}
		var parts []string
		if sure := slices.Concat(of[stats.Costs], of[stats.Gains]); sure != nil {
			slices.Sort(sure)
			parts = append(parts, strings.Join(sure, "; "))
		}
		if of[stats.Nothing] != nil {
			parts = append(parts, "Nothing measurable: "+strings.Join(of[stats.Nothing], "; "))
		}
		switch open := of[stats.Unclear]; len(open) {
		case 3:
			parts = []string{"what each costs is not clear yet"}
		case 1, 2:
			parts = append(parts, "Unclear: "+strings.Join(open, "; "))
		}
		want := "Time of a page, over host's: " + strings.Join(parts, ". ") + "."
		if got := predicted(p)[0]; got != want {
			t.Errorf("%q, want %q", got, want)
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
