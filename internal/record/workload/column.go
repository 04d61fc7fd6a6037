package workload

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Column is a column of a load's table.
type Column struct {
	Head   [2]string // two lines
	Metric string
	Scale  float64 // from the base unit to the head's
	Show   Figure
	// Quiet is the text of a row without a noteworthy value. A column with this text in all rows
	// may be left out; "": never.
	Quiet string
}

// Figure is the kind of figure that a column shows.
type Figure int

const (
	Median Figure = iota // of the median visit, with three digits
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

const (
	giga    = 1e-9
	kilo    = 1e-3
	perGB   = 1e9
	milli   = 1e3
	micro   = 1e6
	percent = 100
)

var (
	gbitColumn = Column{Head: [2]string{"", "Gbit/s"}, Metric: Throughput, Scale: giga}
	p50Column  = Column{Head: [2]string{"p50", "µs"}, Metric: LatencyP50, Scale: micro}
	p99Column  = Column{Head: [2]string{"p99", "µs"}, Metric: LatencyP99, Scale: micro,
		Show: Merged}
	p999Column = Column{Head: [2]string{"p99.9", "µs"}, Metric: LatencyP999, Scale: micro,
		Show: Merged}
	tripColumn = Column{Head: [2]string{"CPU µs", "/trip"}, Metric: CPUPerTrip, Scale: micro}
	lossColumn = Column{Head: [2]string{"loss", "%"}, Metric: Loss, Scale: percent, Show: Rare}
	retrColumn = Column{Head: [2]string{"", "retr"}, Metric: Retransmits, Scale: 1, Show: Integer,
		Quiet: "0"}
	limitColumn = Column{Head: [2]string{"limited", "by"}, Show: LimitedBy, Quiet: "-"}
)

// Columns returns the columns of the load's table between the path and the ratio.
func (w Workload) Columns(l sample.Load) []Column {
	if w.columns == nil {
		return nil
	}
	return w.columns(l)
}

func always(cs ...Column) func(sample.Load) []Column {
	return func(sample.Load) []Column { return cs }
}

// Outline returns a dry run's description of a load that is measured by visits.
func (w Workload) Outline(l sample.Load) string {
	if w.outline != nil {
		if text := w.outline(l); text != "" {
			return text
		}
	}
	return fmt.Sprintf("%s: warm-up %.6g s, window %.6g s", w.Name, l.Warmup, l.Window)
}

// Words describes the load with its options.
func (w Workload) Words(l sample.Load) string {
	text := w.words(l)
	if l.Nodelay != "" {
		text += ", TCP_NODELAY " + l.Nodelay
	}
	return text
}
