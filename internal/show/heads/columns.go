package heads

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

func col(above, below, metric string, scale float64, show Kind) Column {
	return Column{Head: [2]string{above, below}, Metric: metric, Scale: scale, Show: show}
}

func (c Column) quiet(text string) Column {
	c.Quiet = text
	return c
}

// Columns of several loads.
var (
	p50        = col("p50", "µs", workload.LatencyP50, Micro, Median)
	p99        = col("p99", "µs", workload.LatencyP99, Micro, Merged)
	p999       = col("p99.9", "µs", workload.LatencyP999, Micro, Merged)
	gbit       = col("", "Gbit/s", workload.Throughput, Giga, Median)
	perTrip    = col("CPU µs", "/trip", workload.CPUPerTrip, Micro, Median)
	loss       = col("loss", "%", workload.Loss, Percent, Rare)
	resent     = col("", "retr", workload.Retransmits, 1, Integer).quiet("0")
	limit      = col("limited", "by", "", 0, LimitedBy).quiet("-")
	connect    = col("connect", "ms", workload.ConnectTime, Milli, Median)
	rtt        = col("RTT", "ms", workload.RTT, Milli, Median)
	firstP50   = col("first", "p50 ms", workload.FirstTokenP50, Milli, Median)
	gapP50     = col("gap", "p50 ms", workload.GapP50, Milli, Median)
	gapP99     = col("", "p99", workload.GapP99, Milli, Merged)
	gapMax     = col("longest", "gap ms", workload.GapMax, Milli, Merged)
	glued      = col("glued", "%", workload.Glued, Percent, Share)
	gapSlow    = col("slow", "tenth", workload.GapSlow, Milli, Median)
	stalls     = col("", "stalls", workload.Stalls, 0, Total)
	kept       = col("kept", "adds ms", workload.KeptExcess, Milli, Median).quiet("-")
	response   = col("response", "s", workload.ResponseTime, 1, Median)
	addsAll    = col("adds to", "response", workload.ResponseTime, 0, Added)
	wordRate   = col("tokens", "/s", workload.WordRate, 1, Median)
	tokensEach = col("tokens", "each", workload.Words, 1, Integer)
)

func bulk(l sample.Load) Table {
	o := workload.BulkOf(l)
	out := []Column{gbit}
	if o.Bidir {
		out = append(out, col("Gbit/s", "out", workload.ThroughputOut, Giga, Median),
			col("Gbit/s", "back", workload.ThroughputBack, Giga, Median))
	}
	if o.Bytes > 0 {
		out = append(out, col("took", "ms", workload.CompletionTime, Milli, Median))
	}
	return Table{Ratio: "ratio", Columns: append(out,
		col("CPU", "s/GB", workload.CPUPerByte, PerGB, Median),
		col("Gbit/s", "/core", workload.PerBusyCore, Giga, Median), resent, limit)}
}

func rr(l sample.Load) Table {
	o := workload.RROf(l)
	out := []Column{p50, p99, p999}
	switch {
	case o.Rate > 0:
		out = append(out, col("late", "µs", workload.OwnLatenessP50, Micro, Median))
	case l.Streams > 1:
		out = append(out, col("trips", "/s", workload.Transactions, 1, Integer))
	}
	if o.Beside { // a trip's CPU time is unknown
		out = append(out, col("beside", "Gbit/s", workload.BesideThroughput, Giga, Median))
	} else {
		out = append(out, perTrip)
	}
	return Table{Ratio: "p50 ratio", Adds: "µs", Columns: append(out, resent, limit)}
}

// crr omits failed connections, which are in the warnings below.
var crr = []Column{
	col("1000", "conn/s", workload.Connections, Kilo, Median),
	col("connect", "p50 µs", workload.ConnectP50, Micro, Median),
	p50, p99, p999,
	col("CPU µs", "/conn", workload.CPUPerConnection, Micro, Median), limit,
}

var udp = []Column{
	gbit, col("1000", "pkt/s", workload.Packets, Kilo, Median), loss,
	col("late", "%", workload.Reordered, Percent, Rare),
	col("CPU µs", "/pkt", workload.CPUPerPacket, Micro, Median), limit,
}

var tokens = []Column{
	col("delay", "p50 µs", workload.LatencyP50, Micro, Median), p99, p999,
	col("max", "µs", workload.LatencyMax, Micro, Merged),
	col("CPU µs", "/token", workload.CPUPerToken, Micro, Median), limit,
}

