package chart

import (
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/sweep"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/heads"
)

// Curves returns the charts of a sweep: each judged metric against the baseline, and the primary
// metric's figures.
func Curves(r *analysis.Report) []document.ChartGroup {
	return groups(r, false, func(r *analysis.Report, w workload.Workload, cells []analysis.Cell) (
		all charts) {
		for _, m := range judged(w) {
			all.add(ratioCurves(r, cells, m, heads.Title(m, w.Noun)))
		}
		all.add(figureCurves(r, cells, cells[0].Primary, heads.Title(cells[0].Primary, w.Noun)))
		return all
	})
}

// curvesOf returns the curves of the cells and the rows of the table. entry returns a cell's point
// and its row; ok is false if it has none.
func curvesOf(r *analysis.Report, cells []analysis.Cell,
	entry func(c analysis.Cell) (p growthPoint, row []string, ok bool)) (growths, [][]string) {
	spec := growths{Across: sweep.Noun(r.Plan)}
	var rows [][]string
	for _, p := range r.Plan.Sweep.Points {
		spec.Shapes = append(spec.Shapes, p.Name)
	}
	for _, c := range cells {
		point, row, ok := entry(c)
		if !ok {
			continue
		}
		i := slices.IndexFunc(spec.Series, func(g growth) bool { return g.Label == c.Label() })
		if i < 0 {
			i = len(spec.Series)
			spec.Series = append(spec.Series, growth{Label: c.Label()})
		}
		point.Shape = c.Point
		spec.Series[i].Points, rows = append(spec.Series[i].Points, point),
			append(rows, append([]string{c.Name()}, row...))
	}
	return spec, rows
}

// ratioCurves draws the ratios to the baseline at the same point. ok is false if there are none.
func ratioCurves(r *analysis.Report, cells []analysis.Cell, metric, name string) (c document.Chart,
	ok bool) {
	direction := "lower is better"
	spec, rows := curvesOf(r, cells, func(c analysis.Cell) (p growthPoint, row []string, ok bool) {
		m := c.Metrics[metric]
		x := m.Ratio
		if x == nil {
			return p, nil, false
		}
		if m.Higher {
			direction = "higher is better"
		}
		row = []string{x.String(), string(x.Verdict)}
		p.Value = fourDigits(x.Median)
		if x.N > 1 {
			low, high := fourDigits(x.Low), fourDigits(x.High)
			p.Low, p.High = &low, &high
		}
		if metric == c.Primary {
			row = append(row, string(c.Band))
		}
		return p, row, true
	})
	one := 1.0
	spec.Line, spec.Axis = &one, "ratio to "+r.Plan.Baseline+", "+direction
	how := "Dot: the ratio to " + r.Plan.Baseline +
		" at the same point; bar: its 95 % interval; line: " + r.Plan.Baseline + "."
	if s := r.Plan.Same; s > 0 {
		spec.Band = &[2]float64{1 - s, 1 + s}
		how += fmt.Sprintf(" The band of ± %.3g %% counts as the same.", 100*s)
	}
	heads := []string{"mode and point", "ratio to " + r.Plan.Baseline, "verdict"}
	if metric == cells[0].Primary {
		heads = append(heads, "of the curve")
		how += " " + sweep.Meant(r.Plan)
	}
	return document.Chart{Kind: "scaling", Title: fmt.Sprintf(
		"%s by %s, against %s", name, sweep.Noun(r.Plan), r.Plan.Baseline), How: how, Spec: spec,
		Table: tableOf(rows, heads...)}, len(rows) > 0
}

func figureCurves(r *analysis.Report, cells []analysis.Cell, metric, name string) (c document.Chart,
	ok bool) {
	unit := scaleOf(cells, metric)
	spec, rows := curvesOf(r, cells, func(c analysis.Cell) (p growthPoint, row []string, ok bool) {
		m, ok := c.Metrics[metric]
		if !ok {
			return p, nil, false
		}
		p.Value, row = fourDigits(m.Median*unit.by),
			[]string{threeDigits(m.Median * unit.by), "", ""}
		if len(m.Rounds) > 1 {
			low, high := fourDigits(m.Low*unit.by), fourDigits(m.High*unit.by)
			p.Low, p.High = &low, &high
			row[1], row[2] = threeDigits(m.Low*unit.by), threeDigits(m.High*unit.by)
		}
		return p, row, true
	})
	spec.Axis = unit.unit
	return document.Chart{Kind: "scaling", Title: name + " by " + sweep.Noun(r.Plan),
		How: "The median over the rounds, with its 95 % interval.", Spec: spec,
		Table: tableOf(rows, "mode and point", medianIn(unit.unit), "from", "to")}, len(rows) > 0
}
