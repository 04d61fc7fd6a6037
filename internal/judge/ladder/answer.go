package ladder

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

var answered = []struct{ price, head string }{
	{workload.LatencyP50, "Median latency"},
	{workload.Throughput, "Throughput, of that without the part"},
	{PriceName(workload.Stream, workload.LatencyP50), "Median token delay"},
}

// AnswerOf returns the costs of the parts, or nil without steps. It claims no more than the
// verdicts do.
func AnswerOf(steps []Step) *analysis.Answer {
	if len(steps) == 0 {
		return nil
	}
	a := &analysis.Answer{Question: "What does each part of the path cost?", Text: []string{}}
	if steps[0].To.Outside() {
		a.Question = "What does each part of the way out cost?"
	}
	var tally analysis.Tally
	for _, m := range answered {
		for _, on := range grounds(steps) {
			head := m.head
			if len(grounds(steps)) > 1 {
				head += " on " + on.on + " from " + on.way
			}
			a.Add(sentence(head, m.price, steps, on))
		}
		for _, s := range steps {
			if p, ok := s.Prices[m.price]; ok && p.LimitedBy == "" && !p.Undecided() {
				tally.Add(p.Verdict, p.N, p.Epochs)
			}
		}
	}
	if len(a.Text) == 0 {
		a.Add("No part has a price: fewer than two modes have a result.")
	}
	a.Add(tally.Sentence())
	return a
}

type ground struct{ on, way string }

func grounds(steps []Step) []ground {
	var out []ground
	for i, s := range steps {
		if i == 0 || s.On != steps[i-1].On || s.Way() != steps[i-1].Way() {
			out = append(out, ground{s.On, s.Way()})
		}
	}
	return out
}

// mostNamed is the largest number of parts that a sentence names. The table has the others.
const mostNamed = 2

// sentence returns the sentence on one price of the parts, or "" if no step has that price. It names
// the parts that certainly change it most, and counts the others.
func sentence(head, name string, steps []Step, on ground) string {
	var sure []Step
	none, open, hidden, varying, link := 0, 0, 0, 0, ""
	for _, s := range steps {
		p, ok := s.Prices[name]
		switch {
		case !ok || s.On != on.on || s.Way() != on.way:
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
	if len(sure)+none+open+hidden+varying == 0 {
		return ""
	}
	slices.SortStableFunc(sure, func(a, b Step) int {
		return cmp.Compare(b.Prices[name].Size(), a.Prices[name].Size())
	})
	var named, others []string
	for _, s := range sure[:min(mostNamed, len(sure))] {
		named = append(named, s.Part+" "+s.Prices[name].Does())
	}
	for _, x := range []struct {
		n    int
		what string
	}{{len(sure) - len(named), "less"}, {none, "nothing measurable"},
		{hidden, "hidden by a full " + link}, {varying, "varying"}, {open, "unclear"}} {
		if x.n > 0 {
			others = append(others, fmt.Sprintf("%d %s", x.n, x.what))
		}
	}
	rest := strings.Join(others, ", ")
	switch {
	case len(named) == 0 && len(others) == 1 && none > 0:
		return head + ": no part costs anything measurable."
	case len(named) == 0:
		return fmt.Sprintf("%s: no part is certain to change it (%s).", head, rest)
	case rest == "":
		return head + ": " + strings.Join(named, "; ") + "."
	}
	return fmt.Sprintf("%s: %s (other parts: %s).", head, strings.Join(named, "; "), rest)
}
