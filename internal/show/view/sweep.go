package view

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/sweep"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/chart"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

func sweepView(v *view) {
	v.title, v.command = "What network modes cost as the load varies", "toll compare --sweep"
	v.charts = onBase(chart.Curves)
	v.columns, v.cellTitle, v.above, v.layouts, v.single = sweepColumns, sweepTitle, curveHeads,
		onlyGaps, true
	v.brief, v.briefTitle = briefSweep, briefSweepTitle
	v.briefNotes = "The last column is about a mode's whole curve. costs: the point is beyond the difference that counts as the same; within: it is not. " +
		"At most 5 % of the curves are labelled wrongly. Each point has a 95 % interval of its own."
}

func curveHeads(cells []analysis.Cell, i int) document.Text {
	c := cells[i]
	if i > 0 && cells[i-1].Label() == c.Label() {
		return nil
	}
	head := document.Strongly(c.Label())
	if phrase := c.Phrase(); phrase != c.Label() {
		head = head.Then("  "+phrase, document.Faint)
	}
	return head
}

func pointColumn(r *analysis.Report) column {
	head := figures("", "point")
	if r.Plan.Sweep != nil {
		head = figures("", r.Plan.Sweep.Axis)
	}
	return column{head, textOf(func(c analysis.Cell) string { return c.Point })}
}

func sweepColumns(r *analysis.Report, load string) []column {
	return append(columnsWith(r, load, []column{pointColumn(r)}, "to "+r.Plan.Baseline),
		bandColumn(r))
}

// briefSweep returns a comparison's columns, with a word about the curve instead of the verdict.
func briefSweep(r *analysis.Report, cells []analysis.Cell) []column {
	out := briefFigures(r, cells, []column{pointColumn(r)}, r.Plan.Baseline)
	out[len(out)-1] = bandColumn(r)
	return out
}

func bandColumn(r *analysis.Report) column {
	const percent = 100
	head := texts("", "certain")
	if r.Plan.Same > 0 {
		head = texts("over", fmt.Sprintf("%.3g %%", percent*r.Plan.Same))
	}
	return column{head, func(c analysis.Cell) document.Cell {
		if c.Baseline {
			return document.Cell{Text: "baseline"}
		}
		return document.Cell{Text: orDash(string(c.Band)), Style: bandStyles[c.Band]}
	}}
}

var bandStyles = map[analysis.Band]document.Style{
	analysis.Beyond: document.Bad, analysis.Within: document.Plain,
	analysis.Unknown: document.Doubtful}

func sweepTitle(r *analysis.Report, cells []analysis.Cell) string {
	c := cells[0]
	l := r.Plan.Loads.Of(c.Load)
	return fmt.Sprintf("%s %s %s%s, %s", printable.Capital(placeWords(c.From)), arrow(l),
		servedAt(cells, targetOf), sayOn(r, c.On), sweep.LoadWords(r.Plan, l))
}

func briefSweepTitle(r *analysis.Report, cells []analysis.Cell) document.Text {
	c := cells[0]
	l := r.Plan.Loads.Of(c.Load)
	return document.Strongly(printable.Capital(workload.Of(l).Noun)+" from "+placeWords(
		c.From)+sayOn(r, c.On)).
		Then(", "+sweep.LoadWords(r.Plan, l)+", "+direction(workload.MetricOf(c.Primary, l)),
			document.Faint)
}
