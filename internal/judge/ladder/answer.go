package ladder

import (
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
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
	if mode.Target(steps[0].To).Outside() {
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

// sentence returns the sentence on one price of the parts, or "" if no step has that price.
func sentence(head, name string, steps []Step, on ground) string {
	var parts []analysis.Priced
	for _, s := range steps {
		if p, ok := s.Prices[name]; ok && s.On == on.on && s.Way() == on.way {
			parts = append(parts, analysis.Priced{Name: s.Part, Price: p})
		}
	}
	return analysis.SayPrices(head, parts)
}
