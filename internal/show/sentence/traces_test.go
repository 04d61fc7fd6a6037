package sentence

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/ladder"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/judge/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// tracedAll returns a trace of a mode, a route against another one, and a route alone.
func tracedAll() *trace.Report {
	x := func(v float64) *float64 { v *= 1e-6; return &v }
	row := func(name string, mine float64, added analysis.Price) trace.Row {
		return trace.Row{Name: name, Its: x(mine), Mine: x(mine), Added: added}
	}
	costs := priced(stats.Costs, 30)
	bridge := trace.Trace{Label: "bridge", Against: "host", Untraced: costs,
		Path: priced(stats.Costs, 3), WakeUps: priced(stats.Unclear, 2),
		Unattributed: priced(stats.Unclear, 4), Relay: priced(stats.Costs, 21),
		Refusal: trace.Refusal{Refused: trace.NoTrips, Of: "bridge"},
		Segments: []trace.Segment{{SegmentKey: sample.SegmentKey{Device: "eth0",
			Where: "container"}},
			{SegmentKey: sample.SegmentKey{Reply: true, Device: "eth0",
				Where: trace.ThisMachine}}}}
	route := trace.Trace{Label: "relayed", Against: "direct", Untraced: costs, Trips: 9,
		Cost: priced(stats.Costs, 50), Path: priced(stats.Costs, 3), Ends: priced(stats.Unclear, 2),
		Rows: []trace.Row{row("network", 6, priced(stats.Costs, 4)),
			row("relay proxy", 28, priced(stats.Costs, 27)),
			row("server", 50, priced(stats.Unclear, 9)),
			row("client", 50, priced(stats.Costs, 1.1))},
		Unattributed: priced(stats.Unclear, 2)}
	route.Rows[1].Its, route.Rows[3].Mine = nil, nil
	route.Cell.Load = workload.Request
	alone := trace.Trace{Label: "direct", Levels: []float64{64e-6},
		Rows: []trace.Row{row("network", 13.8, priced("", 0)), row("client", 1, priced("", 0)),
			row("server", 50.2, priced("", 0))}}
	alone.Cell.Load = workload.Request
	unmeasured := route
	unmeasured.Untraced = analysis.Price{}
	noisy := alone
	noisy.Levels = nil
	foreign := route
	foreign.Client = "curl"
	return &trace.Report{Traces: []trace.Trace{bridge, route, alone, foreign, unmeasured, noisy}}
}

