package sentence

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/predict"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// examplesOfRun have the finding of each row of ofWarnings that is about a run, by its sentence.
var examplesOfRun = map[string]analysis.Finding{
	"the machine was too busy to measure: other programs kept 1.9 of 2 CPUs busy (load " +
		"average 35.0, " +
		"CPU pressure 93 %) during the run. The most disturbed measurements are left out, " +
		"and intervals " +
		"are wide: measure again while no other program is busy": {Code: analysis.Busy,
		What: analysis.DuringRun, Contention: &sample.Contention{CPUs: 2, Others: new(1.87),
			Pressure: new(0.93), LoadAverage: 35}},
	"the machine was busy before the first request: other programs kept 1.9 of 2 CPUs busy (load " +
		"average 3.0). Times include those of waiting for a CPU: measure again while no " +
		"other program " +
		"is busy": {Code: analysis.Busy, What: analysis.BeforeRequests,
		Contention: &sample.Contention{
			CPUs: 2, Others: new(1.87), LoadAverage: 3}},
	"from another container, rr: the scheduler had client and server on one CPU in some " +
		"rows (host) and " +
		"on CPUs of their own in others (bridge): this difference may exceed that of the " +
		"networks; toll " +
		"compare measures both placements": {Code: analysis.MixedPlacement,
		From: mode.FromContainer,
		Load: workload.RR, What: "host", Why: "bridge"},
	"a and b have the same address: 10.0.0.1:80": {Code: analysis.SameAddress,
		Names: []string{"a", "b"}, What: "10.0.0.1:80"},
	"over a the server refuses a part of toll's request: it is asked without usage": {
		Code: analysis.RefusedRequest, Names: []string{"a"}, What: "without usage"},
	"over a and b the stream is compressed with gzip: tokens come when the compressor flushes": {
		Code: analysis.CompressedStream, Names: []string{"a", "b"}, What: "gzip"},
	"the routes lead to different servers, by their model: small; none named": {
		Code: analysis.OtherServers, What: "model", Names: []string{"small", ""}},
}

// examplesOfCells have those about cells.
var examplesOfCells = map[string]analysis.Finding{
	"the rounds fall into two clusters, 5 around 4.0 and 5 around 8.0 Gbit/s: the median " +
		"may describe " +
		"neither": {Code: analysis.Bimodal, Prices: []analysis.Price{{Unit: "bit/s", Median: 4e9,
		Low: 4e9, N: 5}, {Unit: "bit/s", Median: 8e9, N: 5}}},
	"most visits started late: the warm-up was cut short": {Code: analysis.Late},
	"most visits started late: their time includes it; it matters less with more --bytes": {
		Code: analysis.Late, What: analysis.SizedTransfer},
	"in slices of 4 ms it has 93 % (92–94) of host's throughput, in windows of 100 ms " +
		"60 % (59–61): " +
		"short bursts do not show its sustained performance": {Code: analysis.BurstDiffers,
		Load: workload.Bulk, Ratios: []analysis.Ratio{{To: "host", Median: 0.93, Low: 0.92,
			High: 0.94,
			N:    9}, {Median: 0.6, Low: 0.59, High: 0.61, N: 9}},
		Values: map[string]float64{analysis.SliceLength: 0.004, analysis.WindowLength: 0.1}},
	"in 4 of 13 epochs the ratio was 130 % instead of 60 %; those epochs are left out. " +
		"host ran at 14 " +
		"Gbit/s then and 36 otherwise": {Code: analysis.InStates, N: 4, Of: 13,
		What:   analysis.LeftOut,
		Ratios: []analysis.Ratio{{To: "host", Median: 1.3}, {Median: 0.6}},
		Prices: []analysis.Price{{Unit: "bit/s", Median: 14e9}, {Unit: "bit/s", Median: 36e9}}},
	"in 1 of 13 epochs the ratio was 100 % instead of 60 %, and the mean describes " +
		"neither. host took " +
		"60 µs then and 36 otherwise": {Code: analysis.InStates, N: 1, Of: 13,
		Ratios: []analysis.Ratio{{To: "host", Median: 1}, {Median: 0.6}},
		Prices: []analysis.Price{{Unit: "s", Median: 60e-6}, {Unit: "s", Median: 36e-6}}},
	"it and native fill the 10 Gbit/s card eth0 of node a, so their ratio says nothing " +
		"about the modes: " +
		"compare CPU time per byte (10 Gbit/s × 1448 of 1538 bytes = 9.41 Gbit/s of payload)": {
		Code: analysis.Full, What: "native", Limit: filled},
	"native fills the 10 Gbit/s card eth0 of node a: over a faster link it may be " +
		"further ahead (10 " +
		"Gbit/s × 1448 of 1538 bytes = 9.41 Gbit/s of payload)": {Code: analysis.Capped,
		What:  "native",
		Limit: filled},
	"its throughput varies: all 12 windows of 1000 ms lie in the range 0.02–2.2 Gbit/s, " +
		"which the row " +
		"shows instead of a median. TCP: 7.0 retransmits/s, 2.0 % of all bytes sent " +
		"again, RTO 204 ms": {
		Code: analysis.Varying, What: "throughput",
		Prices: []analysis.Price{{Unit: "bit/s", Low: 0.02e9,
			High: 2.2e9, N: 12}}, Values: map[string]float64{analysis.WindowLength: 1,
			workload.Retransmits: 7, workload.Resent: 0.02, analysis.RTO: 0.204}},
	"its median latency varies: nine tenths of 300 slices of 4 ms lie in the range 40–400 " +
		"µs, which the " +
		"row shows instead of a median": {Code: analysis.Varying, What: "median latency",
		Prices: []analysis.Price{{Unit: "s", Low: 40e-6, High: 400e-6, N: 300}},
		Values: map[string]float64{analysis.SliceLength: 0.004}},
}

