package sentence

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/ladder"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

var ofSteps = []template{
	{code: ladder.Parts, text: "{parts}.", most: all},
	{code: ladder.NoPart, text: "No part has a price: fewer than two modes have a result.",
		most: all},
	{code: ladder.Sum, text: "{sum}.", details: 2},
	{code: ladder.Free, text: "What costs nothing measurable in {price}: {free}.", details: 3},
	{code: ladder.Hidden, text: "The {full} is full with and without them, so its rate hides what " +
		"these cost in {price}: {hidden}.", details: 3},
}

var priceNouns = map[string]string{workload.LatencyP50: "median latency",
	workload.CPUPerTrip: "CPU time per round trip", workload.Throughput: "throughput",
	workload.CPUPerByte: "CPU time per gigabyte", workload.CPUPerToken: "CPU time per token",
	ladder.PriceName(workload.Stream, workload.LatencyP50): "median token delay"}

func (w *writer) steps(f analysis.Finding) (out []ladder.Step) {
	for _, i := range f.Rows {
		out = append(out, w.study.(*ladder.Report).Steps[i])
	}
	return out
}

// ofEach returns the words for each of the finding's steps.
func ofEach(say func(ladder.Step, analysis.Price) string) blank {
	return func(w *writer, fs []analysis.Finding) string {
		var out []string
		for _, s := range w.steps(fs[0]) {
			out = append(out, say(s, s.Prices[fs[0].What]))
		}
		return strings.Join(out, "; ")
	}
}

func sum(w *writer, fs []analysis.Finding) string {
	f, of := fs[0], w.steps(fs[0])
	var parts []string
	for _, s := range of {
		if p := s.Prices[f.What]; p.Known() {
			parts = append(parts, s.Part+" is "+p.In(p.Value()))
		}
	}
	return fmt.Sprintf("Of %s's %s of %s over %s, %s", of[len(of)-1].Label,
		f.Prices[0].In(f.Prices[0].Value()), priceNouns[f.What], of[0].Below,
		cmp.Or(strings.Join(parts, "; "), "no part alone is beyond the noise"))
}

// A sentence names the part that certainly changes a price most, and the next one if that does so
// by at least a share of it. The table has the others.
const (
	mostNamed  = 2
	leastShare = 0.25
)

// mostOf names the parts that certainly change a price most. If none does, it counts the others.
func mostOf(w *writer, fs []analysis.Finding) string {
	name, of := fs[0].What, w.steps(fs[0])
	var sure []ladder.Step
	none, open, hidden, varying, link := 0, 0, 0, 0, ""
	for _, s := range of {
		switch p := s.Prices[name]; {
		case p.LimitedBy != "":
			hidden, link = hidden+1, p.LimitedBy
		case p.Known():
			sure = append(sure, s)
		case p.Verdict == stats.Nothing:
			none++
		case p.Varies:
			varying++
		default:
			open++
		}
	}
	slices.SortStableFunc(sure, func(a, b ladder.Step) int {
		return cmp.Compare(b.Prices[name].Size(), a.Prices[name].Size())
	})
	var named, others []string
	for _, s := range sure[:min(mostNamed, len(sure))] {
		if p := s.Prices[name]; p.Size() >= leastShare*sure[0].Prices[name].Size() {
			named = append(named, s.Part+" "+changeBy(p))
		}
	}
	for _, x := range []struct {
		n    int
		what string
	}{{none, "nothing measurable"}, {hidden, "hidden by a full " + link}, {varying, "varying"},
		{open, "unclear"}} {
		if x.n > 0 {
			others = append(others, fmt.Sprintf("%d %s", x.n, x.what))
		}
	}
	head := printable.Capital(priceNouns[name])
	if slices.ContainsFunc(w.study.(*ladder.Report).Steps, func(s ladder.Step) bool {
		return !s.SamePlace(of[0])
	}) {
		head += " on " + of[0].On + " from " + of[0].Way()
	}
	switch {
	case none == len(of):
		return head + ": no part costs anything measurable"
	case len(named) == 0:
		return head + ": no part is certain to change it (" + strings.Join(others, ", ") + ")"
	}
	return head + ": " + strings.Join(named, "; ")
}

// changeBy returns "+41 µs", "-40 %" or, of what varies, its range.
func changeBy(p analysis.Price) string {
	switch {
	case p.Varies:
		return p.In(p.Value())
	case p.Unit == analysis.RatioUnit:
		return percentOf(p.Ratio())
	}
	amount, _, _ := strings.Cut(p.Even("µs"), " ")
	return amount + " µs"
}
