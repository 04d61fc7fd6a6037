package predict

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
)

func TestAnswerIsNoStrongerThanVerdicts(t *testing.T) {
	verdicts := []stats.Verdict{stats.Costs, stats.Gains, stats.Nothing, stats.Unclear}
	rnd := rand.New(rand.NewPCG(7, 8))
	for range 200 {
		p := &Prediction{Baseline: "host", Rows: []Row{
			{Mode: "host", Label: "host", From: "host", Baseline: true}}}
		of := map[string]stats.Verdict{}
		for _, name := range []string{"<a>", "<b>", "<c>"} {
			v := verdicts[rnd.IntN(len(verdicts))]
			x := map[stats.Verdict]float64{stats.Costs: 3e-4, stats.Gains: -3e-4,
				stats.Nothing: 1e-6, stats.Unclear: 2e-4}[v]
			of[name] = v
			p.Rows = append(p.Rows, Row{Mode: name, Label: name, From: "host",
				Over: map[string]analysis.Price{Page: {
					Unit: "s", Median: x, Low: x - 1e-5, High: x + 1e-5, N: 12, Verdict: v}}})
		}
		text := AnswerOf(p).Text
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
	alone := AnswerOf(&Prediction{Baseline: "host", Rows: []Row{{Mode: "host", Baseline: true}}})
	if len(alone.Text) != 1 || !strings.HasPrefix(alone.Text[0], "Nothing can be compared") {
		t.Errorf("%q", alone.Text)
	}
}
