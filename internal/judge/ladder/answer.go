package ladder

import (
	"fmt"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// answered are the metrics of which an answer speaks.
var answered = []struct{ metric, head string }{
	{workload.LatencyP50, "Median latency"}, {workload.Throughput, "Throughput, of that without the part"},
}

// AnswerOf is what the steps answer; nil if there are none. A part is said to cost
// something only where its verdict says so.
func AnswerOf(steps []Step) *analysis.Answer {
	if len(steps) == 0 {
		return nil
	}
	a := &analysis.Answer{Question: "What does each part of the path cost?", Text: []string{}}
	var tally analysis.Tally
	for _, m := range answered {
		for _, on := range grounds(steps) {
			head := m.head
			if len(grounds(steps)) > 1 {
				head += " on " + on.on + " from " + mode.Placement(on.from).Words()
			}
			a.Add(sentence(head, m.metric, steps, on))
		}
		for _, s := range steps {
			if p, ok := s.Prices[m.metric]; ok && p.LimitedBy == "" {
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

// ground is where a ladder stands: who built it, and where its client runs.
type ground struct{ on, from string }

// grounds are those of the steps, in their order.
func grounds(steps []Step) []ground {
	var out []ground
	for i, s := range steps {
		if i == 0 || s.On != steps[i-1].On || s.From != steps[i-1].From {
			out = append(out, ground{s.On, s.From})
		}
	}
	return out
}

// sentence says what the parts cost in a metric, those that are alike together; "" if none
// has a price.
func sentence(head, metric string, steps []Step, on ground) string {
	var sure, nothing, open, hidden []string
	for _, s := range steps {
		p, ok := s.Prices[metric]
		if !ok || s.On != on.on || s.From != on.from {
			continue
		}
		switch {
		case p.LimitedBy != "":
			hidden = append(hidden, s.Part)
		case p.Verdict == stats.Nothing:
			nothing = append(nothing, fmt.Sprintf("%s (at most %s)", s.Part, p.In(p.Most())))
		case p.Verdict == stats.Costs || p.Verdict == stats.Gains:
			sure = append(sure, s.Part+" "+does(p))
		default:
			open = append(open, s.Part)
		}
	}
	if len(open) > 1 && len(sure)+len(nothing)+len(hidden) == 0 {
		return head + ": what each part costs is not clear yet."
	}
	var say []string
	for _, x := range []struct {
		head  string
		parts []string
	}{{"", sure}, {"Nothing measurable: ", nothing}, {"Hidden by a wire that is full: ", hidden}, {"Unclear: ", open}} {
		if len(x.parts) > 0 {
			say = append(say, x.head+strings.Join(x.parts, "; "))
		}
	}
	if len(say) == 0 {
		return ""
	}
	return head + ": " + strings.Join(say, ". ") + "."
}

// does is a price that is certain, with a verb if it is a time.
func does(p analysis.Price) string {
	switch {
	case p.Unit == analysis.RatioUnit:
		return analysis.Ratio{Median: p.Median, Low: p.Low, High: p.High, N: p.N}.Percent()
	case p.Verdict == stats.Costs:
		return "adds " + p.Amount()
	}
	return "takes " + p.Amount() + " off"
}
