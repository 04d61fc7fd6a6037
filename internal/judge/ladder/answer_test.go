package ladder

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

var verdicts = []stats.Verdict{stats.Costs, stats.Gains, stats.Nothing, stats.Unclear}

// The parts have these verdicts in both metrics; "" is a part without a result.
func withVerdicts(vs []stats.Verdict) []Step {
	steps := []Step{{Mode: "native", Label: "native"}}
	for i, v := range vs {
		s := Step{Mode: mode.Name(fmt.Sprint("m", i)), Label: fmt.Sprint("m", i), Below: steps[i].Label,
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

// bound fails the test unless each sentence names only parts with a certain price, and the numbers
// of the named and the other parts are those of the verdicts.
func bound(t *testing.T, vs []stats.Verdict, text []string) {
	t.Helper()
	want := map[string]int{}
	priced := 0
	for _, v := range vs {
		if v == "" {
			continue
		}
		priced++
		switch v {
		case stats.Costs, stats.Gains:
			want["less"]++
		case stats.Nothing:
			want["nothing measurable"]++
		default:
			want["unclear"]++
		}
	}
	if priced == 0 {
		return
	}
	named := min(mostNamed, want["less"])
	if want["less"] -= named; want["less"] == 0 {
		delete(want, "less")
	}
	for _, line := range text {
		if strings.Contains(line, "verdict") {
			continue
		}
		got := map[string]int{}
		body, others, _ := strings.Cut(strings.TrimSuffix(line, ")."), " (other parts: ")
		if named == 0 {
			body, others, _ = strings.Cut(strings.TrimSuffix(line, ")."), " change it (")
		}
		if strings.HasSuffix(line, "no part costs anything measurable.") {
			others = fmt.Sprintf("%d nothing measurable", priced)
		}
		for _, x := range strings.Split(others, ", ") {
			if n, what, ok := strings.Cut(x, " "); ok {
				got[what], _ = strconv.Atoi(n)
			}
		}
		for i, v := range vs {
			if strings.Contains(body, fmt.Sprint("<part", i, ">")) {
				got["named"]++
				if v != stats.Costs && v != stats.Gains {
					t.Errorf("%v: part %d is named: %s", vs, i, line)
				}
			}
		}
		if got["named"] != named {
			t.Errorf("%v: %d parts are named, want %d: %s", vs, got["named"], named, line)
		}
		if delete(got, "named"); !maps.Equal(got, want) {
			t.Errorf("%v: others %v, want %v: %s", vs, got, want, line)
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
	if !strings.Contains(said, "no part is certain to change it (1 hidden by a full wire).") ||
		strings.Contains(said, "80 %") || strings.Contains(said, "unclear") {
		t.Errorf("of a full wire it says:\n%s", said)
	}
}

func TestDearestPartsAreNamed(t *testing.T) {
	steps := withVerdicts([]stats.Verdict{stats.Costs, stats.Costs, stats.Gains, stats.Nothing})
	for i, x := range []float64{2e-6, 9e-6, -4e-6} {
		p := steps[i+1].Prices[workload.LatencyP50]
		p.Median, p.Low, p.High = x, x-1e-6, x+1e-6
		steps[i+1].Prices[workload.LatencyP50] = p
	}
	const want = "Median latency: <part1> adds 9.0 µs (8.0–10.0); <part2> takes 4.0 µs (3.0–5.0) " +
		"off (other parts: 1 less, 1 nothing measurable)."
	if got := AnswerOf(steps).Text[0]; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
