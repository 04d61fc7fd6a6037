package view

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/difference"
	"github.com/bridgetoll/bridgetoll/internal/judge/ladder"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/judge/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/testing/documenttest"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

// µs returns a price of microseconds.
func µs(median, half float64, v stats.Verdict) analysis.Price {
	return price("s", 1e-6*median, 1e-6*(median-half), 1e-6*(median+half), v)
}

// part returns a row of a part. A negative figure means that the mode does not have the part.
func part(name string, its, mine, half float64, hooks ...trace.Row) trace.Row {
	v, added := stats.Nothing, mine-max(0, its)
	if mine < 0 {
		added = -its
	}
	switch {
	case added > half:
		v = stats.Costs
	case added < -half:
		v = stats.Gains
	}
	r := trace.Row{Name: name, Added: µs(added, half, v), Hooks: hooks}
	for i := range 6 {
		r.Epochs = append(r.Epochs, 1e-6*(added+half*(float64(i*5%6)/2.5-1)))
	}
	its, mine = 1e-6*its, 1e-6*mine
	if its >= 0 {
		r.Its = &its
	}
	if mine >= 0 {
		r.Mine = &mine
	}
	return r
}

func segments(row string, hops ...string) (out []trace.Segment) {
	at := 0.0
	for i, hop := range hops {
		var k sample.SegmentKey
		f := strings.Split(hop, "|")
		k.Part, k.Hop, k.Device, k.Where = sample.Part(f[0]), f[1], f[2], f[3]
		k.Reply = i >= len(hops)/2
		x := 1e-6 * (0.3 + float64(i%4))
		out = append(out, trace.Segment{SegmentKey: k, Row: row, At: at, MidMean: x,
			P99: 5 * x, Share: 1 - 0.01*float64(i%3), Cost: 1.5e-7})
		at += x
	}
	return out
}

func traced() *trace.Report {
	r := &trace.Report{Measured: head().Measured, Said: head().Said}
	r.Study, r.Plan.Loads = sample.StudyTrace, r.Plan.Loads[1:]
	r.Plan.EndedBy, r.Plan.Elapsed = sample.EndedByBudget, 30.2
	r.Plan.Budget = 30
	r.Cells = []analysis.Cell{trip(mode.Host, mode.ToLoopback, 47.2, 1, 0, ""),
		trip(mode.Bridge, mode.ToContainer, 51.3, 1.09, 0.02, stats.Worse),
		trip(mode.PublishProxy, mode.ToLoopback, 84.1, 1.78, 0.03, stats.Worse),
		trip(mode.PublishNAT, mode.ToAddress, 53.3, 1.13, 0.03, stats.Worse)}
	r.Cells[1].Warnings = []analysis.Warning{{Code: "thin-tail", Text: "too few samples"}}
	bridge := trace.Trace{Cell: r.Cells[1], Label: r.Cells[1].Label(), Against: r.Cells[0].Label(),
		Untraced: µs(4.1, 0.9, stats.Costs), Path: µs(3.5, 0.3, stats.Costs),
		WakeUps: µs(0, 0.8, stats.Unclear), Unattributed: µs(0.6, 1, stats.Unclear),
		Trips: 12000, Followed: 0.9991, Events: 50.2, Cost: µs(5.9, 2, stats.Costs),
		Readers: map[string]float64{"slept, other CPU idle": 0.85, "awake": 0.11,
			"falling asleep": 0.04},
		Rows: []trace.Row{
			part("programs, system calls", 2.1, 2.1, 0.1),
			part("TCP and IP out", 4.2, 2.7, 0.2),
			part("veth, lo: qdisc and driver", 1, 1.4, 0.1),
			part("hand-over to the softirq", 2.1, 3, 0.1),
			part("bridge", -1, 4.1, 0.1, part("PREROUTING", -1, 0.67, 0.05),
				part("FORWARD", -1, 0.48, 0.05)),
			part("IP and TCP in", 3.8, 3.4, 0.1),
			part("wake-ups", 37.4, 37.4, 0.8),
		},
		Segments: segments("bridge", "call|||", "TCP/IP out|||",
			"driver|veth|eth0|container A", "bridge|bridge|docker0|machine A",
			"wake-up|||", "program|||",
			"bridge|bridge|docker0|machine A", "wake-up|||"),
		Its: segments("programs", "call|||", "driver|lo|lo|machine A",
			"wake-up|||", "return|||"),
		Groups: []sample.StepGroup{
			{Share: 0.7, Steps: []string{"net_dev_queue eth0 (container A)",
				"netif_rx docker0 (machine A)", "sk_data_ready"}},
			{Share: 0.298, Steps: []string{"net_dev_queue eth0 (container A)",
				"fib_table_lookup", "sk_data_ready"}, Odd: []int{1}}},
		Missing: []string{"tcp_sendmsg_locked"},
		Findings: []trace.Finding{{Finding: analysis.Finding{Code: trace.FramesInHooks,
			Values: map[string]float64{trace.Took: 1.15e-6, trace.Whole: 4.1e-6}},
			Lever: "no-nf-call"}}}
	proxy := bridge
	proxy.Cell, proxy.Label = r.Cells[2], r.Cells[2].Label()
	proxy.Untraced, proxy.Path, proxy.WakeUps = µs(36.9, 1.5, stats.Costs),
		µs(7.9, 0.3, stats.Costs), µs(2, 4, stats.Unclear)
	proxy.Relay, proxy.Unattributed = µs(20.6, 2.6, stats.Costs), µs(6.4, 3.1, stats.Costs)
	proxy.Rows = append(proxy.Rows[:4:4], part("relay", -1, 20.6, 2.6),
		part("wake-ups", 37.4, 39.4, 4))
	proxy.Findings, proxy.Groups, proxy.Missing = nil, proxy.Groups[:1], nil
	refused := trace.Trace{Cell: r.Cells[3], Label: r.Cells[3].Label(), Against: r.Cells[0].Label(),
		Untraced: µs(6.1, 0.8, stats.Costs), Trips: 12000, Followed: 0.931,
		Refusal: trace.Refusal{Refused: trace.FewFollowed, Of: r.Cells[3].Label(), Share: 0.931,
			After: "netif_rx docker0 (machine A)", Want: "netif_receive_skb", Lacking: 0.062}}
	r.Traces = []trace.Trace{bridge, proxy, refused}
	r.Found = trace.Findings(r)
	return r
}

