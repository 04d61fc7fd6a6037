package chart

import (
	"fmt"
	"math"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/difference"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/heads"
)

// Difference returns a chart for each metric that both runs have, in groups by placement, load and
// backend.
func Difference(r *difference.Report) document.Page {
	return document.Page{Title: "What differs between two runs", Command: "toll diff",
		Lede: differenceLine(r), Groups: differenceGroups(r)}
}

func differenceGroups(r *difference.Report) []document.ChartGroup {
	var out []document.ChartGroup
	for _, cells := range r.Groups() {
		var all charts
		drawn := map[string]bool{}
		for _, c := range cells {
			for _, m := range difference.Metrics(c) {
				if !drawn[m] {
					drawn[m] = true
					all.add(changeChart(r, cells, m))
				}
			}
		}
		out = all.under(differenceTitle(r, cells[0]), out)
	}
	return out
}

func differenceTitle(r *difference.Report, c difference.Cell) string {
	title := "From " + c.From.Words() + ", " + c.Load
	if slices.ContainsFunc(r.Cells, func(o difference.Cell) bool { return o.On != c.On }) {
		title += ", on " + c.On
	}
	if c.Pin != "" && slices.ContainsFunc(r.Cells, func(o difference.Cell) bool {
		return o.Pin != c.Pin
	}) {
		title += ", on " + analysis.PinWords(c.Pin)
	}
	return title
}

// changeChart draws the factors by which the ratios to the baseline changed. ok is false if there
// are none.
func changeChart(r *difference.Report, cells []difference.Cell, metric string) (c document.Chart,
	ok bool) {
	one := 1.0
	spec := intervals{Line: &one, Change: true, Rows: []intervalRow{}}
	if r.Same > 0 {
		spec.Band = &[2]float64{1 - r.Same, 1 + r.Same}
	}
	var w workload.Workload
	direction := "lower is better"
	var rows [][]string
	for _, cell := range cells {
		m, has := cell.Metrics[metric]
		if !has || m.Ratio == nil && !cell.Baseline {
			continue
		}
		w = workload.Of(sample.Load{Kind: cell.Load})
		if m.Higher {
			direction = "higher is better"
		}
		ok = ok || m.Ratio != nil
		row, entry := changeRow(cell, m)
		spec.Rows, rows = append(spec.Rows, row), append(rows, entry)
	}
	spec.Axis = "change of the ratio to " + r.Baseline + ", " + direction
	spec.cut()
	how := fmt.Sprintf(
		"Each dot is the new run's ratio to %s over the old run's, the bar its 95 %% "+
			"interval: right of the line it grew.", r.Baseline)
	if spec.Band != nil {
		how += fmt.Sprintf(" The band of ± %.3g %% counts as the same.", 100*r.Same)
	}
	table := tableOf(rows, heads.Row(cells[0].On), "in Docker's words", "old ratio", "new ratio", "change", "from",
		"to", "verdict")
	table.Columns[1].Right = false
	title := heads.Title(metric, w) + ": the new run against the old one"
	return document.Chart{Kind: "interval", Title: title, How: how + spec.cutNote(), Spec: spec,
		Table: table.WithoutEmpty()}, ok
}

// changeRow returns a cell's row of the chart, and its entry in the table.
func changeRow(cell difference.Cell, m difference.Metric) (row intervalRow, entry []string) {
	phrase := dockerWords(analysis.Cell{Cell: cell.Cell})
	row = intervalRow{Label: cell.Label, Docker: phrase, Value: 1, Text: "baseline"}
	x := m.Ratio
	if x == nil {
		return row, []string{row.Label, phrase, "100 %", "100 %", "", "", "", row.Text}
	}
	old, now := x.Old.Brief(), x.New.Brief()
	if x.Varies() {
		row.None, row.Figure, row.Text = true, old+" → "+now, analysis.Varying
		return row, []string{row.Label, phrase, old, now, "", "", "", row.Text}
	}
	row.Value, row.Verdict, row.Figure = x.Median, string(x.Verdict), old+" → "+now
	entry = []string{row.Label, phrase, old, now, percentText(x.Median), "", "", row.Verdict}
	if !x.HasInterval() {
		row.Text = percentText(x.Median) + " (?) " + row.Verdict
		entry[4] += " (?)"
		return row, entry
	}
	row.Low, row.High = &x.Low, &x.High
	row.Text = fmt.Sprintf("%s (%s to %s) %s", percentText(x.Median), percentText(x.Low),
		percentText(x.High), row.Verdict)
	entry[5], entry[6] = percentText(x.Low), percentText(x.High)
	return row, entry
}

func percentText(factor float64) string {
	const tenths = 10
	return fmt.Sprintf("%+.1f %%", math.Round(100*tenths*(factor-1))/tenths+0) // 0, not -0
}
