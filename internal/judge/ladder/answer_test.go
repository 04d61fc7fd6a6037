package ladder

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

var verdicts = []stats.Verdict{stats.Costs, stats.Gains, stats.Nothing, stats.Unclear}

// The parts have these verdicts in both metrics; "" is a part without a result.
func withVerdicts(vs []stats.Verdict) []Step {
	steps := []Step{{Mode: "native", Label: "native"}}
	for i, v := range vs {
		s := Step{Mode: fmt.Sprint("m", i), Label: fmt.Sprint("m", i), Below: steps[i].Label,
			Part: fmt.Sprint("<part", i, ">"), Prices: map[string]analysis.Price{}}
		if v != "" {
			x := map[stats.Verdict]float64{stats.Costs: 3e-6, stats.Gains: -3e-6,
				stats.Nothing: 1e-7, stats.Unclear: 2e-6}[v]
			s.Prices[workload.LatencyP50] = analysis.Price{
				Unit: "s", Median: x, Low: x - 1e-6, High: x + 1e-6, N: 12, Epochs: 6, Verdict: v}
			r := map[stats.Verdict]float64{stats.Costs: 0.8, stats.Gains: 1.2, stats.Nothing: 1,
				stats.Unclear: 0.9}[v]
			s.Prices[workload.Throughput] = analysis.Price{
				Unit: analysis.RatioUnit, Median: r, Low: r - 0.01, High: r + 0.01, N: 12,
				Epochs: 6, Verdict: v}
		}
		steps = append(steps, s)
	}
	return steps
}

func bound(t *testing.T, vs []stats.Verdict, text []string) {
	t.Helper()
	all := strings.Join(text, "\n")
	for _, line := range text {
		_, rest, ok := strings.Cut(line, ": ")
		if !ok || strings.Contains(line, " unclear: ") { // the number of unclear verdicts
			continue
		}
		sure, nothing, open := rest, "", ""
		sure, open, _ = strings.Cut(sure, "Unclear: ")
		sure, nothing, _ = strings.Cut(sure, "Nothing measurable: ")
		for i, v := range vs {
			part := fmt.Sprint("<part", i, ">")
			where := map[bool]string{strings.Contains(sure, part): "sure",
				strings.Contains(nothing, part): "nothing",
				strings.Contains(open, part):    "open"}[true]
			want := map[stats.Verdict]string{stats.Costs: "sure", stats.Gains: "sure",
				stats.Nothing: "nothing", stats.Unclear: "open", "": ""}[v]
			if strings.Contains(line, "not clear yet") {
				if v == stats.Costs || v == stats.Gains || v == stats.Nothing {
					t.Errorf("%v: %s is called unclear:\n%s", vs, part, all)
				}
				continue
			}
			if want == "open" && strings.HasSuffix(open, " others.") {
				want = ""
			}
			if where != want {
				t.Errorf("%v: %s is in %q, want %q:\n%s", vs, part, where, want, all)
			}
		}
	}
}

func TestAnswerIsNoStrongerThanVerdicts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		vs := make([]stats.Verdict, 1+r.IntN(5))
		for i := range vs {
			vs[i] = append(verdicts, "")[r.IntN(len(verdicts)+1)]
		}
		bound(t, vs, AnswerOf(withVerdicts(vs)).Text)
	}
	for _, v := range verdicts {
		vs := []stats.Verdict{v, v, v}
		text := AnswerOf(withVerdicts(vs)).Text
		bound(t, vs, text)
		if said := strings.Join(text, "\n"); v == stats.Unclear &&
			(strings.ContainsAny(said, "µ%") || !strings.Contains(
				said, "6 of 6 verdicts are unclear")) {
			t.Errorf("of what is unclear it says:\n%s", said)
		}
	}
}

func TestAnswerWithoutPrices(t *testing.T) {
	if a := AnswerOf(nil); a != nil {
		t.Errorf("of nothing: %+v", a)
	}
	a := AnswerOf(withVerdicts([]stats.Verdict{""}))
	if len(a.Text) != 1 || !strings.HasPrefix(a.Text[0], "No part has a price") {
		t.Errorf("%q", a.Text)
	}
	few := withVerdicts([]stats.Verdict{stats.Unclear})
	for m, p := range few[1].Prices {
		p.N, p.Epochs = 2, 0
		few[1].Prices[m] = p
	}
	if said := strings.Join(AnswerOf(few).Text, "\n"); !strings.Contains(said,
		"too few rounds: a verdict takes at least 5") {
		t.Errorf("of two rounds it says:\n%s", said)
	}
	full := withVerdicts([]stats.Verdict{stats.Costs})
	p := full[1].Prices[workload.Throughput]
	p.Verdict, p.LimitedBy = stats.Unclear, "wire"
	full[1].Prices[workload.Throughput] = p
	said := strings.Join(AnswerOf(full).Text, "\n")
	if !strings.Contains(said, "Hidden by a wire that is full: <part0>.") ||
		strings.Contains(said, "80 %") || strings.Contains(said, "unclear") {
		t.Errorf("of a full wire it says:\n%s", said)
	}
}
