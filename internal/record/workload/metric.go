package workload

import (
	"cmp"
	"maps"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Metric is a quantity of a cell. Each has one row in the table below, which JSON, OpenMetrics,
// gates and toll explain read.
type Metric struct {
	Name   string
	Unit   string // base unit; "": the throughput's
	Higher bool   // higher is better
	// Times names the histogram whose Quantile (in per cent) the metric is; "": it is another
	// figure.
	Times    string
	Quantile float64
	Sum      bool   // counts rare events: a run's figure is the sum over all visits
	Words    string // what it is, in a sentence or two
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

// TimeLatency names the histogram of a load's trips.
const TimeLatency = "latency"

// table has the metrics of all loads but those of suspects. A quantile of 100 is the maximum.
var table = []Metric{
	{Name: Throughput, Unit: "bit/s", Higher: true, Words: "Payload bits per second that arrived, without headers."},
	{Name: PerBusyCore, Unit: "bit/s", Higher: true, Words: "The throughput divided by the number of CPUs that it kept busy. Of two equally fast modes it shows which one needs more CPU time."},
	{Name: WindowThroughput, Unit: "bit/s", Higher: true, Words: "The throughput in the window at the end of an epoch: sustained, unlike that of slices of a few ms."},
	{Name: WindowTransactions, Unit: "1/s", Higher: true, Words: "Transactions per second in the window at the end of an epoch."},
	{Name: LatencyP50, Unit: "s", Times: TimeLatency, Quantile: 50, Words: "The median latency: half of all round trips (of stream: token delays; of query and sql: pages) take less. What is typical."},
	{Name: LatencyP90, Unit: "s", Times: TimeLatency, Quantile: 90, Words: "The latency that 90 % of all round trips stay below."},
	{Name: LatencyP99, Unit: "s", Times: TimeLatency, Quantile: 99, Words: "The latency that 99 % of all round trips stay below. Every fifth page of 20 queries has a query above it."},
	{Name: LatencyP999, Unit: "s", Times: TimeLatency, Quantile: 99.9, Words: "The latency that 99.9 % of all round trips stay below. It means something only with at least ten samples beyond it."},
	{Name: LatencyMax, Unit: "s", Times: TimeLatency, Quantile: 100, Words: "The longest latency of all."},
	{Name: Transactions, Unit: "1/s", Higher: true, Words: "Round trips (of query: pages) per second."},
	{Name: CPUPerByte, Unit: "s/B", Words: "CPU time of the whole machine for each payload byte: client, server, kernel and proxy. Tables have it in seconds per gigabyte."},
	{Name: CPUPerTrip, Unit: "s", Words: "CPU time of the whole machine for each round trip (of query: page): client, server, kernel and proxy."},
	{Name: Retransmits, Unit: "segments", Words: "Segments that TCP sent again, because they were lost or late."},
	{Name: Dialled, Unit: "connections", Words: "For toll run HOST:PORT: the TCP connections that the client made to the address of its route, as its kernel counted them."},
	{Name: LookUpTime, Unit: "s", Words: "How long the look-up of an endpoint's name took, before connecting. It is missing if an address is given."},
	{Name: RTT, Unit: "s", Words: "The round-trip time as TCP itself estimates it, with its delayed acknowledgements."},
	{Name: Cwnd, Unit: "segments", Words: "TCP's congestion window: segments that may be under way."},
	{Name: Involuntary, Unit: "switches", Words: "How often the kernel took the CPU from client or server for something else. Many mean a busy machine."},
	{Name: ThroughputOut, Unit: "bit/s", Higher: true, Words: "With --bidir: the throughput from the client to the server."},
	{Name: ThroughputBack, Unit: "bit/s", Higher: true, Words: "With --bidir: the throughput from the server to the client."},
	{Name: CompletionTime, Unit: "s", Words: "With --bytes: the time from the common start until the last byte arrived."},
	{Name: ZerocopyCopied, Unit: "1", Words: "With --send zerocopy: the share of the sends that the kernel copied after all."},
	{Name: RetransmissionRate, Unit: "1", Words: "For a mesh: the share of the sent segments that TCP sent again."},
	{Name: BesideThroughput, Unit: "bit/s", Higher: true, Words: "With --under-load: the throughput of the stream that runs beside the round trips."},
	{Name: SendsHeld, Unit: "1", Words: "With --rate: the share of the requests that were due while an earlier reply was outstanding."},
	{Name: OwnLatenessP50, Unit: "s", Times: TimeOwnLateness, Quantile: 50, Words: "With --rate: by how much the client itself sends a request late, in the median. The latency includes it, but the path does not cause it."},
	{Name: OwnLatenessP99, Unit: "s", Times: TimeOwnLateness, Quantile: 99, Words: "With --rate: the lateness of the client itself that 99 % of the requests stay below."},
	{Name: Connections, Unit: "1/s", Higher: true, Words: "Connections that were opened, used once and closed, per second."},
	{Name: ConnectP50, Unit: "s", Times: TimeConnect, Quantile: 50, Words: "The median time of connect alone, of a whole connection's latency."},
	{Name: ConnectP99, Unit: "s", Times: TimeConnect, Quantile: 99, Words: "The time of connect that 99 % of the connections stay below."},
	{Name: CPUPerConnection, Unit: "s", Words: "CPU time of the whole machine for each connection."},
	{Name: FailedConnections, Unit: "connections", Words: "Connections that failed, in all visits."},
	{Name: Packets, Unit: "1/s", Higher: true, Words: "Datagrams that arrived, per second."},
	{Name: Loss, Unit: "1", Words: "The share of the datagrams that did not arrive, or of the requests that had no answer."},
	{Name: SocketLoss, Unit: "1", Words: "The share of the datagrams that the receiving socket dropped, because its queue was full. They crossed the path."},
	{Name: Reordered, Unit: "1", Words: "The share of the datagrams that arrived after one that was sent later."},
	{Name: Duplicates, Unit: "1", Words: "The share of the datagrams that arrived a second time."},
	{Name: Offered, Unit: "bit/s", Words: "Bits per second that the client sent; what arrived is the throughput."},
	{Name: CPUPerPacket, Unit: "s", Words: "CPU time of the whole machine for each datagram."},
	{Name: FirstTokenP50, Unit: "s", Times: TimeFirst, Quantile: 50, Words: "The median time from a request to its first token."},
	{Name: FirstTokenP99, Unit: "s", Times: TimeFirst, Quantile: 99, Words: "The time to the first token that 99 % of the responses stay below."},
	{Name: GapP50, Unit: "s", Times: TimeGap, Quantile: 50, Words: "The median time between two tokens of a response."},
	{Name: GapP99, Unit: "s", Times: TimeGap, Quantile: 99, Words: "The time between two tokens that 99 % of the gaps stay below."},
	{Name: GapMax, Unit: "s", Times: TimeGap, Quantile: 100, Words: "The longest gap between two tokens."},
	{Name: ResponseTime, Unit: "s", Words: "The median time from a request to the end of its response."},
	{Name: Overrun, Unit: "s", Times: TimeOverrun, Quantile: 50, Words: "The time of a response beyond that of its tokens at their pace."},
	{Name: Glued, Unit: "1", Words: "The share of the tokens that arrived together with another one: the reader sees them in one jump."},
	{Name: TokenRate, Unit: "1/s", Higher: true, Words: "Tokens that arrived, per second, of all sessions together."},
	{Name: CPUPerToken, Unit: "s", Words: "CPU time of client, server and proxy for each token."},
	{Name: LateP99, Unit: "s", Times: TimeLate, Quantile: 99, Words: "The server itself sent 99 % of its tokens at most this late. The path does not cause it."},
	{Name: LateMax, Unit: "s", Times: TimeLate, Quantile: 100, Words: "How late the server itself sent a token at most."},
	{Name: TransitP50, Unit: "s", Times: TimeTransit, Quantile: 50, Words: "The path's part of a token's delay, in the median: from when it was sent until it arrived."},
	{Name: TransitP99, Unit: "s", Times: TimeTransit, Quantile: 99, Words: "The path's part of a token's delay that 99 % stay below."},
	{Name: WaitP99, Unit: "s", Times: TimeWait, Quantile: 99, Words: "How long a token may have waited for the client's own thread: 99 % waited less."},
	{Name: WaitMax, Unit: "s", Times: TimeWait, Quantile: 100, Words: "How long a token may have waited for the client's own thread at most."},
	{Name: QueryP50, Unit: "s", Times: TimeQuery, Quantile: 50, Words: "The median time of one query of a page."},
	{Name: QueryP99, Unit: "s", Times: TimeQuery, Quantile: 99, Words: "The time of a query that 99 % stay below."},
	{Name: GapSlow, Unit: "s", Words: "The mean of the slowest tenth of the gaps between tokens."},
	{Name: Stalls, Unit: "stalls", Sum: true, Words: "Gaps that are longer than 200 ms."},
	{Name: Words, Unit: "tokens", Words: "Tokens of a response, by the server's own count if it sends one; streamed tokens without one are events."},
	{Name: WordRate, Unit: "1/s", Higher: true, Words: "Tokens of a response per second from its request on, by the server's own count if it sends one; streamed tokens without one are events."},
	{Name: OtherEvents, Unit: "events", Sum: true, Words: "Events of the server that were no part of a response, such as pings."},
	{Name: KeptExcess, Unit: "s", Words: "By how much the longest wait of a response over a kept connection exceeds that over a new one: the time to the first token, a gap, or a whole response. Delayed acknowledgements show there, because a connection's first packets are acknowledged at once."},
	{Name: ConnectTime, Unit: "s", Words: "The time to connect; for a database, with the login."},
	{Name: Elapsed, Unit: "s", Words: "How long the client of toll run took."},
	{Name: BusyCPUs, Unit: "CPUs", Words: "The number of the machine's CPUs that were busy meanwhile, with programs and kernel."},
	{Name: ClientMean, Higher: true, Words: "The mean throughput of a client container."},
	{Name: ClientMin, Higher: true, Words: "The throughput of the client container that got least."},
	{Name: ClientMax, Higher: true, Words: "The throughput of the client container that got most."},
	{Name: ClientFairness, Unit: "1", Higher: true, Words: "Jain's index over the client containers: 1 if all get the same, 1/n if one of n gets everything."},
	{Name: ProcessMin, Higher: true, Words: "The throughput of the client process that got least."},
	{Name: ProcessFairness, Unit: "1", Higher: true, Words: "Jain's index over the client processes."},
	{Name: Memory, Unit: "B", Words: "The peak memory of all processes of the load together."},
	{Name: Setup, Unit: "s", Words: "The time from the first process's start to the last one's connection."},
	{Name: StartSpread, Unit: "s", Words: "The time from the common start until the last client's first byte."},
}

var metrics = byName(table, suspectMetrics())

// percentiles has the metrics of each histogram.
var percentiles = func() map[string][]Metric {
	out := map[string][]Metric{}
	for _, m := range table {
		out[m.Times] = append(out[m.Times], m)
	}
	return out
}()

func byName(lists ...[]Metric) map[string]Metric {
	out := map[string]Metric{}
	for _, m := range slices.Concat(lists...) {
		out[m.Name] = m
	}
	return out
}

// IsLatency reports whether a metric is a percentile of the load's trips.
func IsLatency(metric string) bool { return metrics[metric].Times == TimeLatency }

// IsMedian reports whether a run's figure is its rounds' median. Other percentiles are of all
// rounds' samples together, because a round has few beyond them.
func IsMedian(metric string) bool {
	const half = 50
	return metrics[metric].Quantile == half
}

// Summed reports whether a metric counts rare events: its figure is the sum over all visits.
func Summed(metric string) bool { return metrics[metric].Sum }

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

// Metrics returns all metrics, by name.
func Metrics() []Metric {
	return slices.SortedFunc(maps.Values(metrics), func(a, b Metric) int {
		return cmp.Compare(a.Name, b.Name)
	})
}
