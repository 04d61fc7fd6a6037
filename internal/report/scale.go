package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/analysis"
)

// scaleColumns are the columns of a scaling study.
func scaleColumns(r *analysis.Report, load string) []column {
	rate, by, unit := analysis.Throughput, float64(giga), "Gbit/s"
	if load == "rr" {
		rate, by, unit = analysis.Transactions, kilo, "1000/s"
	}
	crowd := func(head [2]string, metric string, by float64) column {
		return column{head, true, scaled(metric, by)}
	}
	out := []column{
		{head: [2]string{"", "S×C×P"}, text: func(c analysis.Cell) string { return c.Shape.String() }},
		crowd([2]string{"total", unit}, rate, by),
		crowd([2]string{"each", "client"}, analysis.ClientMean, by),
		crowd([2]string{"", "min"}, analysis.ClientMin, by),
		crowd([2]string{"", "max"}, analysis.ClientMax, by),
		{[2]string{"", "Jain"}, true, index(analysis.ClientFairness)},
	}
	if slices.ContainsFunc(r.Cells, func(c analysis.Cell) bool { return c.Shape.Procs > 1 }) {
		out = append(out, crowd([2]string{"process", "min"}, analysis.ProcessMin, by))
		if load != "rr" { // where there is no room for it
			out = append(out, column{[2]string{"", "Jain"}, true, index(analysis.ProcessFairness)})
		}
	}
	if load == "rr" {
		out = append(out,
			column{[2]string{"p99", "µs"}, true, merged(analysis.LatencyP99)},
			column{[2]string{"CPU µs", "/trip"}, true, scaled(analysis.CPUPerTrip, micro)})
	} else {
		out = append(out, column{[2]string{"CPU", "s/GB"}, true, scaled(analysis.CPUPerByte, perGB)})
	}
	return append(out,
		column{[2]string{"total", "to " + firstShape(r.Cells)}, false, scaling(rate)},
		column{[2]string{"total", "to " + r.Plan.Baseline}, false, ratio(rate)})
}

const kilo = 1e-3 // 1/s to 1000/s

// firstShape is the shape that others are held against.
func firstShape(cells []analysis.Cell) string {
	if len(cells) == 0 {
		return ""
	}
	return cells[0].Shape.String()
}

// index prints a share.
func index(metric string) func(analysis.Cell) string {
	return func(c analysis.Cell) string {
		if m, ok := c.Metrics[metric]; ok {
			return fmt.Sprintf("%.2f", m.Median)
		}
		return "-"
	}
}

// legend says what the columns of a scaling study are.
const legend = "S×C×P: server containers × client containers × client processes in each. Jain's index of fairness is 1 " +
	"where all get the same and 1/n where one of n gets all; min, max and index are over the client containers, those under " +
	"process over the processes."

// scaling is a cell's metric against the same mode's first shape.
func scaling(metric string) func(analysis.Cell) string {
	return func(c analysis.Cell) string {
		if x := c.Metrics[metric].Scaling; x != nil {
			return x.String()
		}
		return "1"
	}
}

// blocks names the mode and its path above the first of its shapes.
func (p *printer) blocks(cells []analysis.Cell) func(i int) string {
	return func(i int) string {
		c := cells[i]
		if i > 0 && cells[i-1].Label() == c.Label() {
			return ""
		}
		return p.bold(c.Label()) + p.dim(fmt.Sprintf("  %s", strings.Join(c.Hops, "·")))
	}
}
