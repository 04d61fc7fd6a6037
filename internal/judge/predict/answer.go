package predict

import (
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

var answered = []struct{ name, head string }{
	{Page, "Time of a page"}, {CPU, "CPU time of the queries, of a core"},
	{StreamCPU, "CPU time of the tokens, of a core"},
}

// AnswerOf returns each mode's addition to the baseline, as far as the verdicts allow.
func AnswerOf(p *Prediction) *analysis.Answer {
	a := &analysis.Answer{Question: "What would each mode cost this application?", Text: []string{}}
	type ground struct{ from, on string }
	var grounds []ground
	by := map[ground][]Row{}
	for _, r := range p.Rows {
		g := ground{r.From, r.On}
		if by[g] == nil {
			grounds = append(grounds, g)
		}
		by[g] = append(by[g], r)
	}
	var tally analysis.Tally
	for _, g := range grounds {
		for _, x := range answered {
			head := x.head + ", over " + p.Baseline + "'s"
			if len(grounds) > 1 {
				head += ", from " + mode.Placement(g.from).Words() + " on " + g.on
			}
			var all []analysis.Priced
			for _, r := range by[g] {
				if price, ok := r.Over[x.name]; ok && !r.Baseline {
					all = append(all, analysis.Priced{Name: r.Label, Price: price})
					tally.Add(price.Verdict, price.N, price.Epochs)
				}
			}
			a.Add(analysis.SayPrices(head, all))
		}
	}
	if len(a.Text) == 0 {
		a.Add("Nothing can be compared: the file has no mode but the baseline " + p.Baseline +
			".")
	}
	a.Add(tally.Sentence())
	return a
}
