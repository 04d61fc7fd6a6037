package report

import (
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/analysis"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// tokenColumns are of the delay of tokens.
var tokenColumns = []column{
	{[2]string{"delay", "p50 µs"}, true, merged(analysis.LatencyP50)},
	{[2]string{"p99", "µs"}, true, merged(analysis.LatencyP99)},
	{[2]string{"p99.9", "µs"}, true, merged(analysis.LatencyP999)},
	{[2]string{"max", "µs"}, true, merged(analysis.LatencyMax)},
	{[2]string{"CPU µs", "/token"}, true, scaled(analysis.CPUPerToken, micro)},
	limitColumn,
}

// moreTokenColumns are what of the delay is the path's and what the load's own, and
// what the reader of a response sees.
var moreTokenColumns = []column{
	{[2]string{"path", "p50 µs"}, true, merged(analysis.TransitP50)},
	{[2]string{"late", "p99 µs"}, true, merged(analysis.LateP99)},
	{[2]string{"first", "p50 ms"}, true, mergedBy(analysis.FirstTokenP50, milli)},
	{[2]string{"", "p99"}, true, mergedBy(analysis.FirstTokenP99, milli)},
	{[2]string{"gap", "p50 ms"}, true, mergedBy(analysis.GapP50, milli)},
	{[2]string{"", "p99"}, true, mergedBy(analysis.GapP99, milli)},
	{[2]string{"longest", "gap ms"}, true, mergedBy(analysis.GapMax, milli)},
	{[2]string{"response", "p50 ms"}, true, responseTime},
	{[2]string{"glued", "%"}, true, share(analysis.Glued)},
	{[2]string{"tokens", "/s"}, true, scaled(analysis.TokenRate, 1)},
}

func tokenWords(l sample.Load) string {
	return fmt.Sprintf("stream, %s of %s at %g a second", plural(l.Streams, "session"), plural(l.Tokens, "token"), l.Pace)
}

// mergedBy prints a percentile over all rounds' samples in another unit than µs.
func mergedBy(metric string, by float64) func(analysis.Cell) string {
	return func(c analysis.Cell) string {
		m, ok := c.Metrics[metric]
		if !ok || m.Merged == nil {
			return "-"
		}
		return digits(*m.Merged * by)
	}
}

// responseTime prints the median response: what a path adds to it is small.
func responseTime(c analysis.Cell) string {
	m, ok := c.Metrics[analysis.ResponseTime]
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.2f", m.Median*milli)
}

// share prints a share in %.
func share(metric string) func(analysis.Cell) string {
	return func(c analysis.Cell) string {
		m, ok := c.Metrics[metric]
		switch {
		case !ok:
			return "-"
		case m.Median == 0:
			return "0"
		}
		return fmt.Sprintf("%.1f", m.Median*percent)
	}
}

// more prints a second table of the same cells, without their paths, or as many
// equal ones as it takes for none to be too wide.
func (p *printer) more(first column, cols []column, cells []analysis.Cell) {
	layout := p.layout
	n := len(cols)
	for n > 1 && !p.hold(first, slices.Collect(slices.Chunk(cols, n)), cells) {
		n = (n + 1) / 2
	}
	for some := range slices.Chunk(cols, n) {
		p.line("")
		p.rows(append([]column{first}, some...), cells, func(int) string { return "" })
	}
	p.layout = layout
}

// hold finds a layout in which no table is too wide; false if there is none.
func (p *printer) hold(first column, tables [][]column, cells []analysis.Cell) bool {
	tooWide := func(cols []column) bool {
		all := append([]column{first}, cols...)
		return p.tableWidth(measure(all, grid(all, cells, false))) > p.width
	}
	for _, p.layout = range onlyGaps {
		if !slices.ContainsFunc(tables, tooWide) {
			return true
		}
	}
	return false
}
