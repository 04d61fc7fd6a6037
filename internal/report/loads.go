package report

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/analysis"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// load is how a load is shown.
type load struct {
	// columns are those between the path and the ratio.
	columns []column
	ratio   string                     // above the ratio: what it is of
	words   func(l sample.Load) string // the load with its options
	// more are the columns of a second table below, beside the mode.
	more []column
}

var loads = map[string]load{
	"query":  {queryColumns, "page ratio", queryWords, nil},
	"bulk":   {bulkColumns, "ratio", bulkWords, nil},
	"rr":     {rrColumns, "p50 ratio", rrWords, nil},
	"stream": {tokenColumns, "p50 ratio", tokenWords, moreTokenColumns},
	"crr":    {crrColumns, "conn/s ratio", crrWords, nil},

	"chat": {chatColumns, "response ratio", chatWords, moreChatColumns},
	"sql":  {sqlColumns, "page ratio", sqlWords, moreSQLColumns},
	"exec": {nil, "ratio", programWords, nil},

	"udp":    {udpColumns, "ratio", udpWords, nil},
	"udp-rr": {udpRRColumns, "p50 ratio", udpRRWords, nil},
}

var bulkColumns = []column{
	{[2]string{"", "Gbit/s"}, true, scaled(analysis.Throughput, giga)},
	{[2]string{"CPU", "s/GB"}, true, scaled(analysis.CPUPerByte, perGB)},
	{[2]string{"Gbit/s", "/core"}, true, scaled(analysis.PerBusyCore, giga)},
	retrColumn, limitColumn,
}

var rrColumns = []column{
	{[2]string{"p50", "µs"}, true, merged(analysis.LatencyP50)},
	{[2]string{"p99", "µs"}, true, merged(analysis.LatencyP99)},
	{[2]string{"p99.9", "µs"}, true, merged(analysis.LatencyP999)},
	{[2]string{"CPU µs", "/trip"}, true, scaled(analysis.CPUPerTrip, micro)},
	retrColumn, limitColumn,
}

func bulkWords(l sample.Load) string {
	text := "bulk, " + plural(l.Streams, "stream")
	if l.Reverse {
		text += ", server to client"
	}
	return text + transferWords(l)
}

func rrWords(l sample.Load) string {
	if l.Request == l.Reply {
		return "rr, " + plural(l.Request, "byte") + " each way" + requestWords(l)
	}
	return fmt.Sprintf("rr, %s out, %s back", plural(l.Request, "byte"), plural(l.Reply, "byte")) + requestWords(l)
}

// showing is how a load is shown; one of a later toll as bulk.
func showing(kind string) load {
	if l, ok := loads[kind]; ok {
		return l
	}
	return load{bulkColumns, "ratio", func(l sample.Load) string { return l.Kind }, nil}
}

func describeLoad(r *analysis.Report, kind string) string {
	l := loadOf(r, kind)
	text := showing(kind).words(l)
	if l.Nodelay != "" {
		text += ", TCP_NODELAY " + l.Nodelay
	}
	return text
}
