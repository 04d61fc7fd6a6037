package report

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/analysis"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// crrColumns are of connections from connect to close, but for the column that
// is of connect alone. Those that failed are below the table, in the warnings.
var crrColumns = []column{
	{[2]string{"1000", "conn/s"}, true, scaled(analysis.Connections, kilo)},
	{[2]string{"connect", "p50 µs"}, true, scaled(analysis.ConnectP50, micro)},
	{[2]string{"p50", "µs"}, true, merged(analysis.LatencyP50)},
	{[2]string{"p99", "µs"}, true, merged(analysis.LatencyP99)},
	{[2]string{"p99.9", "µs"}, true, merged(analysis.LatencyP999)},
	{[2]string{"CPU µs", "/conn"}, true, scaled(analysis.CPUPerConnection, micro)},
	limitColumn,
}

func crrWords(l sample.Load) string {
	text := "crr"
	if l.Streams > 1 {
		text += fmt.Sprintf(", %s at a time", plural(l.Streams, "connection"))
	}
	if l.Request == l.Reply {
		return text + ", " + plural(l.Request, "byte") + " each way"
	}
	return fmt.Sprintf("%s, %s out, %s back", text, plural(l.Request, "byte"), plural(l.Reply, "byte"))
}
