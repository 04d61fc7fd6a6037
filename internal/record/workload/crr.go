package workload

import (
	"fmt"
	"math"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// CRR is connect, request, response and close, repeatedly.
const CRR = "crr"

// Metrics of connections that end with their trips. The latency_ metrics of these loads cover the
// time from connect to close.
const (
	Connections       = "connections"
	ConnectP50        = "connect_p50"
	ConnectP99        = "connect_p99"
	CPUPerConnection  = "cpu_per_connection"
	FailedConnections = "failed_connections"
)

var crr = Workload{
	About: "Connect, request, response, close: a new TCP connection for each request. It shows what a mode adds to opening connections, " +
		"where NAT, connection tracking and docker-proxy cost most: HTTP without keep-alive.",
	Name: CRR, Gist: "connect, request, response, close",
	Flags: []Flag{requestFlag(1, ownMessages), replyFlag(1, ownMessages),
		connectionsFlag(func(l *sample.Load, n int) { l.Streams = n }), nodelayFlag},
	fill: fillMessages,
	time: crrTime, notSliced: because("its closed connections outlast a slice"),
	Primary: Connections,
	Noun:    "connections per second",
	Rate:    Connections,
	Trips:   true,
	trip:    "connection",
	Brief:   true,
	words:   crrWords,
	times:   timed(TimeConnect), Nodelay: true,
	figures: (*Figures).connections, work: roundTrips,
	doubts: crrDoubts, listed: BeforeLate,
}

func crrWords(l sample.Load) string {
	text := "crr"
	if l.Streams > 1 {
		text += fmt.Sprintf(", %s at a time", units.Plural(l.Streams, "connection"))
	}
	return text + ", " + messages(l)
}

// crrTime allows two round trips per connection, and a warm-up for caches and neighbour tables.
func crrTime(l *sample.Load, w sample.Wire) { l.Warmup = 0.05 + 2*Settled*w.RoundTrip() }

// TimeConnect names the histogram of connect(2) alone.
const TimeConnect = "connect"

// The client's counts of failures in the window by kind, and Failed in the whole visit.
const (
	FailedTimeout  = "connect_timeout"   // SYN unanswered
	FailedRefused  = "connect_refused"   // ECONNREFUSED
	FailedNoPort   = "connect_no_port"   // EADDRNOTAVAIL
	FailedConnect  = "connect_error"     // other errors of socket or connect
	FailedExchange = "exchange_failed"   // connected, but without a timely whole reply
	Failed         = "failed_in_visit"   // all of these, in the whole visit
	EndedEarly     = "threads_cut_short" // threads that stopped because ports or the budget ran out
)

// FailureCounts lists the counts of failed connections, by what ended them.
var FailureCounts = []string{FailedTimeout, FailedRefused, FailedNoPort, FailedConnect,
	FailedExchange}

func (f *Figures) connections(v sample.Visit, _ sample.Load) {
	f.latency(v)
	f.times(v, TimeConnect)
	failed := int64(0)
	for _, count := range FailureCounts {
		failed += v.Client.Counts[count]
	}
	f.set(FailedConnections, float64(failed))
	rate := float64(v.Client.Trips) / v.Client.Window
	if !(rate > 0) || math.IsInf(rate, 0) {
		return
	}
	f.set(Connections, rate)
	if f.busy > 0 && v.Elapsed > 0 {
		f.set(CPUPerConnection, f.busy/v.Elapsed/rate)
	}
}

func crrDoubts(s Seen) []Doubt { return append(cutShort(s.All), failedConnections(s.All)...) }

func cutShort(all []*sample.Visit) (out []Doubt) {
	var (
		cut        = map[string]int{} // visits, by what ran out
		least      = map[string]int{} // the smallest budget
		left, most int
		why        string
	)
	for _, v := range all {
		if v.Headroom == nil {
			continue
		}
		if v.Headroom.Window > 0 || v.Client.Counts[EndedEarly] > 0 {
			limit := v.Headroom.Limit
			if v.Client.Counts[FailedNoPort] > 0 {
				limit = sample.LimitPorts
			}
			if cut[limit]++; cut[limit] == 1 || v.Headroom.Budget < least[limit] {
				least[limit] = v.Headroom.Budget
			}
		}
		if v.Headroom.Left > 0 || v.Headroom.TimeWait > 0 {
			left++
			most = max(most, v.Headroom.Left, v.Headroom.TimeWait)
			why = v.Headroom.Error
		}
	}
	add := func(code string, visits, x int, what string) {
		if visits > 0 {
			d := doubt(code, float64(x))
			d.N, d.Of, d.What = visits, len(all), what
			out = append(out, d)
		}
	}
	add(PortsExhausted, cut[sample.LimitPorts], least[sample.LimitPorts], "")
	add(ConntrackFull, cut[sample.LimitTracking], least[sample.LimitTracking], "")
	add(TimeWaitLeft, left, most, why)
	return out
}

func failedConnections(all []*sample.Visit) []Doubt {
	out := Doubt{Code: ConnectionsFailed, Values: map[string]float64{}}
	for _, v := range all {
		for _, count := range FailureCounts {
			if n := int(v.Client.Counts[count]); n > 0 {
				out.Values[count] += float64(n)
				out.N += n
			}
		}
		out.Of += int(v.Client.Trips)
	}
	if out.N == 0 {
		return nil
	}
	out.Of += out.N
	return []Doubt{out}
}
