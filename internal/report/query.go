package report

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/analysis"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

var queryColumns = []column{
	{[2]string{"page p50", "ms"}, true, scaledMerged(analysis.LatencyP50, milli)},
	{[2]string{"p99", "ms"}, true, scaledMerged(analysis.LatencyP99, milli)},
	{[2]string{"pages", "/s"}, true, scaled(analysis.Transactions, 1)},
	{[2]string{"query", "µs"}, true, scaled(analysis.QueryP50, micro)},
	{[2]string{"CPU µs", "/page"}, true, scaled(analysis.CPUPerTrip, micro)},
	limitColumn,
}

func queryWords(l sample.Load) string {
	return fmt.Sprintf("query, pages of %s, %s out, %s back", plural(l.Queries, "query"), plural(l.Request, "byte"), plural(l.Reply, "byte"))
}
