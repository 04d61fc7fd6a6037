// Package chart makes the charts of judged reports, as data that package page draws, and the facts
// that a page shows next to them.
package chart

import (
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/sweep"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/heads"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// Cells returns the charts of a comparison, in groups by placement, load and backend.
func Cells(r *analysis.Report) []document.ChartGroup { return groups(r, false, comparing) }

// Searches returns the charts of a search for what makes modes faster: only the ratios, of which it
// has many. Each of several modes has its own groups.
func Searches(r *analysis.Report) []document.ChartGroup {
	several := slices.ContainsFunc(r.Cells, func(c analysis.Cell) bool {
		return c.Baseline && string(c.Mode) != r.Plan.Baseline
	})
	return groups(r, several, ratioCharts)
}

type drawing func(r *analysis.Report, w workload.Workload, cells []analysis.Cell) charts

func comparing(r *analysis.Report, w workload.Workload, cells []analysis.Cell) charts {
	return append(ratioCharts(r, w, cells), figureCharts(r, w, cells)...)
}

// groups returns the charts that draw makes of each group of cells. With apart, each baseline has
// its own groups.
func groups(r *analysis.Report, apart bool, draw drawing) []document.ChartGroup {
	var out []document.ChartGroup
	several := slices.ContainsFunc(r.Cells, func(c analysis.Cell) bool {
		return c.On != r.Cells[0].On
	})
	for rest := r.Cells; len(rest) > 0; {
		first := rest[0]
		n := slices.IndexFunc(rest, func(c analysis.Cell) bool {
			// A search's baseline comes first in its groups: split before it, because the groups of
			// the next search may have the same place and load.
			return c.From != first.From || c.Load != first.Load || c.On != first.On ||
				c.Pin != first.Pin || apart && c.Baseline && c.Mode != first.Mode
		})
		if n < 0 {
			n = len(rest)
		}
		l := r.Plan.Loads.Of(first.Load)
		title := "From " + first.From.Words() + ": " + sweep.LoadWords(r.Plan, l)
		if first.Load == workload.Request {
			title = requested(l, rest[:n])
		}
		if several {
			title += ", on " + first.On
		}
		title += r.Plan.SayPin(first.Pin)
		if apart && first.Baseline {
			title += ", against " + string(first.Mode)
		}
		out = draw(r, workload.Of(l), rest[:n]).under(title, out)
		rest = rest[n:]
	}
	return out
}

// requested returns what was asked, or by which command, over which routes.
func requested(l sample.Load, cells []analysis.Cell) string {
	what := workload.Of(l).Words(l)
	if client := workload.RequestOf(l).Client; client != "" {
		what = printable.Line(client)
	}
	var routes []string
	for _, c := range cells {
		routes = append(routes, c.Name())
	}
	return what + " over " + printable.List(routes)
}

type charts []document.Chart

func (cs *charts) add(c document.Chart, ok bool) {
	if ok {
		*cs = append(*cs, c)
	}
}

// under appends a group with the charts to groups, unless there are none.
func (cs charts) under(title string, groups []document.ChartGroup) []document.ChartGroup {
	if len(cs) == 0 {
		return groups
	}
	return append(groups, document.ChartGroup{Title: title, Charts: cs})
}

func ratioCharts(r *analysis.Report, w workload.Workload, cells []analysis.Cell) (all charts) {
	for _, m := range judged(w) {
		all.add(ratioChart(r, cells, m, heads.Title(m, w)))
	}
	return all
}

func figureCharts(r *analysis.Report, w workload.Workload, cells []analysis.Cell) (all charts) {
	all.add(evidenceChart(cells))
	all.add(tokenChart(cells))
	all.add(curveChart(cells))
	all.add(stripChart(cells, cells[0].Primary, heads.Title(cells[0].Primary, w)))
	all.add(partyChart(cells, w))
	all.add(cpuChart(cells))
	return all
}

func judged(w workload.Workload) []string {
	out := []string{w.Primary}
	for _, m := range []string{workload.LatencyP99, w.CPU()} {
		if !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

func scaleOf(cells []analysis.Cell, metric string) scale {
	var xs []float64
	unit := ""
	for _, c := range cells {
		if m, ok := c.Metrics[metric]; ok {
			xs, unit = append(xs, m.Median), m.Unit
		}
	}
	return scaleFor(unit, largest(xs...))
}

// mostPoints is the largest number of rounds in a row of a strip. If there are more, every second
// or third one and so on is shown.
const mostPoints = 400

func stripChart(cells []analysis.Cell, metric, name string) (c document.Chart, ok bool) {
	unit, axis := scaleOf(cells, metric), "round"
	spec, baselines := strips{Axis: axis}, 0
	var rows [][]string
	var medians, highs []float64
	for _, cell := range cells {
		m, has := cell.Metrics[metric]
		if !has {
			continue
		}
		if cell.Baseline {
			spec.Baseline = cell.Name()
			baselines++
		}
		medians, highs = append(medians, m.Median*unit.by),
			append(highs, slices.Max(m.Rounds)*unit.by)
		every := 1 + (len(m.Rounds)-1)/mostPoints
		one := line{Label: cell.Name()}
		for i := 0; i < len(m.Rounds); i += every {
			round := i
			if m.At != nil && i < len(m.At) {
				round = m.At[i]
			}
			one.Points = append(one.Points, [2]float64{
				float64(round + 1), fourDigits(m.Rounds[i] * unit.by)})
		}
		ok = ok || len(m.Rounds) > 1
		spec.Rows = append(spec.Rows, one)
		rows = append(rows, []string{one.Label, fmt.Sprint(len(m.Rounds)),
			threeDigits(slices.Min(m.Rounds) * unit.by),
			threeDigits(m.Median * unit.by), threeDigits(slices.Max(m.Rounds) * unit.by)})
	}
	if baselines > 1 { // each shape has its own
		spec.Baseline = ""
	}
	how := "A dot for each round. A change in all rows is the machine's drift; two levels in one row are two states of the machine."
	if spec.Baseline != "" && len(spec.Rows) > 1 {
		how += " Dashed: " + spec.Baseline + "."
	}
	if spec.Top = topOf(medians, largest(highs...)); spec.Top != nil {
		how += " A triangle at the upper edge: the round lies above the chart."
	}
	return document.Chart{Kind: "strip", Title: fmt.Sprintf("%s by round, %s", name, unit.unit),
		How: how, Spec: spec, Aside: true,
		Table: tableOf(rows, heads.Row(cells[0].On), "rounds", "least", medianIn(unit.unit), "most")}, ok
}

func curveChart(cells []analysis.Cell) (c document.Chart, ok bool) {
	var most []float64
	at := []float64{50, 90, 99, 99.9, 99.99}
	for _, cell := range cells {
		x, ok := cell.LatencyAt(at[0])
		if !ok && len(cell.Latencies) > 0 {
			x = cell.Latencies[0].Seconds
		}
		most = append(most, x) // usual latencies set the scale
	}
	unit := scaleFor("s", largest(most...))
	spec := lines{Axis: "latency, " + unit.unit}
	columns := []string{heads.Row(cells[0].On)}
	for _, p := range at {
		columns = append(columns, fmt.Sprintf("%g %%, %s", p, unit.unit))
	}
	var rows [][]string
	for _, cell := range cells {
		if len(cell.Latencies) < 2 {
			continue
		}
		one, entry := line{Label: cell.Name()}, []string{cell.Name()}
		for _, q := range cell.Latencies {
			if q.Seconds > 0 {
				one.Points = append(one.Points, [2]float64{
					q.Percentile, fourDigits(q.Seconds * unit.by)})
			}
		}
		for _, p := range at {
			text := "-"
			if x, ok := cell.LatencyAt(p); ok {
				text = threeDigits(x * unit.by)
			}
			entry = append(entry, text)
		}
		spec.Series, rows = append(spec.Series, one), append(rows, entry)
	}
	return document.Chart{Kind: "curve", Title: "Latency by percentile", Spec: spec,
		Table: tableOf(rows, columns...),
		How:   "All windows together; the median is that of the other tables, and not drawn. The right end is the slow tail. A percentile is drawn if at least ten samples lie beyond it."}, len(rows) > 0
}
