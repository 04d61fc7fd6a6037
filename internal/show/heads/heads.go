// Package heads is the table of how reports show the figures of loads: the heads of columns, their
// units and digits, and the columns of each load's tables. What a figure is, its metric says.
package heads

import (
	"cmp"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// Column is a column of a load's table.
type Column struct {
	Head   [2]string // two lines
	Metric string
	Scale  float64 // from the base unit to the head's
	Show   Kind
	// Quiet is the text of a row without a noteworthy value. A column with this text in all rows
	// may be left out; "": never.
	Quiet string
}

// Title returns the head in one line.
func (c Column) Title() string { return strings.TrimSpace(c.Head[0] + " " + c.Head[1]) }

// Kind is the kind of figure that a column shows.
type Kind int

const (
	Median Kind = iota // of the median visit, with three digits
	// of all visits' samples together, with three digits; for percentiles other than medians
	Merged
	Integer    // of the median visit, without decimals
	Hundredths // of the median visit, with two decimals
	Share      // of the median visit, with one decimal; zero as 0
	Rare       // three digits, because small values matter; zero as 0
	Total      // over all visits
	Added      // what the mode adds to the baseline's, in ms, or µs by Scale
	// three digits in a unit that fits the middle row
	Fitted
	Much      // in %; "-" below Scale
	LimitedBy // what limited the load; not a metric
)

// Factors from base units to those of heads.
const (
	Giga    = 1e-9 // bit/s to Gbit/s
	Kilo    = 1e-3
	PerGB   = 1e9 // s/B to s/GB
	Milli   = 1e3 // s to ms
	Micro   = 1e6 // s to µs
	Percent = 100
)

// multiples of base units, the largest first
var multiples = map[string][]struct {
	least float64
	unit  string
	by    float64
}{
	"s":     {{1, "s", 1}, {1e-3, "ms", Milli}, {0, "µs", Micro}},
	"bit/s": {{1e9, "Gbit/s", Giga}, {1e6, "Mbit/s", 1e-6}, {0, "kbit/s", Kilo}},
	"B/s":   {{1e9, "GB/s", Giga}, {1e6, "MB/s", 1e-6}, {0, "kB/s", Kilo}},
	"1/s":   {{1e4, "1000/s", Kilo}, {0, "/s", 1}},
	"1":     {{0, "%", Percent}},
}

// Unit returns the multiple of a base unit that fits figures of the size of x, and the factor that
// converts to it.
func Unit(base string, x float64) (name string, by float64) {
	for _, m := range multiples[base] {
		if x >= m.least {
			return m.unit, m.by
		}
	}
	return base, 1
}

// Table describes the tables of a load.
type Table struct {
	Columns []Column // between the path and the ratio
	More    []Column // of a second table
	Ratio   string   // the head of the column of ratios
	// Adds is the unit, ms or µs, of a column with what a mode adds to the baseline's primary
	// metric; "": no such column.
	Adds string
}

var tables = map[string]func(l sample.Load) Table{
	workload.Bulk:        bulk,
	workload.BulkReverse: bulk,
	workload.RR:          rr,
	workload.CRR:         always(Table{Columns: crr, Ratio: "conn/s ratio"}),
	workload.UDP:         always(Table{Columns: udp, Ratio: "ratio"}),
	workload.UDPRR: always(Table{Ratio: "p50 ratio", Adds: "µs",
		Columns: []Column{p50, p99, p999, perTrip, loss, limit}}),
	workload.Stream: always(Table{Columns: tokens, More: moreTokens, Ratio: "p50 ratio"}),
	workload.Query: always(Table{Ratio: "page ratio", Adds: "ms", Columns: append(slices.Clone(pages),
		Column{Head: [2]string{"CPU µs", "/page"}, Metric: workload.CPUPerTrip, Scale: Micro},
		limit)}),
	workload.Exec:  program,
	workload.Chat:  always(Table{Columns: chat, More: moreChat, Ratio: "response ratio"}),
	workload.Batch: always(Table{Columns: batch, More: moreBatch, Ratio: "response ratio"}),
	workload.SQL:   always(Table{Columns: pages, More: moreSQL, Ratio: "page ratio"}),
	workload.Request: always(Table{Ratio: "request ratio", Adds: "µs", Columns: []Column{p50, p99,
		{Head: [2]string{"requests", "/s"}, Metric: workload.Transactions, Scale: 1,
			Show: Integer}}}),
}

func always(t Table) func(sample.Load) Table { return func(sample.Load) Table { return t } }

// Of returns the table of a load with its options. An unknown load has that of bulk.
func Of(l sample.Load) Table {
	if of, ok := tables[l.Kind]; ok {
		return of(l)
	}
	return bulk(l)
}

// All returns the tables of a load with any options, for explanations of their heads.
func All(w workload.Workload) []Column {
	var out []Column
	for _, l := range []sample.Load{
		w.New(),
		{Kind: workload.Bulk, Options: sample.BulkOptions{Bidir: true, Bytes: 1}},
		{Kind: workload.RR, Options: sample.RROptions{Rate: 1}},
		{Kind: workload.RR, Streams: 2, Options: sample.RROptions{Beside: true}},
	} {
		if l.Kind == w.Name {
			out = append(out, Of(l).Columns...)
		}
	}
	return append(out, Of(w.New()).More...)
}

var titles = map[string]string{
	workload.Throughput:   "Throughput",
	workload.Transactions: "Rate",
	workload.TokenRate:    "Rate",
	workload.LatencyP50:   "Median latency",
	workload.LatencyP99:   "Latency, 99th percentile",
	workload.CPUPerByte:   "CPU time per byte",
}

// Title returns the name of a load's metric in the title of a chart.
func Title(metric string, w workload.Workload) string {
	switch metric {
	case w.Primary:
		return printable.Capital(w.Noun)
	case workload.CPUPerTrip, workload.CPUPerToken:
		return "CPU time per " + w.Unit()
	}
	return cmp.Or(titles[metric], metric)
}

// Row returns the head of a column with the names of a backend's rows.
func Row(on string) string {
	if on == sample.OnEndpoint {
		return "route"
	}
	return "mode"
}