var filled = &analysis.Capacity{Limit: "card", Device: "eth0", Where: "node a", Rate: 10e9,
	Payload: 1448, Frame: 1538, Goodput: 10e9 * 1448 / 1538}

// examplesOfLoads have those about what a load itself lacked.
var examplesOfLoads = map[string]analysis.Finding{
	"the kernel copied most of what was sent with MSG_ZEROCOPY, as it always does for " +
		"sockets of the " +
		"same machine: the figures show the cost of that attempt, not of zero-copy": {
		Code: workload.Copied},
	"12 % of the tokens arrived together with another one: something on the path, or the " +
		"server, holds " +
		"them back, so gaps look shorter than they are": ofLoad(workload.GluedTokens, 0.12),
	"the server counts 80 tokens a response (usage), but 64 events with text came: " +
		"events may have " +
		"several tokens, or that count is a guess. By events, tokens /s is 32": {
		Code: workload.UsageDiffers, Values: map[string]float64{workload.CountTokens: 80,
			workload.CountEvents: 64, workload.WordRate: 32}},
	"the server counts 64 tokens a response (usage), but 150 events with text came: " +
		"events may have " +
		"parts of tokens, or that count is a guess. By events, tokens /s is 32": {
		Code: workload.UsageDiffers, Values: map[string]float64{workload.CountTokens: 64,
			workload.CountEvents: 150, workload.WordRate: 32}},
	"one event of the server was no part of a response and was passed over: ping": {
		Code: workload.OtherEvents, N: 1, What: "ping"},
	"7 events of the server were no part of a response and were passed over, the first: ping": {
		Code: workload.OtherEvents, N: 7, What: "ping"},
	"6 of 8 visits were cut short, because there are ephemeral ports for only 28232 " +
		"connections: use a " +
		"shorter --window, or widen net.ipv4.ip_local_port_range": {Code: workload.PortsExhausted,
		N: 6, Of: 8, Values: map[string]float64{workload.PortsExhausted: 28232}},
	"6 of 8 visits were cut short, because the connection table has room for only 4096 " +
		"connections: use " +
		"a shorter --window, or raise " +
		"net.netfilter.nf_conntrack_max": {Code: workload.ConntrackFull,
		N: 6, Of: 8, Values: map[string]float64{workload.ConntrackFull: 4096}},
	"up to 17 sockets of ended connections were left after 6 of 8 visits: later visits " +
		"had fewer ports " +
		"(not supported)": {Code: workload.TimeWaitLeft, N: 6, Of: 8, What: "not supported",
		Values: map[string]float64{workload.TimeWaitLeft: 17}},
	"18 of 12018 connections failed, and are in no other figure: 12 refused, 6 " +
		"without a local port": {
		Code: workload.ConnectionsFailed, N: 18, Of: 12018, Values: map[string]float64{
			workload.FailedNoPort: 6, workload.FailedRefused: 12}},
	"the client made no TCP connection to the address of its route: unless it uses " +
		"UDP, it measured " +
		"another server": {Code: workload.Elsewhere},
	"fewer replies came than requests were due: the latencies are those of a growing " +
		"queue; lower " +
		"--rate, or spread it over more --connections": {Code: workload.BelowRate},
	"the client itself fell behind its schedule, for lack of CPU time: more than 1 % of " +
		"the requests " +
		"were sent late by more than the time between two requests of a connection; close other " +
		"programs, or lower --rate": {Code: workload.Behind, Load: workload.RR},
	"the server fell behind its schedule: one token in a hundred was sent more than 5.0 " +
		"ms late; take " +
		"fewer --sessions or a slower pace, or close other programs": {Code: workload.Behind,
		Load: workload.Stream, Values: map[string]float64{workload.Behind: 0.005}},
	"the client sent only 80.0 % of its rate: its send buffer was full: the path took " +
		"datagrams too " +
		"slowly": {Code: workload.Behind, Load: workload.UDP, What: workload.WhyFull,
		Values: map[string]float64{workload.Behind: 0.8}},
	"the client sent only 80.0 % of its rate: it was too slow, or kept off its CPU": {
		Code: workload.Behind, Load: workload.UDP, What: workload.WhySlow,
		Values: map[string]float64{workload.Behind: 0.8}},
	"the client fell behind: one token in a hundred may have waited more than 5.0 ms " +
		"for its thread; " +
		"take fewer --sessions or a slower pace, or close " +
		"other programs": ofLoad(workload.SlowReader,
		0.005),
	"the client itself causes more than half of the median latency: it wakes up late when " +
		"a request is " +
		"due": {Code: workload.OwnLate},
	"12 tokens had not arrived a second after the window: their delay until then counts": {
		Code: workload.Overdue, N: 12},
	"18 times the server's socket was full: the path took tokens more slowly than they were due": {
		Code: workload.Blocked, N: 18},
	"1 token had not arrived a second after the window: its delay until then counts": {
		Code: workload.Overdue, N: 1},
	"1 time the server's socket was full: the path took tokens more slowly than they were due": {
		Code: workload.Blocked, N: 1},
	"at the rate that toll found, 2 % were lost: use a longer --window, or a " +
		"lower --bitrate": ofLoad(
		workload.Lossy, 0.02),
}