func TestTrace(t *testing.T) {
	t.Run("60", func(t *testing.T) {
		d := Summary(traced())
		got := written(t, "table", d, format.Options{Width: 60})
		whole(t, d, got)
		for l := range strings.Lines(got) {
			if w := ansi.StringWidth(strings.TrimSuffix(l, "\n")); w > 60 {
				t.Errorf("%d columns: %q", w, l)
			}
		}
	})
	t.Run("details", func(t *testing.T) {
		golden(t, "trace.txt", table(t, traced(), format.Options{Width: 80}))
	})
	t.Run("openmetrics", func(t *testing.T) {
		b := written(t, "openmetrics", Report(traced()), format.Options{})
		for metric, low := range map[string]string{"bridge": "3.999999999999999e-06",
			"bridge: hook FORWARD": "4.2999999999999996e-07", "in the path": "3.2e-06"} {
			want := `toll_part_seconds{study="trace",mode="bridge",from="host",to="container",on="lab",` +
				`load="rr",point="",pin="",tune="",shape="",metric="` + metric +
				`",against="host",stat="low"} ` + low
			if !testgolden.HasLine(b, want) {
				t.Errorf("no %s in\n%s", want, b)
			}
		}
	})
	t.Run("csv", func(t *testing.T) {
		only := traced()
		only.Cells, only.Failed, only.Traces = nil, nil, only.Traces[1:] // a relay, a refusal
		only.Found = trace.Findings(only)
		golden(t, "trace.csv", written(t, "csv", Report(only), format.Options{}))
	})
	one := traced()
	one.Traces = one.Traces[:1]
	one.Found = trace.Findings(one)
	for _, c := range documenttest.Unnoticed(Summary(one),
		summary(t, one, format.Options{Width: format.DefaultWidth})) {
		t.Errorf("nobody would miss %s", c)
	}
}

func TestTraceJSONFields(t *testing.T) {
	b := written(t, "json", Report(traced()), format.Options{})
	var doc map[string]any
	if err := json.Unmarshal([]byte(b), &doc); err != nil {
		t.Fatal(err)
	}
	for where, keys := range map[string]string{
		"": "study traces",
		"traces/0": "cell label against untraced path wake_ups unattributed trips " +
			"followed events cost rows segments its_segments groups readers findings",
		"traces/0/rows/4":       "name mine_s its_s added epochs_s hooks",
		"traces/0/rows/4/added": "unit median low high n verdict",
		"traces/0/segments/3":   "part hop device where row at_s mid_mean_s p99_s share cost_s",
		"traces/2":              "refused",
	} {
		o, _ := at(doc, where).(map[string]any)
		for _, k := range strings.Fields(keys) {
			if _, ok := o[k]; !ok {
				t.Errorf("%q has no %q", where, k)
			}
		}
	}
}

