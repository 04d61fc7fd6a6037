package view

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/chart"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

func scaleView(v *view) {
	v.title, v.command = "How network modes scale", "toll scale"
	v.charts = onBase(chart.Crowds)
	v.columns, v.above, v.layouts, v.single, v.notes = scaleColumns, blocks, onlyGaps, true, legend
	v.brief, v.briefTitle, v.detailed = briefCrowds, crowdTitle,
		"least and most of a client, CPU, paths"
	v.briefNotes = "S×C×P: servers × client containers × processes in each. fair: Jain's index over the clients; 1 is even shares."
}

func scaleColumns(r *analysis.Report, load string) []column {
	w := workload.Of(r.Plan.Loads.Of(load))
	rate, by, unit := w.Rate, float64(giga), "Gbit/s"
	if w.Trips {
		by, unit = kilo, "1000/s"
	}
	crowd := func(head [2]string, metric string, by float64) column {
		return column{figures(head[0], head[1]), scaled(metric, by)}
	}
	out := []column{
		{texts("", "S×C×P"), textOf(func(c analysis.Cell) string { return c.Shape.String() })},
		crowd([2]string{"total", unit}, rate, by),
		crowd([2]string{"each", "client"}, workload.ClientMean, by),
		crowd([2]string{"", "min"}, workload.ClientMin, by),
		crowd([2]string{"", "max"}, workload.ClientMax, by),
		{figures("", "Jain"), hundredths(workload.ClientFairness, 1)},
	}
	if slices.ContainsFunc(r.Cells, func(c analysis.Cell) bool { return c.Shape.Procs > 1 }) {
		out = append(out, crowd([2]string{"process", "min"}, workload.ProcessMin, by))
		if !w.Trips { // if space is short
			out = append(out, column{figures("", "Jain"), hundredths(workload.ProcessFairness, 1)})
		}
	}
	if w.Trips {
		out = append(out,
			column{figures("p99", "µs"), merged(workload.LatencyP99, digits(micro))},
			column{figures("CPU µs", "/trip"), scaled(workload.CPUPerTrip, micro)})
	} else {
		out = append(out, column{figures("CPU", "s/GB"), scaled(workload.CPUPerByte, perGB)})
	}
	return append(out,
		column{texts("total", "to "+firstShape(r.Cells)), scaling(rate)},
		column{texts("total", "to "+r.Plan.Baseline), ratio(rate)})
}

func firstShape(cells []analysis.Cell) string {
	if len(cells) == 0 {
		return ""
	}
	return cells[0].Shape.String()
}

func briefCrowds(r *analysis.Report, cells []analysis.Cell) []column {
	rate := workload.Of(r.Plan.Loads.Of(cells[0].Load)).Rate
	unit, by := fitting(r, cells[0].Load, rate)
	out := []column{
		{texts("", "S×C×P"), textOf(func(c analysis.Cell) string { return c.Shape.String() })},
		{figures("total", unit), scaled(rate, by)},
		{document.Column{Head: [2]string{"each", "client"}, Right: true, Spare: true},
			scaled(workload.ClientMean, by)},
		{figures("", "fair"), hundredths(workload.ClientFairness, 1)},
		{texts("% of", firstShape(cells)), func(c analysis.Cell) document.Cell {
			if x := c.Metrics[rate].Scaling; x != nil {
				return inPercent(*x, true)
			}
			return numberCell("100", 1, analysis.RatioUnit)
		}},
	}
	if !slices.ContainsFunc(cells, func(c analysis.Cell) bool {
		return c.Metrics[rate].Ratio != nil
	}) {
		return out
	}
	return append(out, column{texts("% of", r.Plan.Baseline), percentCell(rate, true)},
		column{texts("", "verdict"), verdictOn(rate)})
}

func verdictOn(metric string) func(analysis.Cell) document.Cell {
	return func(c analysis.Cell) document.Cell {
		if x := c.Metrics[metric].Ratio; x != nil && !c.Baseline {
			return document.Cell{Text: string(x.Verdict)}
		}
		return verdictCell(c)
	}
}

func crowdTitle(r *analysis.Report, cells []analysis.Cell) document.Text {
	c := cells[0]
	return document.Strongly("Total from "+placeWords(c.From)+sayOn(r, c.On)).
		Then(", "+describeLoad(r, c.Load)+", more is better", document.Faint)
}

const legend = "S×C×P: server containers × client containers × client processes in each. Jain's index of fairness is 1 " +
	"where all get the same and 1/n where one of n gets all; min, max and index are over the client containers, those under " +
	"process over the processes."

// scaling returns a function that makes cells with the ratios to the same mode's first shape.
func scaling(metric string) func(analysis.Cell) document.Cell {
	return func(c analysis.Cell) document.Cell {
		if x := c.Metrics[metric].Scaling; x != nil {
			return ratioCell(x.String(), *x)
		}
		return numberCell("100 %", 1, analysis.RatioUnit)
	}
}

func blocks(cells []analysis.Cell, i int) document.Text {
	c := cells[i]
	if i > 0 && cells[i-1].Label() == c.Label() {
		return nil
	}
	return document.Strongly(c.Label()).Then("  "+pathText(c), document.Faint)
}
