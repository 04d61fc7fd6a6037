package show

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// Summary is the document of a judged run for those who want the answer: sentences, a
// small table for each load and placement, and what changes how these are read. Runs
// whose study has no answer have their whole report.
func Summary(r judge.Report) document.Document {
	base := r.Base()
	if base.Answer == nil {
		return Report(r)
	}
	d := document.Document{Kind: document.AReport, Value: r, Sections: []document.Section{answerSection(base.Answer)}}
	for _, g := range groups(base.Cells) {
		d.Sections = append(d.Sections, briefly(base, g))
	}
	d.Sections = append(d.Sections, absent(base)...)
	if w := warnings(base); len(w) > 0 {
		d.Sections = append(d.Sections, fewest(w[0]))
	}
	d.Sections = append(d.Sections, document.Section{Blocks: []document.Block{
		faint(analysis.Witnessed(base), document.Words), faint(provenance(base), document.Facts),
	}})
	return d
}

// answerSection is the question with its answer.
func answerSection(a *analysis.Answer) document.Section {
	return document.Section{Title: document.Strongly(a.Question),
		Blocks: []document.Block{document.List{Topic: document.Answer, Items: a.Text, Level: 1}}}
}

// briefly is the small table of a group.
func briefly(r *analysis.Report, cells []analysis.Cell) document.Section {
	c := cells[0]
	l := loadOf(r, c.Load)
	w := workload.Of(l)
	metric := workload.MetricOf(c.Primary, l)
	better := "less is better"
	if metric.Higher {
		better = "more is better"
	}
	title := document.Strongly(printable.Capital(w.Noun)+" from "+mode.Placement(c.From).Words()+sayOn(r, c.On)).
		Then(", "+w.Words(l)+", "+better, document.Faint)
	cols := briefColumns(r, cells)
	t := tableOf(cols, cells, []document.Layout{{}, {Lean: true}, {Lean: true, Bare: true}, {Lean: true, Bare: true, Tight: true}})
	t.Fit, t.Plot = "brief "+c.Load, plotOf(r, cols, t)
	return document.Section{Title: title, Blocks: []document.Block{t}}
}

// briefColumns are at most four columns of figures: the ratio, the figure itself, what is
// added, the verdict.
func briefColumns(r *analysis.Report, cells []analysis.Cell) []column {
	c := cells[0]
	unit, scale := fitting(r, c.Load, c.Primary)
	added, hasAdded := addedColumn(r, cells)
	out := []column{
		{document.Column{Head: [2]string{"", "network"}, Cut: document.CutMiddle, Least: leastPhrase}, phraseCell},
		{document.Column{Head: [2]string{"", "mode"}, Spare: true}, textOf(analysis.Cell.Label)},
		{document.Column{Head: [2]string{"% of", r.Plan.Baseline}}, percentCell(!hasAdded)},
		{document.Column{Head: [2]string{"", unit}, Right: true}, scaled(c.Primary, scale)},
	}
	if hasAdded {
		added.cell = enclosing(added.cell, c.Primary)
		out = append(out, added)
	}
	return append(out, column{texts("", "verdict"), verdictCell})
}

// phraseCell is a row's name in Docker's words.
func phraseCell(c analysis.Cell) document.Cell {
	m, ok := mode.Find(mode.Name(c.Mode))
	if !ok {
		return document.Cell{Text: c.Label()}
	}
	return document.Cell{Text: m.Phrase(mode.Placement(c.From), mode.Target(c.To), mode.Tunes(c.Tune))}
}

// percentCell is the ratio in %, with its interval or without.
func percentCell(interval bool) func(c analysis.Cell) document.Cell {
	return func(c analysis.Cell) document.Cell {
		x := c.Metrics[c.Primary].Ratio
		switch {
		case c.Baseline:
			return own("100", 1, analysis.RatioUnit)
		case x == nil:
			return nothing
		}
		text := x.Percent()
		if !interval {
			text, _, _ = strings.Cut(text, " (")
		}
		cell := ratioCell(strings.Replace(text, " %", "", 1), *x)
		if x.N < 2 { // it has none
			cell.Number.Low, cell.Number.High = nil, nil
		}
		return cell
	}
}

// enclosing is what a mode adds with its interval in parentheses.
func enclosing(of func(analysis.Cell) document.Cell, metric string) func(analysis.Cell) document.Cell {
	return func(c analysis.Cell) document.Cell {
		cell := of(c)
		if p := c.Metrics[metric].Price; p != nil && !c.Baseline {
			cell.Text = p.Enclosed()
		}
		return cell
	}
}

func verdictCell(c analysis.Cell) document.Cell {
	if c.Baseline {
		return document.Cell{Text: "baseline"}
	}
	return document.Cell{Text: orDash(string(verdictOf(c)))}
}

// plotOf draws a table's ratios on one scale, with what is called the same.
func plotOf(r *analysis.Report, cols []column, t document.Table) *document.Plot {
	at := slices.IndexFunc(cols, func(c column) bool { return c.Head[0] == "% of" })
	p := document.Plot{Column: at, Before: at, Baseline: 1, Same: r.Plan.Same, Scale: percent, Least: leastPlot}
	p.From, p.To = 1, 1
	for _, row := range t.Rows {
		n := row.Cells[at].Number
		if n == nil {
			continue
		}
		low, high := n.Value, n.Value
		if n.Low != nil && n.High != nil {
			low, high = min(low, *n.Low), max(high, *n.High)
		}
		p.From, p.To = min(p.From, low), max(p.To, high)
	}
	return &p
}

const (
	leastPlot   = 12 // columns: with fewer nothing is drawn
	leastPhrase = 12 // columns
)

// fewest are the first of a list's points, and how many more there are.
func fewest(s document.Section) document.Section {
	const most = 3
	l := s.Blocks[0].(document.List)
	if n := len(l.Items) - most; n > 0 {
		l.Items = append(slices.Clone(l.Items[:most]), fmt.Sprintf("and %d more: --details", n))
	}
	s.Blocks = []document.Block{l}
	return s
}

// provenance is where what is shown is from.
func provenance(r *analysis.Report) string {
	facts := append([]string{runText(r)}, placeFacts(r)...)
	return strings.Join(append(facts, "CPU, percentiles, paths: --details"), document.Facts)
}
