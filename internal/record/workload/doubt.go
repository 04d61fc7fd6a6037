package workload

import (
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Doubt is a reason to doubt a cell's figures, with a remedy.
type Doubt struct{ Code, Text string }

// Listed is the position of a load's doubts in the list of a cell's doubts.
type Listed int

const (
	First      Listed = iota
	BeforeLate        // before the doubt about late starts
	Last
)

// Seen has the visits to a cell and what was measured.
type Seen struct {
	Load   sample.Load
	Visits []*sample.Visit
	All    []*sample.Visit // also failed ones
	// Median returns the median visit's value of a metric, and Merged the percentile over all
	// visits' samples.
	Median func(metric string) float64
	Merged func(metric string) (x float64, ok bool)
}

// Doubts returns the load's own doubts for that position.
func (w Workload) Doubts(at Listed, s Seen) []Doubt {
	if w.doubts == nil || w.listed != at {
		return nil
	}
	return w.doubts(s)
}

// Limit returns which of the load's options limits it, or "".
func (w Workload) Limit(s Seen) string {
	if w.limit == nil {
		return ""
	}
	return w.limit(s)
}

// LateLimit is the share of Start above which a late start is reported.
const LateLimit = 0.5

// Start returns the time, in seconds, with which a late start is compared: the warm-up or, for a
// transfer of a fixed size, a tenth of its completion time.
func Start(l sample.Load, v sample.Visit) float64 {
	if BulkOf(l).Bytes == 0 {
		return l.Warmup
	}
	const share = 0.1 // 5 % with LateLimit
	return share * completion(v, l)
}

// CutShort returns the effect of a late start, as a clause.
func CutShort(l sample.Load) string {
	if BulkOf(l).Bytes > 0 {
		return "their time includes it; it matters less with more --bytes"
	}
	return "the warm-up was cut short"
}
