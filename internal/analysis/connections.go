package analysis

import (
	"fmt"
	"math"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// Names of the metrics of connections that end with their trips (crr); the
// latency_ metrics are of the whole, from connect to close.
const (
	Connections       = "connections"
	ConnectP50        = "connect_p50"
	ConnectP99        = "connect_p99"
	CPUPerConnection  = "cpu_per_connection"
	FailedConnections = "failed_connections"
)

// timeConnect is what the load calls the time of connect(2).
const timeConnect = "connect"

// failureWords are the failures that the client counts, in words.
var failureWords = []struct{ count, words string }{
	{"connect_timeout", "not answered"},
	{"connect_refused", "refused"},
	{"connect_no_port", "without a port"},
	{"connect_error", "refused by the client's kernel"},
	{"exchange_failed", "broken off before the reply"},
}

// addConnections adds a visit of crr.
func (s *series) addConnections(v sample.Visit, _ sample.Load, busy float64) {
	s.addLatency(v)
	s.addTimes(v, timeConnect, map[string]float64{ConnectP50: 50, ConnectP99: 99})
	failed := int64(0)
	for _, f := range failureWords {
		failed += v.Client.Counts[f.count]
	}
	s.set(FailedConnections, v.Round, float64(failed))
	rate := float64(v.Client.Trips) / v.Client.Window
	if !(rate > 0) || math.IsInf(rate, 0) {
		return
	}
	s.set(Connections, v.Round, rate)
	if busy > 0 && v.Elapsed > 0 {
		s.set(CPUPerConnection, v.Round, busy/v.Elapsed/rate)
	}
}

// briefWarnings are the doubts about a cell whose connections end with their
// trips, in all visits, also those that failed.
func (s *series) briefWarnings() []Warning {
	if !trafficOf(s.load).brief {
		return nil
	}
	var (
		out              []Warning
		cut              = map[string]int{} // visits, by what ran out
		least            = map[string]int{} // and the smallest budget
		n, left, most    int
		why              string
		failed, attempts int64
		kinds            = make([]int64, len(failureWords))
	)
	for _, v := range s.all {
		n++
		for i, f := range failureWords {
			kinds[i] += v.Client.Counts[f.count]
			failed += v.Client.Counts[f.count]
		}
		attempts += v.Client.Trips
		if v.Room == nil {
			continue
		}
		if v.Room.Window > 0 || v.Client.Counts["threads_cut_short"] > 0 {
			limit := v.Room.Limit
			if v.Client.Counts["connect_no_port"] > 0 {
				limit = sample.LimitPorts
			}
			if cut[limit]++; cut[limit] == 1 || v.Room.Budget < least[limit] {
				least[limit] = v.Room.Budget
			}
		}
		if v.Room.Left > 0 || v.Room.TimeWait > 0 {
			left++
			most = max(most, v.Room.Left, v.Room.TimeWait)
			why = v.Room.Error
		}
	}
	if k := cut[sample.LimitPorts]; k > 0 {
		out = append(out, Warning{"ports-exhausted", fmt.Sprintf("%d of %d visits were cut short, because there are ephemeral ports for %d connections only: "+
			"a shorter --window, or a larger net.ipv4.ip_local_port_range", k, n, least[sample.LimitPorts])})
	}
	if k := cut[sample.LimitTracking]; k > 0 {
		out = append(out, Warning{"conntrack-full", fmt.Sprintf("%d of %d visits were cut short, because the connection table takes %d connections only: "+
			"a shorter --window, or a larger net.netfilter.nf_conntrack_max", k, n, least[sample.LimitTracking])})
	}
	if left > 0 {
		text := fmt.Sprintf("up to %d sockets of ended connections were left at %d of %d visits: later visits had fewer ports", most, left, n)
		if why != "" {
			text += " (" + why + ")"
		}
		out = append(out, Warning{"time-wait-left", text})
	}
	if failed > 0 {
		var say []string
		for i, f := range failureWords {
			if kinds[i] > 0 {
				say = append(say, fmt.Sprintf("%d %s", kinds[i], f.words))
			}
		}
		out = append(out, Warning{"failed-connections", fmt.Sprintf("%d of %d connections failed, and are in no other figure: %s",
			failed, failed+attempts, strings.Join(say, ", "))})
	}
	return out
}
