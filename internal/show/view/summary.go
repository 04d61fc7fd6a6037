package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// Summary shows a small table for each load and placement, and last the answer. For a mesh and a
// run without an answer, it shows the whole report's sections.
func Summary(r judge.Report) document.Document {
	base := told(r)
	v := viewOf(base)
	if base.Answer == nil {
		return Report(r)
	}
	d := reportDocument(r)
	if v.summary != nil {
		d.Add(answerSection(base.Answer))
		d.Add(v.summary(r)...)
		return d
	}
	if v.overview != nil {
		d.Add(v.overview(r)...)
		d.Add(remarks(base, v.key(r))...)
		d.Add(answerSection(base.Answer))
		return d
	}
	for _, p := range Parts(r) {
		d.Add(p.Section)
	}
	d.Add(absent(base)...)
	hidden := []string{v.hides, thinTail, glued}
	if slices.ContainsFunc(base.Found, func(f analysis.Finding) bool { return f.Code == analysis.Busy }) {
		hidden = append(hidden, analysis.Busy) // the answer begins with it
	}
	if w := warningsBut(base, hidden...); len(w) > 0 {
		d.Add(fewest(w[0]))
	}
	if notes := v.briefNotes; notes != "" && len(base.Cells) > 0 {
		d.Add(section(nil, faint(notes)))
	}
	facts := document.Section{}
	if text := v.proven(base); text != "" {
		facts.Add(faint(text))
	}
	facts.Add(faintFacts(provenance(base)))
	said := []string{base.Pinned()}
	if base.Study != sample.StudyEndpoints { // which has it in the details
		said = append(said, base.Together())
	}
	for _, text := range said {
		if text != "" {
			facts.Add(faint(text))
		}
	}
	d.Add(facts, briefAnswer(base.Answer))
	return d
}

// codes of warnings that only the details show: thinTail is about percentiles, and the answer and a
// column say what glued does
const (
	thinTail = "thin-tail"
	glued    = "glued"
)

func answerSection(a *analysis.Answer) document.Section {
	return section(document.Strongly(a.Question),
		document.List{Topic: document.Answer, Items: a.Text, Level: 1})
}

// briefAnswer returns the section of what a summary shows of an answer.
func briefAnswer(a *analysis.Answer) document.Section {
	if a.Brief != nil {
		a = &analysis.Answer{Question: a.Question, Text: a.Brief}
	}
	return answerSection(a)
}

func briefly(r *analysis.Report, cells []analysis.Cell) document.Section {
	v := viewOf(r)
	cols := v.brief(r, cells)
	t := tableOf(cols, cells, []document.Layout{
		{}, {Lean: true}, {Lean: true, Bare: true}, {Lean: true, Bare: true, Tight: true},
		{Lean: true, Bare: true, Tight: true, Short: true}})
	t.Fit, t.Plot = "brief "+cells[0].Load, plotOf(r, cols, t)
	for i := range t.Rows {
		t.Rows[i].Above = v.above(cells, i)
	}
	s := document.Section{Title: v.briefTitle(r, cells)}
	if tokens, ok := tokenTable(r, cells); ok {
		s.Add(tokens)
	}
	s.Add(t)
	if parts, ok := evidenceTable(cells); ok {
		s.Add(parts)
	}
	return s
}

func briefTitle(r *analysis.Report, cells []analysis.Cell) document.Text {
	c := cells[0]
	l := r.Plan.Loads.Of(c.Load)
	w := workload.Of(l)
	return document.Strongly(printable.Capital(w.Noun)+" from "+placeWords(c.From)+sayOn(r, c.On)).
		Then(", "+w.Words(l)+", "+direction(workload.MetricOf(c.Primary, l)), document.Faint)
}

func direction(m workload.Metric) string {
	if m.Higher {
		return "more is better"
	}
	return "less is better"
}

