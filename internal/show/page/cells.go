package page

import (
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/ladder"
	"github.com/bridgetoll/bridgetoll/internal/judge/mesh"
	"github.com/bridgetoll/bridgetoll/internal/judge/sweep"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// titles returns the page's title and the command that makes such runs.
func titles(r judge.Report) (title, command string) {
	base := r.Base()
	switch base.Study {
	case sample.StudyLadder:
		return "What each part of a container's network costs", "toll ladder"
	case sample.StudyAdvise:
		return "What makes a network mode faster", "toll advise"
	case sample.StudySweep:
		return "What network modes cost, from size to size and from rate to rate", "toll compare --sweep"
	case sample.StudyScale:
		return "How network modes scale", "toll scale"
	case sample.StudyEndpoints:
		return "What each route to an endpoint costs", "toll"
	case sample.StudyMesh:
		return "Which nodes and links are slow", "toll mesh"
	}
	return "What container network modes cost", "toll compare"
}

// groupsOf returns the charts of a report.
func groupsOf(r judge.Report) []group {
	switch r := r.(type) {
	case *mesh.Report:
		return meshGroups(r.Mesh)
	case *ladder.Report:
		return append(ladderGroups(r.Base(), r.Steps), cellGroups(r.Base())...)
	}
	return cellGroups(r.Base())
}

// cellGroups returns a group of charts for each placement, load and backend.
func cellGroups(r *analysis.Report) []group {
	var out []group
	several := slices.ContainsFunc(r.Cells, func(c analysis.Cell) bool { return c.On != r.Cells[0].On })
	modes := slices.ContainsFunc(r.Cells, func(c analysis.Cell) bool {
		return r.Study == sample.StudyAdvise && c.Baseline && c.Mode != r.Plan.Baseline
	})
	for rest := r.Cells; len(rest) > 0; {
		first := rest[0]
		n := slices.IndexFunc(rest, func(c analysis.Cell) bool {
			// A search's baseline comes first in its groups. Split before it, because the groups of
			// the next search may have the same place and load.
			return c.From != first.From || c.Load != first.Load || c.On != first.On || c.Pin != first.Pin || modes && c.Baseline && c.Mode != first.Mode
		})
		if n < 0 {
			n = len(rest)
		}
		l := sample.Plan{Loads: r.Plan.Loads}.LoadOf(first.Load)
		title := "From " + mode.Placement(first.From).Words() + ": " + sweep.LoadWords(r.Plan, l)
		if several {
			title += ", on " + first.On
		}
		title += r.Plan.SayPin(first.Pin)
		if modes && first.Baseline {
			title += ", against " + first.Mode
		}
		if charts := cellCharts(r, l, rest[:n]); len(charts) > 0 {
			out = append(out, group{Title: title, Charts: charts})
		}
		rest = rest[n:]
	}
	return out
}

// cellCharts returns the charts that compare the given cells.
func cellCharts(r *analysis.Report, l sample.Load, cells []analysis.Cell) []chart {
	w := workload.Of(l)
	if r.Plan.Sweep != nil {
		return sweepCharts(r, w, cells)
	}
	var all []chart
	add := func(c chart, ok bool) {
		if ok {
			all = append(all, c)
		}
	}
	if r.Study == sample.StudyScale {
		add(scalingChart(cells, w.Rate, "Total "+lower(metricName(w.Rate, "rate"))))
		add(scalingChart(cells, workload.ClientFairness, "Fairness between clients (Jain's index)"))
		add(scalingChart(cells, w.CPU(), metricName(w.CPU(), "CPU time")))
	}
	if r.Study != sample.StudyLadder { // a ladder's prices compare with the rung below instead
		for _, m := range judged(w) {
			add(ratioChart(r, cells, m, metricName(m, w.Noun)))
		}
	}
	add(curveChart(cells))
	add(stripChart(cells, cells[0].Primary, metricName(cells[0].Primary, w.Noun), r.Plan))
	add(partyChart(cells, w))
	add(cpuChart(cells))
	return all
}

// judged returns the metrics of a load that interval plots show.
func judged(w workload.Workload) []string {
	out := []string{w.Primary}
	for _, m := range []string{workload.LatencyP99, w.CPU()} {
		if !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

// scaleOf returns the scale for a metric of the cells.
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

// mostPoints is the number of rounds of a row that a strip shows. If there are more, it shows every
// second, third and so on.
const mostPoints = 400

// stripChart shows a metric round by round.
func stripChart(cells []analysis.Cell, metric, name string, p analysis.Plan) (c chart, ok bool) {
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
		medians, highs = append(medians, m.Median*unit.by), append(highs, slices.Max(m.Rounds)*unit.by)
		every := 1 + (len(m.Rounds)-1)/mostPoints
		one := line{Label: cell.Name()}
		for i := 0; i < len(m.Rounds); i += every {
			round := i
			if m.At != nil && i < len(m.At) {
				round = m.At[i]
			}
			one.Points = append(one.Points, [2]float64{float64(round + 1), short(m.Rounds[i] * unit.by)})
		}
		ok = ok || len(m.Rounds) > 1
		spec.Rows = append(spec.Rows, one)
		rows = append(rows, []string{one.Label, fmt.Sprint(len(m.Rounds)), three(slices.Min(m.Rounds) * unit.by),
			three(m.Median * unit.by), three(slices.Max(m.Rounds) * unit.by)})
	}
	if baselines > 1 { // each shape has its own
		spec.Baseline = ""
	}
	how := "A dot for each round. What moves in all rows is the machine's drift; two levels in one row are two states."
	if spec.Baseline != "" {
		how += " Dashed: " + spec.Baseline + "."
	}
	if spec.Top = topOf(medians, largest(highs...)); spec.Top != nil {
		how += " A triangle at the upper edge: the round lies above the chart."
	}
	return chart{Kind: "strip", Title: fmt.Sprintf("%s by round, %s", name, unit.unit), How: how, Spec: spec,
		Table: tableOf(rows, "mode", "rounds", "least", "median, "+unit.unit, "most")}, ok
}

// curveChart shows latencies by percentile.
func curveChart(cells []analysis.Cell) (c chart, ok bool) {
	var most []float64
	for _, cell := range cells {
		for _, q := range cell.Latencies {
			most = append(most, q.Seconds)
			break // usual latencies set the scale
		}
	}
	unit := scaleFor("s", largest(most...))
	spec := lines{Axis: "latency, " + unit.unit}
	heads := []string{"mode"}
	at := []float64{50, 90, 99, 99.9, 99.99}
	for _, p := range at {
		heads = append(heads, fmt.Sprintf("%g %%, %s", p, unit.unit))
	}
	var rows [][]string
	for _, cell := range cells {
		if len(cell.Latencies) < 2 {
			continue
		}
		one, entry := line{Label: cell.Name()}, []string{cell.Name()}
		for _, q := range cell.Latencies {
			if q.Seconds > 0 {
				one.Points = append(one.Points, [2]float64{q.Percentile, short(q.Seconds * unit.by)})
			}
		}
		for _, p := range at {
			text := "-"
			if x, ok := cell.LatencyAt(p); ok {
				text = three(x * unit.by)
			}
			entry = append(entry, text)
		}
		spec.Series, rows = append(spec.Series, one), append(rows, entry)
	}
	return chart{Kind: "curve", Title: "Latency by percentile", Spec: spec, Table: tableOf(rows, heads...),
		How: "All windows together; the median is that of the other tables, and not drawn. The right end is the slow tail. A percentile is drawn if at least ten samples lie beyond it."}, len(rows) > 0
}
