package published

import (
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

var streamCommands = []Command{
	{Args: "compare publish-default publish bridge-default --from host --load stream --tokens 6",
		Save: "stream.jsonl"},
	{
		Args: "compare publish-default --from host --to loopback --tune mtu=9000,rmem=16M+wmem=16M --load stream --tokens 6", Save: "tuned.jsonl"},
	{Args: "compare publish-default macvlan-bridge --from remote --load stream --tokens 6",
		Save: "macvlan.jsonl"},
	{
		Args: "compare publish-default --from host --to loopback --load stream --tokens 2 --tokens-per-second 16.7", Save: "batch.jsonl"},
}

const (
	shortestSpike = 0.2  // seconds; the study's spikes last 200 to 300 ms
	batchPace     = 16.7 // writes a second of 50 tokens a second in batches of three
)

func streamClaims() []Claim {
	streamed := func(m mode.Name, from mode.Placement, to mode.Target,
		metric string) analysis.Figure {
		return at(m, from, to, workload.Stream, metric).Figure
	}
	local := func(m mode.Name, to mode.Target) analysis.Figure {
		return streamed(m, mode.FromHost, to, workload.ResponseTime)
	}
	tuned := func(tune mode.Tunes) analysis.Figure {
		f := local(port, mode.ToLoopback)
		f.Cell.Tune = tune
		return f
	}
	plain := local(port, mode.ToLoopback)
	return []Claim{
		{Text: "longest pause, port", Of: streamed(
			port, mode.FromHost, mode.ToLoopback, workload.GapMax),
			Bound: shortestSpike, Want: More, Finding: 1},
		{Text: "longest pause, host", Of: streamed(
			mode.Host, mode.FromHost, mode.ToLoopback, workload.GapMax),
			Bound: shortestSpike, Want: Less, Finding: 1},
		{Text: "user-defined network", Of: local(mode.Publish, mode.ToLoopback), To: plain,
			Want: Alike, Finding: 2},
		{Text: "host's address", Of: local(port, mode.ToAddress), To: plain, Want: Less,
			Finding: 3},
		{Text: "MTU of 9000", Of: tuned("mtu=9000"), To: plain, Want: Alike, Finding: 4,
			Command: 1},
		{Text: "buffers of 16 MB", Of: tuned("rmem=16M+wmem=16M"), To: plain, Want: Alike,
			Finding: 4, Command: 1},
		{Text: "without NAT", Of: local(ownBridge, mode.ToContainer),
			To: local(port, mode.ToAddress), Want: Alike, Finding: 4},
		{Text: "macvlan", Of: streamed(mode.MacvlanBridge, mode.FromRemote, mode.ToContainer,
			workload.ResponseTime),
			To: streamed(port, mode.FromRemote, mode.ToAddress, workload.ResponseTime), Want: Alike,
			Finding: 4, Command: 2},
		{Text: "batches, port to host", Of: plain, To: local(mode.Host, mode.ToLoopback),
			Want: More, Finding: 4,
			Command: 3, Pace: batchPace},
	}
}
