package sentence

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

func TestWarnings(t *testing.T) {
	value := func(code string, x float64) analysis.Finding {
		return analysis.Finding{Code: code, Values: map[string]float64{code: x}}
	}
	for want, f := range map[string]analysis.Finding{
		"the hypervisor took 3.0 % of the CPU time away, which makes results noisier": value(
			analysis.Steal, 0.03),
		"something else kept 0.30 CPUs busy during the run: close it and run again for narrower " +
			"intervals": value(analysis.OtherLoad, 0.3),
		"the cgroup's CPU limit paused the run 15 times: throughput and latency show " +
			"the limit, not " +
			"the network": value(analysis.Throttled, 15),
		"the cgroup's CPU limit paused the run 1 time: throughput and latency show the limit, not " +
			"the network": value(analysis.Throttled, 1),
		"a cgroup limits this run to 1.5 CPUs; client and server alone need two": value(
			analysis.CgroupLimit, 1.5),
		"TCP's congestion control here is bbr, which paces what it sends: bulk measures " +
			"its pacing more " +
			"than the path. Containers on this machine use it too. To see what the paths " +
			"can carry, use " +
			"--congestion reno": {Code: analysis.Paced, What: "bbr", Why: analysis.ByFlag},
		"rr from the machine itself, on one CPU: a slice's result depends on the slice " +
			"before it: host, " +
			"measured among the other modes, has 98 % (97–99) of its usual figure": {
			Code: analysis.SlotBias, Load: "rr", From: mode.FromHost, Pin: sample.PinNear,
			What:   "host",
			Ratios: []analysis.Ratio{{Median: 0.98, Low: 0.97, High: 0.99, N: 12}}},
		"from another container, bulk: no ratios, because the baseline host has no result": {
			Code: analysis.NoBaseline, Load: "bulk", From: mode.FromContainer, What: "host",
			Why: analysis.NoResult},
		"toll may use only one CPU: client and server shared it and were not measured on " +
			"separate CPUs": {
			Code: analysis.SameCore, What: analysis.OnlyCPU},
		"eth0 of node a came up in half duplex: data and acknowledgements wait for " +
			"each other and " +
			"collide. Let both ends of the cable negotiate (ethtool -s eth0 autoneg on, and " +
			"the switch's " +
			"port)": {Code: analysis.HalfDuplex, What: "eth0", Why: "node a"},
		"eth0 of node a came up at 100 Mbit/s, but the card can do 1 Gbit/s: look at " +
			"the cable, the " +
			"transceiver and the switch's port, which offers at most 100 Mbit/s": {
			Code: analysis.SlowLink, What: "eth0", Why: "node a", Values: map[string]float64{
				analysis.SlowLink: 1e8, analysis.CardMost: 1e9, analysis.CardPartner: 1e8}},
		"the run was aborted: no space left": {
			Code: analysis.Aborted, What: "no space left"},
		"segments are 1348 bytes: the path carries packets of 1400, but the client's " +
			"eth0 has an MTU " +
			"of 1500 and the server's wg0 one of 1400": {Code: analysis.PathMTU, What: "client",
			On:  "eth0",
			Why: "wg0", Values: map[string]float64{analysis.PathMTU: 1500, analysis.OtherMTU: 1400,
				analysis.SegmentPayload: 1348, analysis.SegmentPacket: 1400}},
		"segments are 1348 bytes: the path carries packets of 1400, but the server's " +
			"eth0 has an MTU " +
			"of 1500: something between has a smaller MTU (a tunnel, a VPN, a " +
			"network of its own)": {
			Code: analysis.PathMTU, What: "server", On: "eth0", Values: map[string]float64{
				analysis.PathMTU: 1500, analysis.SegmentPayload: 1348,
				analysis.SegmentPacket: 1400}},
		"throughput exceeds the wire's rate: traffic " +
			"shaping was removed": {Code: analysis.OverWire},
		"fewer than 2 rounds fitted into the budget: too few for a verdict, and there " +
			"is no interval": {
			Code: analysis.FewRounds, N: 1, Why: sample.EndedByBudget},
		"fewer than 5 rounds: too few for a verdict, and the intervals are too narrow to rely on": {
			Code: analysis.FewRounds, N: 4},
		"fewer than 6 rounds: the intervals are too narrow to rely on": {
			Code: analysis.FewRounds, N: 5},
		"too few samples for p99: use more rounds or a longer --window": {
			Code: analysis.ThinTail, What: "p99", Load: workload.RR},
		"40 % of the slices began late or were cut short, and are left out: the machine " +
			"was busy with " +
			"something else": value(analysis.LostSlices, 0.4),
		"in 2 of 8 rounds the machine was too busy to measure every row; what it " +
			"missed is left out": {
			Code: analysis.FailedRounds, N: 2, Of: 8},
		"in 2 of 8 rounds it was traced; these rounds are left out": {
			Code: analysis.FailedRounds, N: 2, Of: 8, Why: "it was traced"},
		"the route broke in round 7, 1.5 s after the start, and did not come back; " +
			"the figures are " +
			"from before that: refused": {Code: analysis.BrokenRoute, N: 7, Why: "refused",
			Values: map[string]float64{analysis.BrokenRoute: 1.5}},
		"1 of 12 visits failed and is left out, the last one in round 3: refused": {
			Code: analysis.FailedVisits, N: 1, Of: 12, Why: "refused",
			Values: map[string]float64{analysis.FailedVisits: 3}},
	} {
		ws := []analysis.Warning{{Code: f.Code, Found: &f}, {Code: "busy", Text: "as it is"}}
		FillWarnings(ws)
		if ws[0].Text != want || ws[1].Text != "as it is" {
			t.Errorf("got  %s\nwant %s", ws[0].Text, want)
		}
	}
}
