package workload

import (
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Doubt is what makes figures of a cell doubtful, and what helps.
type Doubt struct{ Code, Text string }

// Listed says where a load's doubts stand among those that all loads may have.
type Listed int

// The places.
const (
	First      Listed = iota
	BeforeLate        // those of visits that failed come first
	Last
)

// Seen is what was seen of a cell.
type Seen struct {
	Load   sample.Load
	Visits []*sample.Visit // that count
	All    []*sample.Visit // the others too
	// Median is the median visit's value of a metric, 0 of none, and Merged the
	// percentile over all visits' samples.
	Median func(metric string) float64
	Merged func(metric string) (x float64, ok bool)
}

// Doubts are the load's own about what was seen, if they are listed there.
func (w Workload) Doubts(at Listed, s Seen) []Doubt {
	if w.doubts == nil || w.listed != at {
		return nil
	}
	return w.doubts(s)
}

// Limit is what of the load's options keeps it from being faster; "": nothing.
func (w Workload) Limit(s Seen) string {
	if w.limit == nil {
		return ""
	}
	return w.limit(s)
}

// LateLimit is the share of the start that may be late before it is said.
const LateLimit = 0.5

// Start is the time of a visit that a late start shortens or, where there is no warm-up,
// lengthens, in seconds.
func Start(l sample.Load, v sample.Visit) float64 {
	if BulkOf(l).Bytes == 0 {
		return l.Warmup
	}
	const share = 0.1 // 5 % with LateLimit
	return share * completion(v, l)
}

// CutShort says what a late start does to the load.
func CutShort(l sample.Load) string {
	if BulkOf(l).Bytes > 0 {
		return "it is in the time that they took; more --bytes make it matter less"
	}
	return "the warm-up was cut short"
}