// The parts of a judged trace are those that it says, and its answer agrees.
func TestJudgedTrace(t *testing.T) {
	run := judgetest.New(t, judgetest.Trio(mode.Bridge, "rr")...).Trace(1, 6, []judgetest.Trip{
		judgetest.HostTrip(), judgetest.HostTrip(), judgetest.BridgeTrip()},
		sample.Untraced, sample.Traced, sample.TracedThrice, sample.TracedHooks)
	r := judge.Judge(run.File)
	got := summary(t, r, format.Options{Width: 80})
	for _, want := range []string{"bridge against host, round trips from the machine itself, " +
		"rr, 1 byte each way", "  └ hook FORWARD                 -    1.99  +1.99 ±0.05        " +
		"│━━━━━━━━",
		"  round trip, untraced        44.4    47.7    +3.2 ±0.5        │━━━━━━━━━━━━──",
		"  A second connection over host's path differs from the first by +0.01 ±0.09 µs"} {
		if !testgolden.HasLine(got, want) {
			t.Errorf("no line %q in %q", want, got)
		}
	}
	if strings.Contains(got, "(control) against") {
		t.Errorf("a summary has the control:\n%s", got)
	}
	all := table(t, r, format.Options{Width: 80})
	for _, want := range []string{"host (control) against host, round trips from the machine " +
		"itself, rr, 1 byte", "Every segment of bridge's round trip, in order"} {
		if !testgolden.HasLine(all, want) {
			t.Errorf("no line %q in %q", want, all)
		}
	}
	parts := Parts(r)
	if len(parts) != 1 || len(parts[0].Rows) != 10 || parts[0].Rows[4].Name != "bridge" ||
		parts[0].Rows[4].Price < 3e-6 {
		t.Errorf("%+v", parts)
	}
	if first := parts[0].Sorted(ByPrice, true).Rows[0].Name; first != "bridge" {
		t.Errorf("the most expensive part is %s", first)
	}
}

func TestTracedLadder(t *testing.T) {
	r := climbed()
	for i, x := range traced().Traces {
		k := []int{2, proxyStep, 4}[i] // whose prices are about those of the parts
		x.Cell, x.Label, x.Against = r.Cells[2*k], r.Steps[k].Label, r.Steps[k].Below
		r.Steps[k].Trace = &x
	}
	r.Found = ladder.Findings(r)
	got := summary(t, r, format.Options{Width: 80})
	golden(t, "ladder-traced.txt", got)
	all := table(t, r, format.Options{Width: 80})
	for _, want := range []string{"  round trip, untraced        15.2            20.3    +4.1 " +
		"±0.9      │━━━━━━━━──", "Every segment of bridge-default's round trip, in order"} {
		if !testgolden.HasLine(all, want) {
			t.Errorf("no line %q in %q", want, all)
		}
	}
	rows := csvRows(t, written(t, "csv", Report(r), format.Options{}))
	if !slices.ContainsFunc(rows, func(r map[string]string) bool {
		return r["metric"] == "in the path" && r["unit"] == "s" && r["statistic"] == "part"
	}) {
		t.Errorf("no parts in %v", rows)
	}
}

func TestDifferenceOfTraces(t *testing.T) {
	run := func(seed uint64, rest float64) *sample.File {
		bridge := judgetest.BridgeTrip()
		for i := range bridge.Segments {
			if bridge.Segments[i].Part == sample.PartBridge {
				bridge.Segments[i].Micros += rest
			}
		}
		r := judgetest.New(t, judgetest.Trio(mode.Bridge, "rr")...).Trace(seed, 6,
			[]judgetest.Trip{judgetest.HostTrip(), judgetest.HostTrip(), bridge})
		return r.File
	}
	lost := run(3, 0)
	for i := range lost.Visits {
		if x := lost.Visits[i].Trace; x != nil {
			x.Followed = 0
		}
	}
	for name, now := range map[string]*sample.File{"difference-traces": run(2, 1.5),
		"difference-lost": lost} {
		r, err := difference.Judge(difference.Input{Name: "old.jsonl", File: run(1, 0)},
			difference.Input{Name: "new.jsonl", File: now})
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name+".txt", written(t, "table", Difference(r), format.Options{Width: 80}))
	}
}
