package analysis

import (
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// Names of the metrics that only options of bulk and rr have.
const (
	// Both ways: payload that the server and that the client got; their sum is
	// the throughput.
	ThroughputOut  = "throughput_out"
	ThroughputBack = "throughput_back"
	// A number of bytes: from the common start to the last byte's arrival.
	CompletionTime = "completion_time"
	// Zero-copy: the share of the sends that the kernel copied after all.
	ZerocopyCopied = "zerocopy_copied"
	// Of the stream that runs beside rr.
	BesideThroughput = "beside_throughput"
	// An open loop: the share of the requests that were due while an earlier reply
	// was outstanding, and by how much the client itself sent the others late.
	SendsHeld      = "sends_held"
	OwnLatenessP50 = "own_lateness_p50"
	OwnLatenessP99 = "own_lateness_p99"
)

// Names of what loads count and time, as internal/load gives them.
const (
	countZerocopy       = "zerocopy_sends"
	countZerocopyCopied = "zerocopy_copied"
	countSends          = "sends"
	countSendsHeld      = "sends_held"
	countBeside         = "beside_received"
	countBesideNs       = "beside_ns"
	timeOwnLateness     = "own_lateness"
)

// moved is the payload of a visit of bulk that arrived, both ways.
func moved(v sample.Visit, l sample.Load) float64 {
	if l.Bidir {
		return float64(v.Client.Received + v.Server.Received)
	}
	return received(v, l)
}

// answered is the round trips of a visit of rr; none if a stream ran beside it,
// which spent most of the CPU time.
func answered(v sample.Visit, l sample.Load) float64 {
	if l.Beside {
		return 0
	}
	return trips(v, l)
}

// addTransfer adds a visit of bulk with its options.
func (s *series) addTransfer(v sample.Visit, l sample.Load, busy float64) {
	if l.Bidir {
		out, back := perSecond(v.Server.Received, v.Server.Window), perSecond(v.Client.Received, v.Client.Window)
		s.addBulk(v, out+back, busy)
		s.set(ThroughputOut, v.Round, bitsPerByte*out)
		s.set(ThroughputBack, v.Round, bitsPerByte*back)
	} else {
		s.addStream(v, l, busy)
	}
	if l.Bytes > 0 {
		s.set(CompletionTime, v.Round, completion(v, l))
		if busy > 0 && moved(v, l) > 0 { // all of it is this transfer's, however long the meters ran
			s.set(CPUPerByte, v.Round, busy/moved(v, l))
		}
	}
	sends, copied := 0.0, 0.0
	for _, p := range []sample.Party{v.Client, v.Server} {
		sends += float64(p.Counts[countZerocopy])
		copied += float64(p.Counts[countZerocopyCopied])
	}
	if l.Send == "zerocopy" {
		s.set(ZerocopyCopied, v.Round, copied/sends)
	}
}

// completion is from the common start to the last byte's arrival, in seconds.
func completion(v sample.Visit, l sample.Load) float64 {
	if l.Bidir {
		return max(v.Client.Window, v.Server.Window)
	}
	return receiver(v, l).Window
}

// perSecond is a rate of what n of took so long; 0 if no time passed.
func perSecond(n int64, seconds float64) float64 {
	if seconds < shortest {
		return 0
	}
	return float64(n) / seconds
}

// addRequests adds a visit of rr with its options.
func (s *series) addRequests(v sample.Visit, l sample.Load, busy float64) {
	if l.Beside {
		// What a round trip costs in CPU time cannot be told from the stream's.
		busy = 0
		s.set(BesideThroughput, v.Round, bitsPerByte*nsPerSecond*
			float64(v.Server.Counts[countBeside])/float64(v.Server.Counts[countBesideNs]))
	}
	s.addRoundTrips(v, l, busy)
	if l.Rate <= 0 {
		return
	}
	s.set(SendsHeld, v.Round, float64(v.Client.Counts[countSendsHeld])/float64(v.Client.Counts[countSends]))
	s.addTimes(v, timeOwnLateness, map[string]float64{OwnLatenessP50: 50, OwnLatenessP99: 99})
}

// startOf is the time of a visit that a late start shortens or, where there is no
// warm-up, lengthens, in seconds.
func startOf(l sample.Load, v sample.Visit) float64 {
	if l.Bytes == 0 {
		return l.Warmup
	}
	const share = 0.1 // 5 % with lateLimit
	return share * completion(v, l)
}

func cutShort(l sample.Load) string {
	if l.Bytes > 0 {
		return "it is in the time that they took; more --bytes make it matter less"
	}
	return "the warm-up was cut short"
}

const (
	copiedShare = 0.5  // of the sends
	shortOf     = 0.98 // of the rate
)

// optionWarnings are the doubts that only options raise.
func (s *series) optionWarnings(l sample.Load) (out []Warning) {
	median := func(name string) float64 { m, _ := s.metric(name); return m.Median }
	if median(ZerocopyCopied) > copiedShare {
		out = append(out, Warning{"zerocopy-copied", "the kernel copied most of what was sent with MSG_ZEROCOPY after all, " +
			"as it does on the way to a socket of the same machine: this is the price of trying, not of zero-copy"})
	}
	if l.Kind != "rr" || l.Rate <= 0 || len(s.visits) == 0 {
		return out
	}
	// A connection that is asked for more than it can carry never sleeps.
	if got := median(Transactions); got < shortOf*l.Rate {
		out = append(out, Warning{"below-rate", "fewer replies came than requests were due: the latencies are of a queue that grows for as long " +
			"as it is measured; lower --rate, or spread it over more --connections"})
	}
	interval := float64(max(1, l.Streams)) / l.Rate
	if late := median(OwnLatenessP99); late > interval {
		out = append(out, Warning{"behind", "the client itself fell behind its schedule: more than 1 % of the requests were sent late by more than " +
			"the time between two of a connection, for want of CPU time; close what else runs, or lower --rate"})
	} else if own, p50 := median(OwnLatenessP50), median(LatencyP50); own > p50/2 {
		out = append(out, Warning{"own-lateness", "more than half of the median latency is the client's own: the time that it takes to wake up when a request is due"})
	}
	return out
}
