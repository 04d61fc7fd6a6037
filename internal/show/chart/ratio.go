package chart

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// ratioChart draws the ratios to the baseline. ok is false if there are none.
func ratioChart(r *analysis.Report, cells []analysis.Cell, metric, name string) (c document.Chart,
	ok bool) {
	one := 1.0
	spec := intervals{Line: &one, Rows: []intervalRow{}}
	if s := r.Plan.Same; s > 0 {
		spec.Band = &[2]float64{1 - s, 1 + s}
	}
	unit := scaleOf(cells, metric)
	var rows [][]string
	to, direction, varies := "", "lower is better", false
	for _, cell := range cells {
		m := cell.Metrics[metric]
		if m.Ratio != nil {
			to, varies = m.Ratio.To, varies || m.Ratio.Varies
		}
		if m.Higher {
			direction = "higher is better"
		}
		row, entry := ratioRow(cell, m, unit)
		spec.Rows, rows = append(spec.Rows, row), append(rows, entry)
	}
	if to == "" {
		return c, false
	}
	spec.cut()
	spec.Axis = "ratio to " + to + ", " + direction
	how := "Dot: the ratio to " + to + "; bar: its 95 % interval; line: " + to + "."
	if varies {
		how += " A mode that varies has no dot; its bar is the range."
	}
	if spec.Band != nil {
		how += fmt.Sprintf(" The band of ± %.3g %% counts as the same.", 100*r.Plan.Same)
	}
	table := tableOf(rows, "mode", "in Docker's words", "median", "ratio to "+to, "verdict",
		"adds")
	table.Columns[1].Right = false
	return document.Chart{Kind: "interval", Title: name + ", against " + to,
		How:  how + spec.cutNote(),
		Spec: spec, Table: table.WithoutEmpty()}, true
}

// ratioRow returns a cell's row of the chart, and its entry in the table. A cell without the metric
// or a ratio has them too, because a chart must not lack a cell.
func ratioRow(cell analysis.Cell, m analysis.Metric, unit scale) (row intervalRow, entry []string) {
	row = intervalRow{Label: cell.Name(), Docker: dockerWords(cell), Figure: unit.text(m.Shown()),
		Value: 1, Text: "baseline"}
	if v := cell.Varies; v != nil {
		row.Figure = analysis.Span(v.Low*unit.by, v.High*unit.by) + " " + unit.unit
	}
	entry = []string{row.Label, row.Docker, row.Figure, analysis.Percent(1), row.Text, ""}
	x := m.Ratio
	switch {
	case len(m.Rounds) == 0:
		row.Figure, row.Text, row.None = "", notMeasured, true
	case x == nil && !cell.Baseline:
		row.Text, row.None = "no ratio", true
	}
	if row.None {
		entry[2], entry[3], entry[4] = row.Figure, "", row.Text
	}
	if x == nil || row.None {
		return row, entry
	}
	row.Value, row.Verdict = x.Median, string(x.Verdict)
	row.Text = x.String() + " " + x.Word()
	entry[3], entry[4] = x.String(), x.Word()
	if x.N > 1 {
		row.Low, row.High, row.Varies = &x.Low, &x.High, x.Varies
	}
	if p := m.Price; p != nil && (p.Varies || p.Verdict != stats.Unclear) {
		row.More = p.Fitting()
		entry[5] = row.More
	}
	return row, entry
}

const notMeasured = "not measured"

// dockerWords returns a cell's name in Docker's words, or "" if they are its label or it is tuned.
func dockerWords(c analysis.Cell) string {
	if text := c.Phrase(); text != c.Label() && c.Tune == "" {
		return text
	}
	return ""
}
