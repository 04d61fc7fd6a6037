package workload

import (
	"cmp"
	"slices"
)

// Metrics returns all metrics, by name.
func Metrics() []Metric {
	var out []Metric
	for _, m := range metrics {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b Metric) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

var metricWords = map[string]string{
	Throughput:         "Payload bits per second that arrived, without headers.",
	PerBusyCore:        "The throughput divided by the number of CPUs that it kept busy. Of two equally fast modes it shows which one needs more CPU time.",
	WindowThroughput:   "The throughput in the window at the end of an epoch: sustained, unlike that of slices of a few ms.",
	WindowTransactions: "Transactions per second in the window at the end of an epoch.",
	LatencyP50:         "The median latency: half of all round trips (of stream: token delays; of query and sql: pages) take less. What is typical.",
	LatencyP90:         "The latency that 90 % of all round trips stay below.",
	LatencyP99:         "The latency that 99 % of all round trips stay below. Every fifth page of 20 queries has a query above it.",
	LatencyP999:        "The latency that 99.9 % of all round trips stay below. It means something only with at least ten samples beyond it.",
	LatencyMax:         "The longest latency of all.",
	Transactions:       "Round trips (of query: pages) per second.",
	CPUPerByte:         "CPU time of the whole machine for each payload byte: client, server, kernel and proxy. Tables have it in seconds per gigabyte.",
	CPUPerTrip:         "CPU time of the whole machine for each round trip (of query: page): client, server, kernel and proxy.",
	Retransmits:        "Segments that TCP sent again, because they were lost or late.",
	Dialled:            "For toll run HOST:PORT: the TCP connections that the client made to the address of its route, as its kernel counted them.",
	LookUpTime:         "How long the look-up of an endpoint's name took, before connecting. It is missing if an address is given.",
	RTT:                "The round-trip time as TCP itself estimates it, with its delayed acknowledgements.",
	Cwnd:               "TCP's congestion window: segments that may be under way.",
	Involuntary:        "How often the kernel took the CPU from client or server for something else. Many mean a busy machine.",
	ThroughputOut:      "With --bidir: the throughput from the client to the server.",
	ThroughputBack:     "With --bidir: the throughput from the server to the client.",
	CompletionTime:     "With --bytes: the time from the common start until the last byte arrived.",
	ZerocopyCopied:     "With --send zerocopy: the share of the sends that the kernel copied after all.",
	RetransmissionRate: "For a mesh: the share of the sent segments that TCP sent again.",
	BesideThroughput:   "With --under-load: the throughput of the stream that runs beside the round trips.",
	SendsHeld:          "With --rate: the share of the requests that were due while an earlier reply was outstanding.",
	OwnLatenessP50:     "With --rate: by how much the client itself sends a request late, in the median. The latency includes it, but the path does not cause it.",
	OwnLatenessP99:     "With --rate: the lateness of the client itself that 99 % of the requests stay below.",
	Connections:        "Connections that were opened, used once and closed, per second.",
	ConnectP50:         "The median time of connect alone, of a whole connection's latency.",
	ConnectP99:         "The time of connect that 99 % of the connections stay below.",
	CPUPerConnection:   "CPU time of the whole machine for each connection.",
	FailedConnections:  "Connections that failed, in all visits.",
	Packets:            "Datagrams that arrived, per second.",
	Loss:               "The share of the datagrams that did not arrive, or of the requests that had no answer.",
	SocketLoss:         "The share of the datagrams that the receiving socket dropped, because its queue was full. They crossed the path.",
	Reordered:          "The share of the datagrams that arrived after one that was sent later.",
	Duplicates:         "The share of the datagrams that arrived a second time.",
	Offered:            "Bits per second that the client sent; what arrived is the throughput.",
	CPUPerPacket:       "CPU time of the whole machine for each datagram.",
	FirstTokenP50:      "The median time from a request to its first token.",
	FirstTokenP99:      "The time to the first token that 99 % of the responses stay below.",
	GapP50:             "The median time between two tokens of a response.",
	GapP99:             "The time between two tokens that 99 % of the gaps stay below.",
	GapMax:             "The longest gap between two tokens.",
	ResponseTime:       "The median time from a request to the end of its response.",
	Overrun:            "The time of a response beyond that of its tokens at their pace.",
	Glued:              "The share of the tokens that arrived together with another one: the reader sees them in one jump.",
	TokenRate:          "Tokens that arrived, per second, of all sessions together.",
	CPUPerToken:        "CPU time of client, server and proxy for each token.",
	LateP99:            "The server itself sent 99 % of its tokens at most this late. The path does not cause it.",
	LateMax:            "How late the server itself sent a token at most.",
	TransitP50:         "The path's part of a token's delay, in the median: from when it was sent until it arrived.",
	TransitP99:         "The path's part of a token's delay that 99 % stay below.",
	WaitP99:            "How long a token may have waited for the client's own thread: 99 % waited less.",
	WaitMax:            "How long a token may have waited for the client's own thread at most.",
	QueryP50:           "The median time of one query of a page.",
	QueryP99:           "The time of a query that 99 % stay below.",
	GapSlow:            "The mean of the slowest tenth of the gaps between tokens.",
	Stalls:             "Gaps that are longer than --stall.",
	Words:              "Tokens of a response, by the server's own count if it sends one; streamed tokens without one are events.",
	WordRate:           "Tokens of a response per second from its request on, by the server's own count if it sends one; streamed tokens without one are events.",
	OtherEvents:        "Events of the server that were no part of a response, such as pings.",
	KeptExcess:         "By how much the longest wait of a response over a kept connection exceeds that over a new one: the time to the first token, a gap, or a whole response. Delayed acknowledgements show there, because a connection's first packets are acknowledged at once.",
	ConnectTime:        "The time to connect; for a database, with the login.",
	Elapsed:            "How long the client of toll run took.",
	BusyCPUs:           "The number of the machine's CPUs that were busy meanwhile, with programs and kernel.",
	ClientMean:         "The mean throughput of a client container.",
	ClientMin:          "The throughput of the client container that got least.",
	ClientMax:          "The throughput of the client container that got most.",
	ClientFairness:     "Jain's index over the client containers: 1 if all get the same, 1/n if one of n gets everything.",
	ProcessMin:         "The throughput of the client process that got least.",
	ProcessFairness:    "Jain's index over the client processes.",
	Memory:             "The peak memory of all processes of the load together.",
	Setup:              "The time from the first process's start to the last one's connection.",
	StartSpread:        "The time from the common start until the last client's first byte.",
}

// Explain describes the metric in a sentence or two.
func (m Metric) Explain() string {
	for _, s := range suspects {
		if s.Metric == m.Name {
			return s.explain
		}
	}
	return metricWords[m.Name]
}
