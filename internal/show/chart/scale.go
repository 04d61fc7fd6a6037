package chart

import (
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/heads"
)

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

// Crowds returns a comparison's charts, and how each mode scales.
func Crowds(r *analysis.Report) []document.ChartGroup {
	return groups(r, false, func(r *analysis.Report, w workload.Workload, cells []analysis.Cell) (
		all charts) {
		all.add(scalingChart(cells, w.Rate, "Total "+lowerFirst(heads.Title(w.Rate, "rate"))))
		all.add(scalingChart(cells, workload.ClientFairness,
			"Fairness between clients (Jain's index)"))
		all.add(scalingChart(cells, w.CPU(), heads.Title(w.CPU(), "CPU time")))
		return append(all, comparing(r, w, cells)...)
	})
}

// scalingChart draws a metric over the shapes. ok is false if there is only one shape.
func scalingChart(cells []analysis.Cell, metric, title string) (c document.Chart, ok bool) {
	unit := scaleOf(cells, metric)
	if unit.unit == "1" {
		unit.unit = ""
	}
	spec := growths{Axis: unit.unit, Across: "servers × clients × processes in each"}
	var rows [][]string
	for _, cell := range cells {
		m, has := cell.Metrics[metric]
		if !has {
			continue
		}
		shape := cell.Shape.String()
		if !slices.Contains(spec.Shapes, shape) {
			spec.Shapes = append(spec.Shapes, shape)
		}
		i := slices.IndexFunc(spec.Series, func(g growth) bool { return g.Label == cell.Label() })
		if i < 0 {
			i = len(spec.Series)
			spec.Series = append(spec.Series, growth{Label: cell.Label()})
		}
		point := growthPoint{Shape: shape, Value: fourDigits(m.Median * unit.by)}
		entry := []string{cell.Name(), threeDigits(m.Median * unit.by), "", ""}
		if len(m.Rounds) > 1 {
			low, high := fourDigits(m.Low*unit.by), fourDigits(m.High*unit.by)
			point.Low, point.High = &low, &high
			entry[2], entry[3] = threeDigits(m.Low*unit.by), threeDigits(m.High*unit.by)
		}
		spec.Series[i].Points, rows = append(spec.Series[i].Points, point), append(rows, entry)
	}
	how := "The median over the rounds, with its 95 % interval."
	return document.Chart{Kind: "scaling", Title: title, How: how, Spec: spec,
			Table: tableOf(rows, "mode and shape", medianIn(unit.unit), "from", "to")},
		len(spec.Shapes) > 1
}

func lowerFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}