func briefColumns(r *analysis.Report, cells []analysis.Cell) []column {
	first := []column{
		{document.Column{Head: [2]string{"", "mode"}, Cut: document.CutMiddle, Least: leastPhrase},
			textOf(analysis.Cell.Label)},
		{document.Column{Head: [2]string{"", "in Docker's words"}, Spare: true},
			textOf(analysis.Cell.Phrase)},
	}
	if sideBySide(r) {
		return pinColumns(r, cells, first, r.Plan.Baseline)
	}
	return briefFigures(r, cells, first, r.Plan.Baseline)
}

func briefFigures(r *analysis.Report, cells []analysis.Cell, first []column,
	baseline string) []column {
	c := cells[0]
	unit, scale := fitting(r, c.Load, c.Primary)
	added, hasAdded := briefAdded(r, cells)
	if added.Head[1] == "ms" && unit == "s" { // use one unit for both
		unit, scale = "ms", milli
	}
	out := append(first,
		column{document.Column{Head: [2]string{percentHead, baseline}},
			percentCell(c.Primary, !hasAdded)},
		column{document.Column{Head: [2]string{"", unit}, Right: true}, shown(c.Primary, scale)})
	if hasAdded {
		out = append(out, added)
	}
	return append(out, column{texts("", "verdict"), verdictCell})
}

const percentHead = "% of"

func percentCell(metric string, interval bool) func(c analysis.Cell) document.Cell {
	return func(c analysis.Cell) document.Cell {
		x := c.Metrics[metric].Ratio
		switch {
		case c.Baseline:
			return numberCell("100", 1, analysis.RatioUnit)
		case x == nil:
			return nothing
		}
		return inPercent(*x, interval)
	}
}

func inPercent(x analysis.Ratio, interval bool) document.Cell {
	text := x.String()
	if !interval {
		text, _, _ = strings.Cut(strings.TrimSuffix(text, " ±?"), " (")
	}
	cell := ratioCell(strings.Replace(text, " %", "", 1), x)
	if x.N < 2 { // a single round has no interval
		cell.Number.Low, cell.Number.High = nil, nil
	}
	return cell
}

const addedHead = "added"

// briefAdded returns the column with what a cell adds. ok is false unless the loads' primary metric
// is a time.
func briefAdded(r *analysis.Report, cells []analysis.Cell) (col column, ok bool) {
	col, ok = viewOf(r).added(r, cells)
	plain, unit := col.cell, col.Head[1]
	col.cell = func(c analysis.Cell) document.Cell {
		cell := plain(c)
		if p := c.Metrics[c.Primary].Price; p != nil && !c.Baseline {
			cell.Text = p.Even(unit)
		}
		return cell
	}
	return col, ok
}

func verdictCell(c analysis.Cell) document.Cell {
	if c.Baseline {
		return document.Cell{Text: "baseline"}
	}
	if r := c.Metrics[c.Primary].Ratio; r != nil {
		return document.Cell{Text: orDash(r.Word())}
	}
	return nothing
}

// plotOf returns a plot of the ratios, which share a scale, with the range that counts as the same;
// nil: there is nothing to plot.
func plotOf(r *analysis.Report, cols []column, t document.Table) *document.Plot {
	at := slices.IndexFunc(cols, func(c column) bool {
		return c.Head[0] == percentHead || strings.HasPrefix(c.Head[1], percentHead+" ")
	})
	if at < 0 {
		return nil
	}
	p := document.Plot{Column: at, Before: at, Baseline: 1, Same: r.Plan.Same, Scale: percent,
		Least: leastPlot}
	if p.Show(t.Rows); p.From == p.To {
		return nil
	}
	return &p
}

const (
	leastPlot   = 12 // columns: with fewer, no plot is drawn
	leastPhrase = 12 // columns
)

// fewest keeps the first three points of a list, and appends how many it leaves out.
func fewest(s document.Section) document.Section {
	const most = 3
	l := s.Blocks[0].(document.List)
	if n := len(l.Items) - most; n > 0 {
		l.Items = append(slices.Clone(l.Items[:most]), fmt.Sprintf("and %d more: --details", n))
	}
	s.Blocks = []document.Block{l}
	return s
}

func provenance(r *analysis.Report) string {
	return briefRun(r.Plan) + document.Facts + viewOf(r).detailed + ", machine: --details"
}
