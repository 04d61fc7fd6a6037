package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/heads"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

type column struct {
	document.Column
	cell func(c analysis.Cell) document.Cell
}

func texts(a, b string) document.Column { return document.Column{Head: [2]string{a, b}} }

func figures(a, b string) document.Column {
	return document.Column{Head: [2]string{a, b}, Right: true}
}

var (
	modeColumn = column{texts("", "mode"), textOf(analysis.Cell.Label)}
	pathColumn = column{document.Column{Head: [2]string{"", "path"}, Below: true}, pathCell}
)

func textOf(of func(analysis.Cell) string) func(analysis.Cell) document.Cell {
	return func(c analysis.Cell) document.Cell { return document.Cell{Text: of(c)} }
}

func pathText(c analysis.Cell) string { return strings.Join(c.Hops, "·") }

func pathCell(c analysis.Cell) document.Cell {
	text := pathText(c)
	return document.Cell{Text: text, Short: strings.ReplaceAll(text, string(mode.HopBridge), "br")}
}

const (
	giga, kilo, perGB = heads.Giga, heads.Kilo, heads.PerGB
	micro, milli      = heads.Micro, heads.Milli
	percent           = heads.Percent
)

func columnsOf(r *analysis.Report, load string) []column { return viewOf(r).columns(r, load) }

// columnsWith returns first, the load's columns and the ratio. to is the second line of the ratio's
// head.
func columnsWith(r *analysis.Report, load string, first []column, to string) []column {
	l := r.Plan.Loads.Of(load)
	t := heads.Of(l)
	out := append(first, loadColumns(r, load, t.Columns)...)
	return append(out, column{texts(t.Ratio, to), ratio(workload.Of(l).Primary)})
}

func columnsFor(r *analysis.Report, cells []analysis.Cell) []column {
	cols := slices.DeleteFunc(columnsOf(r, cells[0].Load), func(c column) bool {
		return c.Head[0] == workload.Elapsed && len(withoutQuiet([]column{c}, cells)) == 0
	})
	if more, ok := addedColumn(r, cells); ok {
		cols = slices.Insert(cols, len(cols)-1, more)
	}
	return cols
}

func tableOf(cols []column, cells []analysis.Cell, layouts []document.Layout) document.Table {
	t := document.Table{Level: 1, Layouts: layouts}
	for _, col := range cols {
		t.Columns = append(t.Columns, col.Column)
	}
	for _, c := range cells {
		row := document.Row{Style: styleOf(verdictOf(c))}
		for _, col := range cols {
			row.Cells = append(row.Cells, col.cell(c))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

var nothing = document.Cell{Text: "-"}

func scaled(metric string, by float64) func(analysis.Cell) document.Cell {
	return func(c analysis.Cell) document.Cell {
		m, ok := c.Metrics[metric]
		if !ok {
			return nothing
		}
		if v := c.Varies; v != nil && v.Metric == metric {
			return document.Cell{Text: analysis.Span(v.Low*by, v.High*by), Number: &document.Number{
				Value: m.Median, Low: &v.Low, High: &v.High, Unit: m.Unit}}
		}
		return median(units.Digits(m.Median*by), m)
	}
}

// shown returns cells with the level that agrees with the difference from the baseline.
func shown(metric string, by float64) func(analysis.Cell) document.Cell {
	raw := scaled(metric, by)
	return func(c analysis.Cell) document.Cell {
		m, ok := c.Metrics[metric]
		if !ok || m.Shown() == m.Median || c.Varies != nil && c.Varies.Metric == metric {
			return raw(c)
		}
		return numberCell(units.Digits(m.Shown()*by), m.Shown(), m.Unit)
	}
}

// worded returns cells with the median of a metric in words, or nothing if these are.
func worded(metric string, text func(float64) string) func(analysis.Cell) document.Cell {
	return func(c analysis.Cell) document.Cell {
		if m, ok := c.Metrics[metric]; ok && text(m.Median) != nothing.Text {
			return median(text(m.Median), m)
		}
		return nothing
	}
}

func merged(metric string, text func(float64) string) func(analysis.Cell) document.Cell {
	return func(c analysis.Cell) document.Cell {
		if m := c.Metrics[metric]; m.Merged != nil {
			return numberCell(text(*m.Merged), *m.Merged, m.Unit)
		}
		return nothing
	}
}

func digits(by float64) func(float64) string {
	return func(x float64) string { return units.Digits(x * by) }
}

func fixed(decimals int, by float64) func(float64) string {
	return func(x float64) string { return fmt.Sprintf("%.*f", decimals, x*by) }
}

func share(x float64) string {
	if x == 0 {
		return "0"
	}
	return fixed(1, percent)(x)
}

func rounded(x float64) string {
	if const10k := 1e4; x >= const10k {
		return fmt.Sprintf("%.0fk", x/1000)
	}
	return fmt.Sprintf("%.0f", x)
}

func median(text string, m analysis.Metric) document.Cell {
	n := document.Number{Value: m.Median, Unit: m.Unit}
	if m.Low <= m.Median && m.Median <= m.High {
		n.Low, n.High = &m.Low, &m.High
	}
	return document.Cell{Text: text, Number: &n}
}

func ratio(metric string) func(analysis.Cell) document.Cell {
	return func(c analysis.Cell) document.Cell {
		r := c.Metrics[metric].Ratio
		switch {
		case c.Baseline:
			return numberCell("100 %", 1, analysis.RatioUnit)
		case r == nil:
			return nothing
		}
		return ratioCell(fmt.Sprintf("%s %s", r, r.Word()), *r)
	}
}

func numberCell(text string, x float64, unit string) document.Cell {
	return document.Cell{Text: text, Number: &document.Number{Value: x, Unit: unit}}
}

func ratioCell(text string, r analysis.Ratio) document.Cell {
	return document.Cell{Text: text, Number: &document.Number{
		Value: r.Median, Low: &r.Low, High: &r.High,
		Unit: analysis.RatioUnit, Verdict: string(r.Verdict), Varies: r.Varies}}
}

func priceCell(text string, p analysis.Price) document.Cell {
	return document.Cell{Text: text, Number: &document.Number{
		Value: p.Median, Low: &p.Low, High: &p.High,
		Unit: p.Unit, Verdict: string(p.Verdict)}}
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func verdictOf(c analysis.Cell) stats.Verdict {
	if r := c.Metrics[c.Primary].Ratio; r != nil {
		return r.Verdict
	}
	return ""
}

func styleOf(v stats.Verdict) document.Style {
	return map[stats.Verdict]document.Style{stats.Better: document.Good, stats.Gains: document.Good,
		stats.Worse: document.Bad, stats.Costs: document.Bad, stats.Unclear: document.Doubtful}[v]
}

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
	raw, agreed := scaled(c.Metric, c.Scale), shown(c.Metric, c.Scale)
	return func(of analysis.Cell) document.Cell {
		cell := raw(of)
		if text := agreed(of).Text; text != cell.Text {
			cell.Drawn = text
		}
		return cell
	}
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