// moreTokens shows the path's and the load's parts of the delay, and what the reader of a response
// sees.
var moreTokens = []Column{
	col("path", "p50 µs", workload.TransitP50, Micro, Median),
	col("late", "p99 µs", workload.LateP99, Micro, Merged),
	firstP50, col("", "p99", workload.FirstTokenP99, Milli, Merged),
	gapP50, gapP99, gapMax,
	col("response", "p50 ms", workload.ResponseTime, Milli, Hundredths), glued,
	col("tokens", "/s", workload.TokenRate, 1, Median),
}

var pages = []Column{
	col("page p50", "ms", workload.LatencyP50, Milli, Median),
	col("p99", "ms", workload.LatencyP99, Milli, Merged),
	col("pages", "/s", workload.Transactions, 1, Median),
	col("query", "µs", workload.QueryP50, Micro, Median),
}

var moreSQL = slices.Concat([]Column{
	col("adds to", "page p50 ms", workload.LatencyP50, 0, Added),
	col("adds to", "page p99", workload.LatencyP99, 0, Added),
	col("adds to", "query µs", workload.QueryP50, Micro, Added), connect, rtt,
}, suspects)

var chat = []Column{firstP50, gapP50, gapSlow, gapP99, gapMax, response}

// ChatProof lists the columns of a summary that show how the tokens arrived.
var ChatProof = []Column{firstP50, gapP50, gapSlow, gapMax, stalls, glued}

var moreChat = slices.Concat([]Column{
	col("adds to", "first ms", workload.FirstTokenP50, 0, Added),
	col("adds to", "gap p50", workload.GapP50, 0, Added),
	col("adds to", "slow gap", workload.GapSlow, 0, Added), addsAll, wordRate, stalls, tokensEach,
	glued, col("other", "events", workload.OtherEvents, 0, Total).quiet("0"), connect, rtt, kept,
}, suspects)

var batch = []Column{response}

var moreBatch = slices.Concat([]Column{addsAll, wordRate, tokensEach, connect, rtt, kept}, suspects)

func program(l sample.Load) Table {
	w := workload.Of(l)
	t := Table{Ratio: "ratio", More: slices.Concat([]Column{
		col("TCP", "connections", workload.Dialled, 1, Integer).quiet("-"), rtt.quiet("-"),
	}, suspects)}
	p := workload.ExecOf(l).Program
	if p == nil {
		return t
	}
	t.Ratio = w.Primary + " ratio"
	for _, g := range p.Gauges {
		c := col(g.Name, "", g.Name, 0, Fitted)
		if g.Optional {
			c.Quiet = "-"
		}
		t.Columns = append(t.Columns, c)
	}
	t.Columns = append(t.Columns, col(workload.Elapsed, "", workload.Elapsed, 0, Fitted).quiet("-"),
		col("CPUs", "busy", workload.BusyCPUs, 1, Median))
	if !workload.Alone(l) {
		t.Columns = append(t.Columns, limit)
	}
	return t
}

var suspects = []Column{
	col("look-up", "ms", workload.LookUpTime, Milli, Median).quiet("-"),
	col("", "resent", workload.Resent, 0, Total).quiet("0"),
	col("out of", "order", workload.OutOfOrder, 0, Total).quiet("0"),
	col("CPU", "stops", workload.Stops, 0, Total).quiet("-"),
	col("memory", "hits", workload.MemoryHits, 0, Total).quiet("-"),
	col("", "refused", workload.RefusedDials, 0, Total).quiet("-"),
	col("no port", "left", workload.NoPortDials, 0, Total).quiet("-"),
	much("ports", "used", workload.PortUse),
	much("proxy", "ports", workload.ProxyPortUse),
	col("server", "CPU stops", workload.ServerStops, 0, Total).quiet("-"),
	col("server", "mem. hits", workload.ServerHits, 0, Total).quiet("-"),
	col("listen", "overflows", workload.ServerOverflows, 0, Total).quiet("-"),
	col("listen", "drops", workload.ServerDrops, 0, Total).quiet("-"),
	col("server", "resent", workload.ServerResent, 0, Total).quiet("-"),
	much("CPUs", "full", workload.BusyShare),
	much("soft", "irq", workload.SoftIRQShare),
}

// much shows a suspect's share from which it is reported.
func much(above, below, metric string) Column {
	all := workload.Suspects()
	i := slices.IndexFunc(all, func(s workload.Suspect) bool { return s.Metric == metric })
	return col(above, below, metric, all[i].Least, Much).quiet("-")
}