func TestTraceTemplates(t *testing.T) {
	in := func(took, whole float64) map[string]float64 {
		return map[string]float64{trace.Took: took, trace.Whole: whole}
	}
	const adds, more = "bridge adds 30.0 µs (29.0–31.0) to host's round trip",
		"relayed adds 30.0 µs (29.0–31.0) to a request over direct"
	const short = "proxy is short of CPU: waiting for one takes 60.0 µs of a request"
	queue := map[string]float64{trace.Backlog: 1, trace.Somaxconn: 128}
	told := map[string]bool{}
	for _, tt := range []struct {
		f    analysis.Finding
		row  int
		want string
	}{
		{analysis.Finding{Code: trace.Added}, 0, adds +
			": +3.0 ±1.0 µs in the path, +2.0 ±1.0 in " +
			"wake-ups, +4.0 ±1.0 not attributed and +21.0 ±1.0 in the relay, which tracing slows."},
		{analysis.Finding{Code: trace.NotDivided}, 0, adds +
			". Where is not known: no trip of bridge was traced."},
		{analysis.Finding{Code: trace.TooShort}, 0, " A longer --budget has them."},
		{analysis.Finding{Code: trace.RequestAdded}, 1, more + ": +27.0 ±1.0 µs in proxy (direct " +
			"lacks it), +4.0 ±1.0 µs in the network and +2.0 ±1.0 µs not attributed."},
		{analysis.Finding{Code: trace.RequestAdded}, 4,
			"What relayed adds to a request over direct was " +
				"not measured. Its parts add +27.0 ±1.0 µs in proxy (direct lacks it), +4.0 " +
				"±1.0 µs in the " +
				"network, +1.1 ±1.0 µs in the client (relayed lacks it) and +2.0 ±1.0 µs " +
				"not attributed."},
		{analysis.Finding{Code: trace.RequestUnsure}, 1, more + ". Where is not sure: "},
		{analysis.Finding{Code: trace.RequestTakes}, 2,
			"Over direct a request takes 65.0 µs: server 50.2 µs, network 13.8 µs."},
		{analysis.Finding{Code: trace.RequestSeems}, 2,
			"A request over direct takes 64.0 µs. Where is not sure (server 50.2 µs, " +
				"network 13.8 µs): "},
		{analysis.Finding{Code: trace.RequestSeems}, 5,
			"A request over direct takes about 65.0 µs while " +
				"it is traced (server 50.2 µs, network 13.8 µs): "},
		{analysis.Finding{Code: trace.RequestUnsure}, 4,
			"What relayed adds to a request over direct " +
				"was not measured, and its parts are not sure: "},
		{analysis.Finding{Code: trace.CostUnknown}, 1,
			"what tracing itself adds is not known after 9 requests. A longer --budget tells."},
		{analysis.Finding{Code: trace.CostUnsure}, 1,
			"after 9 requests, what tracing itself adds " +
				"(+50.0 ±1.0 µs) is known less exactly than the largest part. A longer " +
				"--budget tells."},
		{analysis.Finding{Code: trace.TailIn, What: "relay proxy", Why: "waiting for a CPU",
			Values: in(7e-3, 8e-3)}, 1,
			" The p99 is 8.00 ms, 7.00 ms of it in proxy, waiting for a CPU."},
		{analysis.Finding{Code: trace.SlowestIn, What: "server", Values: in(7e-3, 8e-3)}, 1,
			" The slowest took 8.00 ms, 7.00 ms of them in the server."},
		{analysis.Finding{Code: trace.ControlDiffers}, 0, "A second connection over host's path " +
			"differs from the first by +3.0 ±1.0 µs in the path and +2.0 ±1.0 µs in " +
			"wake-ups: that much " +
			"is noise."},
		{analysis.Finding{Code: trace.RepeatedDiffers}, 1,
			"direct measured once more differs from " +
				"itself by +3.0 ±1.0 µs in the network and the server's kernel and +2.0 " +
				"±1.0 µs in the " +
				"client and the server: that much is noise."},
		{analysis.Finding{Code: trace.RepeatedDiffers}, 3,
			"direct measured once more differs from " +
				"itself by +3.0 ±1.0 µs in the network and the server's kernel and +2.0 " +
				"±1.0 µs in the " +
				"server: that much is noise."},
		{analysis.Finding{Code: trace.Followed}, 1,
			"These routes are outside toll's control: their " +
				"bytes are not counted, but followed from process to process."},
		{analysis.Finding{Code: trace.StampedOnce, What: "direct"}, 1,
			"Over direct, what a bridge takes on the way to a process of its own machine is in " +
				"that process's part: another program has the kernel note when packets come " +
				"(SO_TIMESTAMP), which it does once for the port and the bridge."},
		{analysis.Finding{Code: trace.NotAllKept, What: "direct", N: 100, Of: 900}, 1,
			"Over direct, 100 of 900 requests passed more packets than toll keeps: in these, the " +
				"network is divided as in the others. A client that makes fewer requests has all."},
		{analysis.Finding{Code: trace.NotAllKept, What: "direct", N: 900, Of: 900}, 1,
			"Over direct, 900 of 900 requests passed more packets than toll keeps: the network is " +
				"not divided. A client that makes fewer requests has all."},
		{analysis.Finding{Code: trace.Frames, Values: in(4e-6, 4e-6)}, 0,
			seesFrames + "up to 4.0 µs." + tryFirst},
		{analysis.Finding{Code: trace.FramesInHooks, Values: in(2e-6, 4e-6)}, 0,
			seesFrames + "2.0 µs of the bridge's 4.0 µs are in its hooks." + tryFirst},
		{analysis.Finding{Code: trace.FramesOf, What: "bridge+x", Values: in(2e-6, 4e-6)}, 0,
			seesFrames + "2.0 µs of the bridge's 4.0 µs, as bridge+x shows." + tryFirst},
		{analysis.Finding{Code: trace.LongChains, What: "FORWARD", Why: "routing",
			Values: in(4e-6, 0)},
			0, "The rules in FORWARD take 4.0 µs of a trip (routing): long chains."},
		{analysis.Finding{Code: trace.WaitsSoftirq, Values: in(11e-6, 0)}, 0, "The request waits " +
			"11.0 µs behind eth0 (container) for the softirq: on another CPU (RPS), or " +
			"on one that is busy."},
		{analysis.Finding{Code: trace.WaitsQueue, Values: in(11e-6, 0), Rows: []int{1}}, 0,
			"The reply waits 11.0 µs in the queueing discipline of eth0 (this machine)." + untried},
		{analysis.Finding{Code: trace.ReadersSlept, Values: map[string]float64{trace.Share: 0.85,
			trace.Took: 37e-6, trace.Whole: 36e-6}}, 0,
			"85 % of the readers slept; waking them takes " +
				"37.0 µs of a trip, with host 36.0 µs. A program that polls its socket avoids it. " +
				"How much of it is that their CPUs slept, too: sudo toll compare --tune idle=poll --load rr --pin far."},
		{analysis.Finding{Code: trace.OddStep, What: "a step",
			Values: map[string]float64{trace.Share: 1}},
			0, "100 % of the trips pass a step, which no hop of bridge explains."},
		{analysis.Finding{Code: trace.OddLookUp, What: "fib_table_lookup",
			Values: map[string]float64{trace.Share: 0.3}}, 0,
			"30 % of the trips pass fib_table_lookup, " +
				"which no hop of bridge explains: a NAT rule may be too wide."},
		{analysis.Finding{Code: trace.RepliesWait, What: sample.WaitNagle, N: 500,
			Values: in(20, 0)}, 1,
			"500 replies waited 40.0 ms each at the server for acknowledgements, without " +
				"TCP_NODELAY (set it at the server)."},
		{analysis.Finding{Code: trace.NoReply, What: "direct", N: 1}, 1,
			"Over direct, 1 request had no reply, and is in no figure."},
		{analysis.Finding{Code: trace.NoReply, What: "direct", N: 2}, 1,
			"Over direct, 2 requests had no reply, and are in no figure."},
		{analysis.Finding{Code: trace.ErrorReplies, What: "direct",
			Values: map[string]float64{"REFUSED": 2, "SERVFAIL": 3}}, 1,
			"Over direct, replies were errors, whose time counts: 3 SERVFAIL, 2 REFUSED."},
		{analysis.Finding{Code: trace.OtherReplies, What: "direct",
			Values: map[string]float64{"of HTTP status 301 Moved Permanently": 3}}, 1,
			"Over direct, replies do not have what was asked for, and their time counts: " +
				"3 of HTTP status 301 Moved Permanently."},
		{analysis.Finding{Code: trace.StoppedByLimit, What: "proxy", Values: map[string]float64{
			trace.Took: 60e-6, trace.Tail: 8e-3, trace.Stopped: 4, trace.Window: 8}}, 1, short +
			", and 8.00 ms of those around the p99. A CPU limit stopped it for 4 of 8 s."},
		{analysis.Finding{Code: trace.Sleep, Names: []string{"proxy", "redis"},
			Values: in(60e-6, 100e-6)}, 1, "Until the threads that answer in proxy and redis run, " +
			"60.0 µs of a request's 100 µs pass: they sleep until they are woken, unless other " +
			"threads work before." + polls},
		{analysis.Finding{Code: trace.BridgedFrames, What: "br0", Names: []string{"bridge-nf-call-iptables=1"}, Why: trace.Untried,
			Values: in(2e-6, 0)}, 1, "iptables sees what bridge br0 forwards from port to port " +
			"(bridge-nf-call-iptables=1): up to 2.0 µs of a request. What would change without " +
			"that, this may tell:"},
		{analysis.Finding{Code: trace.BridgedFrames, What: "br0", Names: []string{"bridge-nf-call-iptables=1"}, Why: trace.Tried}, 1, "iptables sees " +
			"what bridge br0 forwards from port to port (bridge-nf-call-iptables=1). In a copy of this " +
			"machine's network, nobody gains or loses a port without that:"},
		{analysis.Finding{Code: trace.BridgedFrames, What: "br0", Names: []string{"bridge-nf-call-iptables=1"}, Why: trace.Tried, N: 2}, 1,
			"iptables sees what bridge br0 forwards from port to port (bridge-nf-call-iptables=1). " +
				"Without that, who reaches 2 ports changes in a copy of this machine's network:"},
		{analysis.Finding{Code: trace.BridgedFrames, What: "br0", Names: []string{"bridge-nf-call-iptables=1"}}, 1, "iptables sees what bridge br0 " +
			"forwards from port to port (bridge-nf-call-iptables=1)."},
		{analysis.Finding{Code: trace.Steered, What: "eth0", Why: trace.Untried,
			Values: map[string]float64{trace.Share: 0.9, trace.Took: 11e-6, trace.Whole: 1e-6}}, 1,
			"90 % of the packets that come in at eth0 are handed to another CPU (RPS), for whose " +
				"softirq they wait 11.0 µs, and the others 1.0 µs." + untried},
		{analysis.Finding{Code: trace.Steered, What: "eth0",
			Values: map[string]float64{trace.Share: 1, trace.Took: 11e-6}}, 1, "100 % of the packets " +
			"that come in at eth0 are handed to another CPU (RPS), for whose softirq they wait 11.0 µs."},
		{analysis.Finding{Code: trace.QueueFull, What: "redis-server", Why: trace.ByProgram, N: 12,
			Values: queue}, 1, "12 times, the queue of connections to redis-server was full, which has " +
			"room for 2: such a connection waits 1 s or more. Raise tcp-backlog, which " +
			"net.core.somaxconn (128) limits, and restart the server" + fillsLonger},
		{analysis.Finding{Code: trace.QueueFull, What: "x", Why: trace.ByProgram, N: 1,
			Values: queue}, 1, "Once, the queue of connections to x was full, which has " +
			"room for 2: such a connection waits 1 s or more. Raise the backlog with which it " +
			"listens, which net.core.somaxconn (128) limits, and restart the server" + fillsLonger},
		{analysis.Finding{Code: trace.QueueFull, What: "x", Why: trace.ByKernel, N: 1,
			Values: queue}, 1, "Once, the queue of connections to x was full, which has " +
			"room for 2: such a connection waits 1 s or more. Raise net.core.somaxconn (128), which " +
			"limits it, and restart the server" + fillsLonger},
		{analysis.Finding{Code: trace.QueueFull, What: "x", Why: trace.ByKernelApart, N: 1,
			Values: queue}, 1, "Once, the queue of connections to x was full, which has " +
			"room for 2: such a connection waits 1 s or more. Raise net.core.somaxconn (128) of its " +
			"network namespace, which limits it, and restart the server, as by docker run --sysctl " +
			"net.core.somaxconn=…" + fillsLonger},
		{analysis.Finding{Code: trace.OthersHaveCPU, What: "proxy", Values: in(60e-6, 0)}, 1,
			short + ". No CPU limit stopped it: other programs had the CPU."},
	} {
		told[tt.f.Code] = true
		r := tracedAll()
		w := &writer{r: r.Base(), study: r, trace: &r.Traces[tt.row]}
		if tt.f.Rows == nil {
			tt.f.Rows = []int{0}
		}
		if got := w.fill(find(tt.f.Code).text, []analysis.Finding{tt.f}); got != tt.want {
			t.Errorf("%s:\ngot  %q\nwant %q", tt.f.Code, got, tt.want)
		}
	}
	for _, x := range ofTraces {
		if !told[x.code] {
			t.Errorf("%s is untested", x.code)
		}
	}
}

