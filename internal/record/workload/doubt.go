package workload

import (
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Doubt is a reason to doubt a cell's figures. The codes say what its values are.
type Doubt struct {
	Code   string
	What   string
	N, Of  int
	Values map[string]float64 // by code, if it is one
}

// The codes of doubts. Another one is OtherEvents: N of them, the first of which is What.
const (
	Copied            = "zerocopy-copied"
	GluedTokens       = "glued"              // a share of the tokens; What: WhyFollows or ""
	UsageDiffers      = "usage-differs"      // a response's CountTokens and CountEvents, WordRate by events
	PortsExhausted    = "ports-exhausted"    // N of Of visits; connections
	ConntrackFull     = "conntrack-full"     // so
	TimeWaitLeft      = "time-wait-left"     // so; sockets. What is the error, or ""
	ConnectionsFailed = "failed-connections" // N of Of, by the counts of FailureCounts
	Elsewhere         = "elsewhere"
	BelowRate         = "below-rate"
	Behind            = "behind"      // rr: nothing, stream: s, udp: a share of the rate, What: WhySlow or WhyFull
	SlowReader        = "slow-reader" // s
	OwnLate           = "own-lateness"
	Overdue           = "overdue" // N tokens
	Blocked           = "blocked" // N times
	Lossy             = "lossy"   // a share
)

// What doubts have in What.
const (
	WhyFollows = "follows" // another sentence says why
	WhySlow    = "slow"
	WhyFull    = "full"
)

// doubt returns a doubt with one value.
func doubt(code string, x float64) Doubt {
	return Doubt{Code: code, Values: map[string]float64{code: x}}
}

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
