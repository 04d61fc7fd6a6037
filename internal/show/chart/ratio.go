package chart

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/heads"
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
	to, direction, varies, merged := "", "lower is better", false, false
	for _, cell := range cells {
		m := cell.Metrics[metric]
		if m.Ratio != nil {
			to, varies = m.Ratio.To, varies || m.Ratio.Varies
		}
		if m.Higher {
			direction = "higher is better"
		}
		merged = merged || m.Merged != nil
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
	if merged {
		how += " Figures are medians of the rounds'; tables have those of all samples."
	}
	if spec.Band != nil {
		how += fmt.Sprintf(" The band of ± %.3g %% counts as the same.", 100*r.Plan.Same)
	}
	table := tableOf(rows, heads.Row(cells[0].On), "in Docker's words", "level", "ratio to "+to, "verdict",
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

// An axis ends before outliers, because they would squeeze the rest. The drawing marks what is cut,
// and the tables have every figure.
const (
	leastFar  = 0.25 // the smallest distance of ratios that matters
	cutEnds   = 1    // spans that intervals may add to the axis on either side
	cutValues = 20   // a value this many times as far as any other is cut
	cutPad    = 1.5  // distances of the other values that the axis then reaches
	cutRounds = 3    // a round this many times as high as the highest median is cut
	roundsTop = 2    // medians at which the axis then ends
	axisPad   = 0.04 // share of the axis that the drawing adds on either side
)

// limits returns the ends of an axis that shows values and the ends of their intervals around a
// line, or nil if nothing has to be cut. Distances less than least count as least.
func limits(line, least float64, values, ends []float64) *[2]float64 {
	if len(values) == 0 {
		return nil
	}
	kept := withoutFar(line, least, values)
	low, high := min(line, slices.Min(kept)), max(line, slices.Max(kept))
	span := cutEnds * max(high-low, least)
	all := slices.Concat(values, ends)
	out := [2]float64{max(low-span, slices.Min(all)), min(high+span, slices.Max(all))}
	if len(kept) < len(values) { // cut close to what is left
		out[0] = max(out[0], line-cutPad*max(line-low, least))
		out[1] = min(out[1], line+cutPad*max(high-line, least))
	}
	pad := axisPad * (out[1] - out[0])
	if out[0]-pad <= slices.Min(all) && out[1]+pad >= slices.Max(all) {
		return nil
	}
	return &out
}

// withoutFar leaves out values much farther from the line than all others.
func withoutFar(line, least float64, values []float64) []float64 {
	far := func(x float64) float64 { return max(x-line, line-x) }
	sorted := slices.Clone(values)
	slices.SortFunc(sorted, func(a, b float64) int { return cmp.Compare(far(a), far(b)) })
	n := len(sorted)
	for i := n - 1; i > 0 && i >= n-max(1, n/4); i-- {
		if far(sorted[i]) > cutValues*max(far(sorted[i-1]), least) {
			return sorted[:i]
		}
	}
	return sorted
}

// topOf returns the end of an axis of rounds, or nil if the axis reaches the highest round.
func topOf(medians []float64, highest float64) *float64 {
	if len(medians) == 0 {
		return nil
	}
	m := slices.Max(medians)
	if m <= 0 || highest <= cutRounds*m {
		return nil
	}
	m *= roundsTop
	return &m
}

func (s *intervals) cut() {
	var values, ends []float64
	for _, r := range s.Rows {
		if r.None {
			continue
		}
		if r.Varies { // a range has no typical value
			values = append(values, *r.Low, *r.High)
			continue
		}
		values = append(values, r.Value)
		if r.Beside != nil {
			values = append(values, *r.Beside)
		}
		if r.Low != nil && r.High != nil {
			ends = append(ends, *r.Low, *r.High)
		}
	}
	s.Limits = limits(1, leastFar, values, ends)
}

// cutNote explains the marks of what is cut. It returns "" if nothing is cut.
func (s *intervals) cutNote() string {
	if s.Limits == nil {
		return ""
	}
	return " ◂ and ▸: it goes on beyond the chart."
}
