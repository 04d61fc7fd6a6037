package workload

import (
	"cmp"
	"fmt"
	"math"
	"strconv"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// RR is request and response, in sequence on each connection.
const RR = "rr"

// RROf returns the load's options, or the zero value for other kinds.
func RROf(l sample.Load) sample.RROptions { return options[sample.RROptions](l) }

func rrFill(l *sample.Load) {
	set(l, func(o *sample.RROptions) {
		o.Write, o.Messages = cmp.Or(o.Write, DefaultWrite), filled(o.Messages)
	})
}

func rrMessages(o *sample.RROptions) *sample.Messages { return &o.Messages }

// Metrics that depend on options of rr.
const (
	// BesideThroughput is the throughput of the stream that runs in parallel.
	BesideThroughput = "beside_throughput"
	// In an open loop, the share of requests that were due while an earlier reply was outstanding,
	// and the delay of the other requests. A connection has one request in flight, because the
	// witness could not count packets of pipelined ones.
	SendsHeld      = "sends_held"
	OwnLatenessP50 = "own_lateness_p50"
	OwnLatenessP99 = "own_lateness_p99"
)

var rr = Workload{
	About: "Request and response over TCP, one after another on a connection that stays open. It shows the latency that a mode adds to every " +
		"round trip, and what one costs in CPU time: databases, caches, RPC.",
	Name: RR, Gist: "request/response", Crowds: true, Flags: rrFlags, fill: rrFill,
	time:      rrTime,
	check:     rrCheck,
	notSliced: rrNotSliced,
	threads:   rrThreads,
	times:     rrTimes,
	Nodelay:   true,
	Primary:   LatencyP50, Noun: "median latency", Rate: Transactions, Trips: true,
	words:   rrWords,
	figures: (*Figures).requests, work: answered,
	doubts: rrDoubts, listed: Last,
}

func rrWords(l sample.Load) string {
	o := RROf(l)
	text := "rr, " + messages(l)
	if l.Streams > 1 {
		text += ", " + units.Plural(l.Streams, "connection")
	}
	if o.Rate > 0 {
		text += fmt.Sprintf(", open loop of %s/s", strconv.FormatFloat(o.Rate, 'f', -1, 64))
	}
	if o.Beside {
		text += ", beside a bulk stream"
		if o.Write > 0 {
			text += " with writes of " + units.Bytes(int64(o.Write))
		}
	}
	return text
}

const (
	maxRate    = 1e7 // requests per second
	leastSends = 10  // requests per window
)

var rrFlags = []Flag{
	requestFlag(1, rrMessages), replyFlag(1, rrMessages),
	connectionsFlag(func(l *sample.Load, n int) {
		if l.Streams = 0; n > 1 {
			l.Streams = n
		}
	}),
	{Name: "rate",
		Help: "requests per second over all connections, sent on time even if earlier ones are unanswered (default as fast as replies come)",
		Value: Number{0, 0, maxRate, func(l *sample.Load, x float64) {
			set(l, func(o *sample.RROptions) { o.Rate = x })
		}}, NotOfCrowds: true},
	{Name: "under-load", Help: "while a bulk stream to the server runs", NotOfCrowds: true,
		Value: Toggle{func(l *sample.Load, on bool) {
			set(l, func(o *sample.RROptions) { o.Beside = on })
		}}},
	besideWriteFlag(),
	nodelayFlag,
}

func besideWriteFlag() Flag {
	f := writeFlag(func(o *sample.RROptions, n int) { o.Write = n })
	f.Help, f.With = "", "under-load"
	return f
}

func connectionsFlag(put func(l *sample.Load, n int)) Flag {
	return Flag{
		Name: "connections", Help: "simultaneous connections, each with one request at a time",
		Value: Whole{1, 1, maxStreams, put}}
}

func rrTime(l *sample.Load, w sample.Wire) {
	if l.Warmup = usualWarmup(w); RROf(*l).Beside {
		l.Warmup = bulkWarmup(w)
	}
}

func rrCheck(l sample.Load) error {
	o := RROf(l)
	if o.Rate <= 0 || o.Rate*l.Window >= leastSends {
		return nil
	}
	hint := fmt.Sprintf("--rate %g", math.Ceil(leastSends/l.Window))
	if longer := math.Ceil(leastSends / o.Rate); longer <= MaxWindow.Seconds() {
		hint = fmt.Sprintf("--window %gs", longer)
	}
	return &OptionError{
		fmt.Sprintf("--rate %g: fewer than %d requests would be due in a window of %gs", o.Rate,
			leastSends, l.Window), hint}
}

func rrNotSliced(l sample.Load) string {
	o := RROf(l)
	switch {
	case o.Rate > 0:
		return "--rate: requests are sent at a fixed pace"
	case o.Beside:
		return "--under-load: two loads run at once"
	}
	return ""
}

func rrTimes(l sample.Load) []string {
	if RROf(l).Rate <= 0 {
		return nil
	}
	return []string{TimeOwnLateness}
}

func rrThreads(l sample.Load) int {
	if RROf(l).Beside {
		return max(1, l.Streams) + 1
	}
	return max(1, l.Streams)
}

// Counts and times of an open loop's client, for the requests that were due in the window.
const (
	CountSends      = "sends"      // or held until the load's end
	CountSendsHeld  = "sends_held" // due while an earlier reply was outstanding
	CountSendsLate  = "sends_late" // late by the client's own fault, by at least lateSend
	TimeOwnLateness = "own_lateness"
)

// Counts of the parallel stream's server in the window: received bytes, and the window's length in
// ns.
const (
	CountBeside   = "beside_received"
	CountBesideNs = "beside_ns"
)

// answered returns the number of round trips, or 0 next to a stream, which uses most of the CPU
// time.
func answered(v sample.Visit, l sample.Load) float64 {
	if RROf(l).Beside {
		return 0
	}
	return roundTrips(v, l)
}

func (f *Figures) requests(v sample.Visit, l sample.Load) {
	o := RROf(l)
	if o.Beside {
		// The CPU time of a round trip cannot be separated from the stream's.
		f.busy = 0
		f.set(BesideThroughput, bitsPerByte*nsPerSecond*
			float64(v.Server.Counts[CountBeside])/float64(v.Server.Counts[CountBesideNs]))
	}
	f.roundTrips(v)
	if o.Rate <= 0 {
		return
	}
	f.set(SendsHeld, float64(v.Client.Counts[CountSendsHeld])/float64(v.Client.Counts[CountSends]))
	f.times(v, TimeOwnLateness)
}

// shortOf is the share of its rate that an open loop must get answered.
const shortOf = 0.98

func rrDoubts(s Seen) (out []Doubt) {
	l, o := s.Load, RROf(s.Load)
	if o.Rate <= 0 || len(s.Visits) == 0 {
		return nil
	}
	// An overloaded connection never sleeps.
	if s.Median(Transactions) < shortOf*o.Rate {
		out = append(out, Doubt{Code: BelowRate})
	}
	interval := float64(max(1, l.Streams)) / o.Rate
	if s.Median(OwnLatenessP99) > interval {
		out = append(out, Doubt{Code: Behind})
	} else if s.Median(OwnLatenessP50) > s.Median(LatencyP50)/2 {
		out = append(out, Doubt{Code: OwnLate})
	}
	return out
}