func TestRefusal(t *testing.T) {
	for want, x := range map[string]trace.Refusal{
		"": {},
		"the old run: no trip of bridge was traced": {Refused: trace.NoTrips, Of: "bridge",
			Run: "old"},
		"the run ended before the rounds that show the parts of bridge": {Refused: trace.EndedEarly,
			Of: "bridge"},
		"only 57.0 % of bridge's trips were followed": {Refused: trace.FewFollowed, Of: "bridge",
			Share: 0.57},
		"only 97.9 % of bridge's trips were followed: after netif_rx, a byte is missing " +
			"in 2.0 %; the " +
			"log had no room for 9 events": {Refused: trace.FewFollowed, Of: "bridge",
			Share: 0.9799,
			After: "netif_rx", Want: "a byte", Lacking: 0.02, NoRoom: 9},
	} {
		if got := refusal(x); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAddedTo(t *testing.T) {
	for want, p := range map[string]analysis.Price{
		"a adds 4.0 µs (3.0–5.0) to b's round trip":                     priced(stats.Costs, 4),
		"a takes 4.0 µs (3.0–5.0) off b's round trip":                   priced(stats.Gains, -4),
		"a adds nothing measurable to b's round trip (at most 1.0 µs)":  priced(stats.Nothing, 0),
		"What a adds to b's round trip is not clear yet (+4.0 ±1.0 µs)": priced(stats.Unclear, 4),
		"What a adds to b's round trip was not measured":                {},
	} {
		if got := addedTo(trace.Trace{Label: "a", Against: "b", Untraced: p}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	x := trace.Trace{Label: "a", Levels: []float64{64e-6}}
	for _, want := range []string{"A request over a takes 64.0 µs",
		"How long a request over a takes was not measured"} {
		if got := addedTo(x); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		x.Levels = nil
	}
}

// The findings on a trace are worded with it, in a trace as in a ladder.
func TestFillTraces(t *testing.T) {
	odd := []trace.Finding{{Finding: analysis.Finding{Code: trace.OddStep, What: "a step",
		Values: map[string]float64{trace.Share: 1}}}}
	r := tracedAll()
	r.Traces[0].Findings = odd
	climbed := &ladder.Report{Steps: []ladder.Step{{}, {Trace: &trace.Trace{Label: "bridge",
		Findings: odd}}}}
	for _, told := range []Told{r, climbed} {
		odd[0].Text = ""
		Fill(told)
		if odd[0].Text != "100 % of the trips pass a step, which no hop of bridge explains." {
			t.Errorf("%T: %+v", told, odd)
		}
	}
	// of the other cell
	r.Traces[0].Its = []trace.Segment{{SegmentKey: sample.SegmentKey{Device: "lo",
		Where: trace.ThisMachine}}}
	r.Traces[0].Findings = []trace.Finding{odd[0], {Finding: analysis.Finding{
		Code: trace.WaitsQueue, Rows: []int{0}, Values: map[string]float64{trace.Took: 11e-6}},
		Over: "host"}}
	r.Traces[0].Findings[0].Over = "host"
	Fill(r)
	for i, want := range []string{
		"Over host: 100 % of the trips pass a step, which no hop of host explains.",
		"Over host: The request waits 11.0 µs in the queueing discipline of lo (this machine)." +
			untried} {
		if got := r.Traces[0].Findings[i].Text; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
