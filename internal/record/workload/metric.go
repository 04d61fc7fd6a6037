package workload

import (
	"maps"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Metric is a quantity of a cell.
type Metric struct {
	Name   string
	Unit   string // base unit; "": the throughput's
	Higher bool   // higher is better
	// Times names the histogram whose Quantile (in per cent) the metric is; "": it is another
	// figure.
	Times    string
	Quantile float64
}

// Metrics that several loads have.
const (
	Throughput   = "throughput"
	LatencyP50   = "latency_p50"
	LatencyP90   = "latency_p90"
	LatencyP99   = "latency_p99"
	LatencyP999  = "latency_p999"
	LatencyMax   = "latency_max"
	Transactions = "transactions"
	CPUPerByte   = "cpu_per_byte"
	CPUPerTrip   = "cpu_per_transaction"
	PerBusyCore  = "throughput_per_busy_core"
	Retransmits  = "retransmits"
	RTT          = "rtt"
	Cwnd         = "cwnd"
	Involuntary  = "involuntary_switches"
)

// The throughput of the window that ends a sliced load's epoch. Throughput and Transactions are
// measured in the slices.
const (
	WindowThroughput   = "window_throughput"
	WindowTransactions = "window_transactions"
)

// 100 is the maximum
var percentiles = map[string]float64{
	LatencyP50: 50, LatencyP90: 90, LatencyP99: 99, LatencyP999: 99.9, LatencyMax: 100,
}

// Percentile returns a latency metric's percentile; ok is false for all other metrics.
func Percentile(metric string) (q float64, ok bool) {
	q, ok = percentiles[metric]
	return q, ok
}

// IsMedian reports whether a run's figure is its rounds' median. Other percentiles are of all
// rounds' samples together, because a round has few beyond them.
func IsMedian(metric string) bool {
	const half = 50
	return percentiles[metric] == half || metrics[metric].Quantile == half
}

var common = []Metric{
	{Name: Throughput, Unit: "bit/s", Higher: true},
	{Name: PerBusyCore, Unit: "bit/s", Higher: true},
	{Name: WindowThroughput, Unit: "bit/s", Higher: true},
	{Name: WindowTransactions, Unit: "1/s", Higher: true},
	{Name: LatencyP50, Unit: "s"}, {Name: LatencyP90, Unit: "s"}, {Name: LatencyP99, Unit: "s"},
	{Name: LatencyP999, Unit: "s"}, {Name: LatencyMax, Unit: "s"},
	{Name: Transactions, Unit: "1/s", Higher: true}, {Name: CPUPerByte, Unit: "s/B"},
	{Name: CPUPerTrip, Unit: "s"},
	{Name: Retransmits, Unit: "segments"}, {Name: RTT, Unit: "s"}, {Name: Cwnd, Unit: "segments"},
	{Name: Involuntary, Unit: "switches"},
}

var metrics = byName()

func byName() map[string]Metric {
	out := map[string]Metric{}
	for _, list := range append([][]Metric{common, crowdMetrics}, each(func(w Workload) []Metric {
		return w.Metrics
	})...) {
		for _, m := range list {
			out[m.Name] = m
		}
	}
	return out
}

func each(of func(Workload) []Metric) (out [][]Metric) {
	for _, w := range all {
		out = append(out, of(w))
	}
	return out
}

// MetricOf returns a metric under a load. A program's own metrics take precedence.
func MetricOf(name string, l sample.Load) Metric {
	if g, ok := gauge(l, name); ok {
		return Metric{Name: name, Unit: g.Unit, Higher: !g.Lower}
	}
	m := metrics[name]
	m.Name = name
	if m.Unit == "" {
		m.Unit = metrics[Of(l).Rate].Unit
	}
	return m
}

// MetricNames returns all names, sorted.
func MetricNames() []string { return slices.Sorted(maps.Keys(metrics)) }
