package scale

import (
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// AnswerOf returns the answer of the judged cells, in which each mode's cells are adjacent, or nil
// without cells. It claims no more than the verdicts do and names modes together that cannot be
// distinguished.
func AnswerOf(r *analysis.Report) *analysis.Answer {
	if len(r.Cells) == 0 {
		return nil
	}
	a := &analysis.Answer{Question: "What happens as clients are added?", Text: []string{}}
	var tally analysis.Tally
	groups := largest(r.Cells)
	for _, g := range groups {
		var grown, held []analysis.Judged
		var first, to string
		rate := analysis.Rate(sample.Load{Kind: g[0].Load})
		for _, c := range g {
			m := c.Metrics[rate]
			if x := m.Scaling; x != nil {
				first = x.To
				grown = append(grown, analysis.Judged{
					Name: c.Label(), Verdict: x.Verdict, Ratio: x})
				tally.Add(x.Verdict, x.N, x.Epochs)
			}
			if x := m.Ratio; x != nil {
				to = x.To
				held = append(held, analysis.Judged{Name: c.Label(), Verdict: x.Verdict, Ratio: x})
				tally.Add(x.Verdict, x.N, x.Epochs)
			}
		}
		head := printable.Capital("total " + nounOf(g[0].Load) + at(g[0], groups) + " at " +
			g[0].Shape.String())
		if len(grown) > 0 {
			a.Add(fmt.Sprintf("%s, of that at %s: %s.", head, first, analysis.ByVerdict(grown)))
		}
		if len(held) > 0 {
			a.Add(fmt.Sprintf("%s, of %s's: %s.", head, to, analysis.ByVerdict(held)))
		}
	}
	if len(a.Text) == 0 {
		a.Add(
			"There is one size and one mode only: nothing to compare. Give several, as in --clients 1,4,16.")
	}
	a.Add(starved(r.Cells))
	a.Add(tally.Sentence())
	return a
}

func largest(cells []analysis.Cell) [][]analysis.Cell {
	var out [][]analysis.Cell
	for i, c := range cells {
		if i+1 < len(cells) && sameMode(c, cells[i+1]) {
			continue
		}
		at := slices.IndexFunc(out, func(g []analysis.Cell) bool {
			return g[0].From == c.From && g[0].Load == c.Load && g[0].On == c.On &&
				g[0].Shape == c.Shape
		})
		if at < 0 {
			at = len(out)
			out = append(out, nil)
		}
		out[at] = append(out[at], c)
	}
	return out
}

func at(c analysis.Cell, groups [][]analysis.Cell) string {
	text := ""
	if slices.ContainsFunc(groups, func(g []analysis.Cell) bool { return g[0].On != c.On }) {
		text += " on " + c.On
	}
	if slices.ContainsFunc(groups, func(g []analysis.Cell) bool { return g[0].From != c.From }) {
		text += " from " + c.From.Words()
	}
	return text
}

func nounOf(load string) string {
	w := workload.Of(sample.Load{Kind: load})
	if w.Rate == w.Primary {
		return w.Noun
	}
	return "rate of " + w.Name
}

func starved(cells []analysis.Cell) string {
	var names []string
	for _, c := range cells {
		m := c.Metrics[workload.ProcessMin]
		if len(m.Rounds) < stats.MinJudged || m.Median > 0 {
			continue
		}
		if n := c.Label() + " at " + c.Shape.String(); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "In most rounds a client process transferred nothing: " + printable.List(names) + "."
}