func ofLoad(code string, x float64) analysis.Finding {
	return analysis.Finding{Code: code, Values: map[string]float64{code: x}}
}

func TestDoubted(t *testing.T) {
	said := map[string]bool{}
	for _, examples := range []map[string]analysis.Finding{examplesOfRun, examplesOfCells,
		examplesOfLoads} {
		for want, f := range examples {
			said[rowOf(f)] = true
			if got := warning(f); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		}
	}
	glued := ofLoad(workload.GluedTokens, 0.12)
	glued.What = workload.WhyFollows
	if got := warning(glued); got != "12 % of the tokens arrived together with another one, so gaps "+
		"look shorter than they are" {
		t.Error(got)
	}
	said[rowOf(glued)] = true
	for code, row := range ofWarnings {
		if !said[row] {
			t.Errorf("%s has no example", code)
		}
	}
}

func TestNotes(t *testing.T) {
	p := &predict.Prediction{Noted: []analysis.Finding{
		{Code: analysis.Busy, What: analysis.AtStart, Contention: &sample.Contention{CPUs: 2,
			Others: new(1.9)}},
		{Code: predict.OtherPlacement, Pin: sample.PinNear, What: sample.PinFar},
		{Code: analysis.Varying, What: "bridge", Why: "throughput", Prices: []analysis.Price{
			{Unit: "bit/s", Low: 0.02e9, High: 40e9, N: 12}}},
		{Code: predict.NoBulk, Values: map[string]float64{predict.AskedBytes: 2000,
			predict.MeasuredBytes: 1}},
		{Code: predict.NoBulkCPU, Values: map[string]float64{predict.AskedBytes: 2000,
			predict.MeasuredBytes: 1}},
	}}
	Fill(p)
	want := []string{
		"The machine was too busy to measure: other programs kept 1.9 of 2 CPUs busy (load " +
			"average 0.0) " +
			"when the run began. The most disturbed measurements are left out, and " +
			"intervals are wide: " +
			"measure again while no other program is busy.",
		"Predicted from the results on one CPU, because there are none on own CPUs.",
		"bridge's throughput varies in the range 0.02–40 Gbit/s. The prediction uses its " +
			"median; at the " +
			"range's worse end, the cost is higher.",
		"The file has no bulk, so the cost of replies of 2000 bytes includes only the measured 1.",
		"The file has no CPU time of bulk, so that of replies of 2000 bytes includes only the " +
			"measured 1.",
	}
	for i := range want {
		if len(p.Notes) != len(want) || p.Notes[i] != want[i] {
			t.Errorf("got %q", p.Notes)
		}
	}
}
