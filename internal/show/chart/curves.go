package chart

import (
	"fmt"
	"slices"
	"strings"

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
			all.add(ratioCurves(r, cells, m, heads.Title(m, w)))
		}
		all.add(figureCurves(r, cells, cells[0].Primary, heads.Title(cells[0].Primary, w)))
		return all
	})
}

// An entry returns a cell's point and its row of the table; ok is false if it has none.
type entry func(c analysis.Cell) (p growthPoint, row []string, ok bool)

// curvesOf returns the curves of the cells and the rows of the table. The cells are at the shapes
// that at returns; those in shapes come first.
func curvesOf(cells []analysis.Cell, shapes []string, at func(analysis.Cell) string, of entry) (
	spec growths, rows [][]string) {
	spec.Shapes = shapes
	for _, c := range cells {
		point, row, ok := of(c)
		if !ok {
			continue
		}
		point.Shape = at(c)
		spec.add(c.Label(), point)
		rows = append(rows, append([]string{c.Name()}, row...))
	}
	return spec, rows
}

// overPoints returns the curves over a sweep's points.
func overPoints(r *analysis.Report, cells []analysis.Cell, of entry) (growths, [][]string) {
	var points []string
	for _, p := range r.Plan.Sweep.Points {
		points = append(points, p.Name)
	}
	spec, rows := curvesOf(cells, points, func(c analysis.Cell) string { return c.Point }, of)
	spec.Across = sweep.Noun(r.Plan)
	return spec, rows
}

// medians returns the entries with a metric's medians.
func medians(metric string, unit scale) entry {
	return func(c analysis.Cell) (p growthPoint, row []string, ok bool) {
		m, ok := c.Metrics[metric]
		if !ok {
			return p, nil, false
		}
		p.Value, row = fourDigits(m.Median*unit.by),
			[]string{threeDigits(m.Median * unit.by), "", ""}
		if len(m.Rounds) > 1 {
			p.Low, p.High = ends(fourDigits(m.Low*unit.by), fourDigits(m.High*unit.by))
			row[1], row[2] = threeDigits(m.Low*unit.by), threeDigits(m.High*unit.by)
		}
		return p, row, true
	}
}

// medianChart returns the chart of curves of medians. first is the head of the table's first
// column.
func medianChart(title, first string, unit scale, spec growths, rows [][]string) document.Chart {
	spec.Axis = unit.unit
	return document.Chart{Kind: "scaling", Title: title, Spec: spec,
		How:   "The median over the rounds, with its 95 % interval.",
		Table: tableOf(rows, first, medianIn(unit.unit), "from", "to")}
}

// ratioCurves draws the ratios to the baseline at the same point. ok is false if there are none.
func ratioCurves(r *analysis.Report, cells []analysis.Cell, metric, name string) (c document.Chart,
	ok bool) {
	direction := "lower is better"
	spec, rows := overPoints(r, cells, func(c analysis.Cell) (p growthPoint, row []string, ok bool) {
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
			p.Low, p.High = ends(fourDigits(x.Low), fourDigits(x.High))
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
	spec, rows := overPoints(r, cells, medians(metric, unit))
	return medianChart(name+" by "+sweep.Noun(r.Plan), "mode and point", unit, spec, rows),
		len(rows) > 0
}

// growths are curves over growing crowds, or over a sweep's points.
type growths struct {
	Axis string `json:"axis"`
	// Line is the baseline, and Band what counts as the same. If they are nil, the axis begins at
	// 0.
	Line   *float64    `json:"line,omitempty"`
	Band   *[2]float64 `json:"band,omitempty"`
	Across string      `json:"across"`
	Shapes []string    `json:"shapes"`
	Series []growth    `json:"series"`
}

type growth struct {
	Label  string        `json:"label"`
	Points []growthPoint `json:"points"`
}

type growthPoint struct {
	Shape string   `json:"shape"`
	Value float64  `json:"value"`
	Low   *float64 `json:"low,omitempty"`
	High  *float64 `json:"high,omitempty"`
}

// add adds a point to the curve with the label.
func (s *growths) add(label string, p growthPoint) {
	index(&s.Shapes, p.Shape)
	i := slices.IndexFunc(s.Series, func(g growth) bool { return g.Label == label })
	if i < 0 {
		i = len(s.Series)
		s.Series = append(s.Series, growth{Label: label})
	}
	s.Series[i].Points = append(s.Series[i].Points, p)
}

// Crowds returns a comparison's charts, and how each mode scales.
func Crowds(r *analysis.Report) []document.ChartGroup {
	return groups(r, false, func(r *analysis.Report, w workload.Workload, cells []analysis.Cell) (
		all charts) {
		all.add(scalingChart(cells, w.Rate, "Total "+lowerFirst(heads.Title(w.Rate, w))))
		all.add(scalingChart(cells, workload.ClientFairness,
			"Fairness between clients (Jain's index)"))
		all.add(scalingChart(cells, w.CPU(), heads.Title(w.CPU(), w)))
		return append(all, comparing(r, w, cells)...)
	})
}

// scalingChart draws a metric over the shapes. ok is false if there is only one shape.
func scalingChart(cells []analysis.Cell, metric, title string) (c document.Chart, ok bool) {
	unit := scaleOf(cells, metric)
	if unit.unit == "1" {
		unit.unit = ""
	}
	spec, rows := curvesOf(cells, nil, func(c analysis.Cell) string { return c.Shape.String() },
		medians(metric, unit))
	spec.Across = "servers × clients × processes in each"
	return medianChart(title, "mode and shape", unit, spec, rows), len(spec.Shapes) > 1
}

func lowerFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}
