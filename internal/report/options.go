package report

import (
	"fmt"
	"strconv"

	"github.com/bridgetoll/bridgetoll/internal/analysis"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

const milli = 1e3 // s to ms

var (
	outColumn    = column{[2]string{"Gbit/s", "out"}, true, scaled(analysis.ThroughputOut, giga)}
	backColumn   = column{[2]string{"Gbit/s", "back"}, true, scaled(analysis.ThroughputBack, giga)}
	timeColumn   = column{[2]string{"took", "ms"}, true, scaled(analysis.CompletionTime, milli)}
	tripsColumn  = column{[2]string{"trips", "/s"}, true, func(c analysis.Cell) string { return count(c, analysis.Transactions) }}
	ownColumn    = column{[2]string{"late", "µs"}, true, scaled(analysis.OwnLatenessP50, micro)}
	besideColumn = column{[2]string{"beside", "Gbit/s"}, true, scaled(analysis.BesideThroughput, giga)}
)

// withOptions are a load's columns with those that its options add: after the
// throughput, or after the latencies.
func withOptions(columns []column, l sample.Load) []column {
	at, more := 1, []column(nil)
	switch l.Kind {
	case "bulk":
		if l.Bidir {
			more = append(more, outColumn, backColumn)
		}
		if l.Bytes > 0 {
			more = append(more, timeColumn)
		}
	case "rr":
		at = len(percentiles)
		if l.Rate > 0 {
			more = append(more, ownColumn)
		}
		if l.Rate <= 0 && l.Streams > 1 {
			more = append(more, tripsColumn)
		}
		if l.Beside {
			columns = append(columns[:at:at], columns[at+1:]...) // no CPU time of a trip
			more = append(more, besideColumn)
		}
	}
	return append(append(columns[:at:at], more...), columns[at:]...)
}

// percentiles are rr's columns of latencies.
var percentiles = rrColumns[:3]

// transferWords are the options of bulk beyond streams and direction.
func transferWords(l sample.Load) string {
	text := ""
	if l.Bidir {
		text += ", both ways"
	}
	if l.Bytes > 0 {
		text += ", " + size(l.Bytes) + " each"
	}
	if l.Write > 0 {
		text += ", writes of " + size(int64(l.Write))
	}
	switch l.Send {
	case "zerocopy":
		text += ", zero-copy (copied if local)"
	case "sendfile":
		text += ", sendfile"
	}
	return text
}

// requestWords are the options of rr beyond the sizes.
func requestWords(l sample.Load) string {
	text := ""
	if l.Streams > 1 {
		text += ", " + plural(l.Streams, "connection")
	}
	if l.Rate > 0 {
		text += fmt.Sprintf(", open loop of %s/s", strconv.FormatFloat(l.Rate, 'f', -1, 64))
	}
	if l.Beside {
		text += ", beside a bulk stream"
		if l.Write > 0 {
			text += " with writes of " + size(int64(l.Write))
		}
	}
	return text
}

// size says bytes in the largest unit that they are a whole number of.
func size(n int64) string {
	const step = 1024
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for ; n >= step && n%step == 0 && i < len(units)-1; i++ {
		n /= step
	}
	return fmt.Sprintf("%d %s", n, units[i])
}
