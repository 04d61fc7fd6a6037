package workload

import (
	"fmt"
	"math"
	"strings"

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

var failureWords = []struct{ count, words string }{
	{FailedTimeout, "not answered"},
	{FailedRefused, "refused"},
	{FailedNoPort, "without a local port"},
	{FailedConnect, "refused by the client's kernel"},
	{FailedExchange, "broken off before the reply"},
}

func (f *Figures) connections(v sample.Visit, _ sample.Load) {
	f.latency(v)
	f.times(v, TimeConnect)
	failed := int64(0)
	for _, w := range failureWords {
		failed += v.Client.Counts[w.count]
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
	n := len(all)
	if k := cut[sample.LimitPorts]; k > 0 {
		out = append(out, Doubt{"ports-exhausted",
			fmt.Sprintf(
				"%d of %d visits were cut short, because there are ephemeral ports for only %d connections: "+
					"use a shorter --window, or widen net.ipv4.ip_local_port_range", k, n,
				least[sample.LimitPorts])})
	}
	if k := cut[sample.LimitTracking]; k > 0 {
		out = append(out, Doubt{"conntrack-full",
			fmt.Sprintf(
				"%d of %d visits were cut short, because the connection table has room for only %d connections: "+
					"use a shorter --window, or raise net.netfilter.nf_conntrack_max", k, n,
				least[sample.LimitTracking])})
	}
	if left > 0 {
		text := fmt.Sprintf(
			"up to %d sockets of ended connections were left after %d of %d visits: later visits had fewer ports", most, left, n)
		if why != "" {
			text += " (" + why + ")"
		}
		out = append(out, Doubt{"time-wait-left", text})
	}
	return out
}

func failedConnections(all []*sample.Visit) []Doubt {
	var failed, attempts int64
	kinds := make([]int64, len(failureWords))
	for _, v := range all {
		for i, f := range failureWords {
			kinds[i] += v.Client.Counts[f.count]
			failed += v.Client.Counts[f.count]
		}
		attempts += v.Client.Trips
	}
	if failed == 0 {
		return nil
	}
	var say []string
	for i, f := range failureWords {
		if kinds[i] > 0 {
			say = append(say, fmt.Sprintf("%d %s", kinds[i], f.words))
		}
	}
	return []Doubt{{"failed-connections", fmt.Sprintf(
		"%d of %d connections failed, and are in no other figure: %s",
		failed, failed+attempts, strings.Join(say, ", "))}}
}
