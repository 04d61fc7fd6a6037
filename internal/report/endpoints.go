package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/analysis"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// wayLegend says how to read ways to endpoints.
const wayLegend = "Ratios and differences are taken round by round and then summarized: they need not be those of two rows. " +
	"≤: nothing measurable, and at most so much. ?: unclear."

var (
	wayColumn     = column{head: [2]string{"", "way"}, text: analysis.Cell.Label}
	addressColumn = column{head: [2]string{"", "address"}, text: func(c analysis.Cell) string { return orDash(c.Dial) }}
	connectColumn = column{[2]string{"connect", "ms"}, true, scaled(analysis.ConnectTime, milli)}
	rttColumn     = column{[2]string{"RTT", "ms"}, true, scaled(analysis.RTT, milli)}
)

// chatColumns are what the reader of responses sees.
var chatColumns = []column{
	{[2]string{"first", "p50 ms"}, true, mergedBy(analysis.FirstTokenP50, milli)},
	{[2]string{"gap", "p50 ms"}, true, mergedBy(analysis.GapP50, milli)},
	{[2]string{"slow", "tenth"}, true, scaled(analysis.GapSlow, milli)},
	{[2]string{"", "p99"}, true, mergedBy(analysis.GapP99, milli)},
	{[2]string{"longest", "gap ms"}, true, mergedBy(analysis.GapMax, milli)},
	{[2]string{"response", "s"}, true, scaled(analysis.ResponseTime, 1)},
}

// moreChatColumns are what the ways add, and their connections.
var moreChatColumns = []column{
	{[2]string{"adds to", "first ms"}, true, added(analysis.FirstTokenP50)},
	{[2]string{"adds to", "gap p50"}, true, added(analysis.GapP50)},
	{[2]string{"adds to", "slow gap"}, true, added(analysis.GapSlow)},
	{[2]string{"adds to", "response"}, true, added(analysis.ResponseTime)},
	{[2]string{"tokens", "/s"}, true, scaled(analysis.WordRate, 1)},
	{[2]string{"", "stalls"}, true, inAll(analysis.Stalls)},
	{[2]string{"tokens", "each"}, true, func(c analysis.Cell) string { return count(c, analysis.Words) }},
	{[2]string{"glued", "%"}, true, share(analysis.Glued)},
	connectColumn, rttColumn,
}

var sqlColumns = []column{
	{[2]string{"page p50", "ms"}, true, scaledMerged(analysis.LatencyP50, milli)},
	{[2]string{"p99", "ms"}, true, scaledMerged(analysis.LatencyP99, milli)},
	{[2]string{"pages", "/s"}, true, scaled(analysis.Transactions, 1)},
	{[2]string{"query", "µs"}, true, scaled(analysis.QueryP50, micro)},
}

var moreSQLColumns = []column{
	{[2]string{"adds to", "page p50 ms"}, true, added(analysis.LatencyP50)},
	{[2]string{"adds to", "page p99"}, true, added(analysis.LatencyP99)},
	{[2]string{"adds to", "query p50"}, true, added(analysis.QueryP50)},
	connectColumn, rttColumn,
}

// toBaseline is the head of the ratios' column. The baseline's name may be longer
// than any ratio.
func toBaseline(r *analysis.Report) string {
	const longest = 20
	if width(r.Plan.Baseline) > longest {
		return "to the baseline"
	}
	return "to " + r.Plan.Baseline
}

// addsHead begins the heads of columns that say what a way adds to others.
const addsHead = "adds "

// worthShowing leaves out what a way adds where there is no other.
func worthShowing(cols []column, cells []analysis.Cell) []column {
	if len(cells) > 1 {
		return cols
	}
	return slices.DeleteFunc(slices.Clone(cols), func(c column) bool { return strings.HasPrefix(c.head[0], addsHead) })
}

// inAll prints how often something happened in all rounds.
func inAll(metric string) func(analysis.Cell) string {
	return func(c analysis.Cell) string {
		if m := c.Metrics[metric].Merged; m != nil {
			return fmt.Sprintf("%.0f", *m)
		}
		return "-"
	}
}

// added prints what a way adds to a time.
func added(metric string) func(analysis.Cell) string {
	return func(c analysis.Cell) string {
		p := c.Metrics[metric].Price
		switch {
		case c.Baseline:
			return "0"
		case p == nil:
			return "-"
		}
		return p.Milliseconds()
	}
}

// served is what is at the end of the ways.
func served(c analysis.Cell) string {
	return cmp.Or(c.Facts["model"], c.Facts["server"], "endpoint")
}

func chatWords(l sample.Load) string {
	text := fmt.Sprintf("responses of at most %s", plural(l.Tokens, "token"))
	if l.Streams > 1 {
		text += fmt.Sprintf(", %s", plural(l.Streams, "session"))
	}
	return text
}

func sqlWords(l sample.Load) string {
	text := fmt.Sprintf("pages of %s", plural(l.Queries, "query"))
	if l.Streams > 1 {
		text += fmt.Sprintf(", %s", plural(l.Streams, "session"))
	}
	return text
}
