package view

import (
	"cmp"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/heads"
)

func loadColumns(r *analysis.Report, load string, cs []heads.Column) []column {
	var out []column
	for _, c := range cs {
		if c.Show == heads.Fitted {
			c.Head[1], c.Scale = fitting(r, load, c.Metric)
			c.Show = heads.Median
		}
		out = append(out, column{document.Column{
			Head: c.Head, Right: c.Show != heads.LimitedBy, Quiet: c.Quiet}, figure(c)})
	}
	return out
}

func figure(c heads.Column) func(analysis.Cell) document.Cell {
	switch c.Show {
	case heads.Merged:
		return merged(c.Metric, digits(c.Scale))
	case heads.Integer:
		return worded(c.Metric, rounded)
	case heads.Hundredths:
		return hundredths(c.Metric, c.Scale)
	case heads.Share:
		return worded(c.Metric, share)
	case heads.Rare:
		return scaledOr0(c.Metric)
	case heads.Total:
		return merged(c.Metric, fixed(0, 1))
	case heads.Added:
		if c.Scale == micro {
			return adds(c.Metric, analysis.Price.String)
		}
		return added(c.Metric)
	case heads.Much:
		return much(c.Metric, c.Scale)
	case heads.LimitedBy:
		return textOf(limitedBy)
	}
	return scaled(c.Metric, c.Scale)
}

func limitedBy(c analysis.Cell) string {
	return strings.TrimSuffix(strings.TrimSuffix(cmp.Or(c.LimitedBy, "-"), " cores"), " core")
}

func hundredths(metric string, by float64) func(analysis.Cell) document.Cell {
	return worded(metric, fixed(2, by)) //nolint:mnd // decimals
}

func much(metric string, least float64) func(analysis.Cell) document.Cell {
	return worded(metric, func(x float64) string {
		if x < least {
			return nothing.Text
		}
		return fixed(0, percent)(x) + " %"
	})
}

// scaledOr0 shows a share in % with three significant digits, because small ones matter, or 0.
func scaledOr0(metric string) func(analysis.Cell) document.Cell {
	return func(c analysis.Cell) document.Cell {
		if m, ok := c.Metrics[metric]; ok && m.Median == 0 {
			return median("0", m)
		}
		return scaled(metric, percent)(c)
	}
}

// fitting returns the unit that fits the middle one of a metric's rows, and the factor that
// converts to it.
func fitting(r *analysis.Report, load, metric string) (unit string, by float64) {
	var rows []float64
	for _, c := range r.Cells {
		if m, ok := c.Metrics[metric]; ok && c.Load == load {
			rows, unit = append(rows, m.Median), m.Unit
		}
	}
	usual := 0.0
	if slices.Sort(rows); len(rows) > 0 {
		usual = rows[len(rows)/2]
	}
	return heads.Unit(unit, usual)
}

func describeLoad(r *analysis.Report, kind string) string {
	l := r.Plan.Loads.Of(kind)
	return workload.Of(l).Words(l)
}
