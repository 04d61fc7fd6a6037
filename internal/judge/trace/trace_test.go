package trace_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/judge/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

const micro = 1e-6

var withHooks = []sample.Tracing{sample.Untraced, sample.Traced, sample.TracedThrice,
	sample.TracedHooks}

func traced(t *testing.T, seed uint64, bridge judgetest.Trip,
	states ...sample.Tracing) *trace.Report {
	t.Helper()
	return trace.Judge(file(t, seed, bridge, states...))
}

func file(t *testing.T, seed uint64, bridge judgetest.Trip, states ...sample.Tracing) *sample.File {
	t.Helper()
	host := judgetest.Cell(mode.Host, mode.FromContainer, mode.ToAddress, workload.RR)
	r := judgetest.New(t, host, judgetest.Control(host),
		judgetest.Cell(mode.Bridge, mode.FromContainer, mode.ToContainer, workload.RR)).
		Trace(seed, 5, []judgetest.Trip{judgetest.HostTrip(), judgetest.HostTrip(), bridge},
			states...)
	r.File.Header.Paths[1].Sysctls = map[string]string{
		"net.bridge.bridge-nf-call-iptables": "1"}
	return r.File
}

func rowOf(t *testing.T, x trace.Trace, name string) trace.Row {
	t.Helper()
	i := slices.IndexFunc(x.Rows, func(r trace.Row) bool { return r.Name == name })
	if i < 0 {
		t.Fatalf("no row %q among %+v", name, x.Rows)
	}
	return x.Rows[i]
}

func TestRows(t *testing.T) {
	r := traced(t, 1, judgetest.BridgeTrip())
	if len(r.Traces) != 2 || r.Traces[0].Label != "bridge" || r.Traces[1].Label != "host (control)" {
		t.Fatalf("%+v", r.Traces)
	}
	x := r.Traces[0]
	var names []string
	for _, row := range x.Rows {
		names = append(names, row.Name)
	}
	want := []string{"programs, system calls", "TCP and IP out", "veth, lo: qdisc and driver",
		"hand-over to the softirq", "bridge", "IP and TCP in", "wake-ups"}
	if !slices.Equal(names, want) {
		t.Errorf("rows %q", names)
	}
	for _, c := range []struct {
		row             string
		mine, its, adds float64
	}{
		{"programs, system calls", 2.2, 2.2, 0},
		{"TCP and IP out", 2.6, 4, -1.4},
		{"veth, lo: qdisc and driver", 1.3, 0.8, 0.5},
		{"bridge", 4, -1, 4},
		{"wake-ups", 32, 32, 0},
	} {
		row, within := rowOf(t, x, c.row), 0.15
		if c.row == "wake-ups" {
			within = 3
		}
		if near := func(p *float64, x float64) bool {
			return p != nil && math.Abs(*p/micro-x) <= within
		}; !near(row.Mine, c.mine) || row.Its == nil != (c.its < 0) ||
			row.Its != nil && !near(row.Its, c.its) {
			t.Errorf("%s: %v and %v, want %g and %g µs", c.row, row.Mine, row.Its, c.mine, c.its)
		}
		if math.Abs(row.Added.Median/micro-c.adds) > within || len(row.Epochs) != 10 ||
			row.Added.Epochs == 0 || row.Added.Unit != "s" {
			t.Errorf("%s: adds %+v in %d epochs, want %g", c.row, row.Added, len(row.Epochs),
				c.adds)
		}
	}
	if got := rowOf(t, x, "bridge").Added.Verdict; got != stats.Costs {
		t.Errorf("the bridge's verdict: %s", got)
	}
	if x.Events != 36 || math.Abs(x.Cost.Median/micro-36*judgetest.EventCost/micro) > 3 {
		t.Errorf("%g events, tracing costs %+v", x.Events, x.Cost)
	}
	if x.Trips != 15000 || x.Followed != 1 {
		t.Errorf("%d trips, %g followed", x.Trips, x.Followed)
	}
}

func TestPartsAddUp(t *testing.T) {
	for _, x := range traced(t, 2, judgetest.BridgeTrip()).Traces {
		rows := 0.0
		for _, r := range x.Rows {
			if r.Name != "wake-ups" {
				rows += r.Added.Median
			}
		}
		sum := x.Path.Median + x.WakeUps.Median + x.Relay.Median + x.Unattributed.Median
		if math.Abs(rows-x.Path.Median) > 1e-12 || math.Abs(sum-x.Untraced.Median) > 1e-12 {
			t.Errorf("%s: rows %g, path %g; parts %g, untraced %g", x.Label, rows, x.Path.Median,
				sum, x.Untraced.Median)
		}
	}
}

// The intervals must cover the known parts in nearly all runs.
func TestIntervalsCover(t *testing.T) {
	const runs = 60
	missed := map[string]int{}
	note := func(name string, p analysis.Price, micros float64) {
		if p.Low > micros*micro || p.High < micros*micro {
			missed[name]++
		}
		if p.N == 0 {
			t.Fatalf("%s has no price", name)
		}
	}
	for seed := range uint64(runs) {
		r := traced(t, seed, judgetest.BridgeTrip())
		x, control := r.Traces[0], r.Traces[1]
		note("bridge", rowOf(t, x, "bridge").Added, 4)
		note("out", rowOf(t, x, "TCP and IP out").Added, -1.4)
		note("path", x.Path, 3.1)
		note("wake-ups", x.WakeUps, 0)
		note("untraced", x.Untraced, 3.6)
		note("unattributed", x.Unattributed, 0.5)
		note("control", control.Path, 0)
		for _, row := range control.Rows {
			if row.Added.Known() {
				missed["verdicts"]++
			}
		}
	}
	for name, n := range missed {
		if n > runs/8 {
			t.Errorf("%s: %d of %d intervals miss the truth", name, n, runs)
		}
	}
}

func TestHooks(t *testing.T) {
	r := traced(t, 3, judgetest.BridgeTrip(), withHooks...)
	row := rowOf(t, r.Traces[0], "bridge")
	if len(row.Hooks) != 1 || row.Hooks[0].Name != "FORWARD" || row.Hooks[0].Its != nil ||
		row.Hooks[0].Mine == nil || math.Abs(*row.Hooks[0].Mine/micro-2) > 0.2 ||
		math.Abs(row.Hooks[0].Added.Median/micro-2) > 0.2 || len(row.Hooks[0].Epochs) != 5 {
		t.Errorf("hooks %+v", row.Hooks)
	}
	if math.Abs(*row.Mine/micro-4) > 0.15 {
		t.Errorf("the bridge takes %g µs", *row.Mine/micro)
	}
	f, ok := found(r.Traces[0], trace.FramesInHooks)
	if !ok || !took(f, 2) || math.Abs(f.Values[trace.Whole]/micro-4) > 0.05 ||
		f.Command != "" || f.Lever != "bridge-nf" { // the sysctl would change this machine's bridges
		t.Errorf("%+v", r.Traces[0].Findings)
	}
}

// NAT has a row of its own, taken from the row in which epochs without hooks saw it, so that the
// rows still add up.
func TestNATHasItsRow(t *testing.T) {
	plain := traced(t, 3, judgetest.NATTrip()).Traces[0]
	if slices.ContainsFunc(plain.Rows, func(r trace.Row) bool { return r.Name == "NAT" }) {
		t.Error("NAT without hooks")
	}
	x := traced(t, 3, judgetest.NATTrip(), withHooks...).Traces[0]
	nat, bridge := rowOf(t, x, "NAT"), rowOf(t, x, "bridge")
	if nat.Its != nil || nat.Mine == nil || math.Abs(*nat.Mine/micro-0.8) > 0.15 ||
		math.Abs(nat.Added.Median/micro-0.8) > 0.15 || nat.Added.Verdict != stats.Costs {
		t.Errorf("NAT %+v", nat)
	}
	if math.Abs(*bridge.Mine/micro-4) > 0.2 || len(bridge.Hooks) != 1 {
		t.Errorf("the bridge without NAT: %g µs, %+v", *bridge.Mine/micro, bridge.Hooks)
	}
	sum := 0.0
	for _, r := range x.Rows {
		if r.InPath() {
			sum += r.Added.Median
		}
	}
	if math.Abs(sum-x.Path.Median) > 1e-12 {
		t.Errorf("rows add %g, the path %g", sum/micro, x.Path.Median/micro)
	}
}

// The control's hooks show how much those of other cells may differ.
func TestHooksLearnFromTheControl(t *testing.T) {
	host := judgetest.HostTrip()
	host.Segments = slices.Insert(host.Segments, 2, judgetest.Piece{SegmentKey: sample.SegmentKey{
		Part: sample.PartHook + "OUTPUT"}, Micros: 0.5, Events: 1})
	width := func(more float64) float64 {
		cell := judgetest.Cell(mode.Host, mode.FromContainer, mode.ToAddress, workload.RR)
		f := judgetest.New(t, cell, judgetest.Control(cell),
			judgetest.Cell(mode.Bridge, mode.FromContainer, mode.ToContainer, workload.RR)).
			Trace(3, 5, []judgetest.Trip{host, host, judgetest.BridgeTrip()}, withHooks...).File
		for _, v := range f.Visits {
			if v.Cell == 1 && v.Trace != nil && v.Trace.State == sample.TracedHooks {
				for k := range v.Trace.Segments[2].MidMeans {
					v.Trace.Segments[2].MidMeans[k] += more * float64(v.Round%3)
				}
			}
		}
		p := rowOf(t, trace.Judge(f).Traces[0], "bridge").Hooks[0].Added
		return p.High - p.Low
	}
	if steady, wild := width(0), width(micro/4); wild < 1.1*steady {
		t.Errorf("±%g, ±%g where the control's hooks differ", steady/2, wild/2)
	}
}

func TestCauses(t *testing.T) {
	long := func(part sample.Part, micros float64) judgetest.Trip {
		trip := judgetest.BridgeTrip()
		i := slices.IndexFunc(trip.Segments, func(p judgetest.Piece) bool { return p.Part == part })
		trip.Segments[i].Micros = micros
		return trip
	}
	odd := file(t, 4, judgetest.BridgeTrip())
	for i := range odd.Visits {
		if v := &odd.Visits[i]; v.Trace != nil && v.Cell == 2 {
			g := &v.Trace.Groups[0]
			g.Steps, g.Odd = append(g.Steps, "fib_table_lookup br0 (machine A)"),
				[]int{len(g.Steps)}
		}
	}
	rules := file(t, 4, judgetest.BridgeTrip())
	rules.Header.Plan.Cells[2].Mode, rules.Header.Paths[1].Mode = mode.PublishNAT, mode.PublishNAT
	for _, c := range []struct {
		name      string
		file      *sample.File
		code, not string
		took      float64 // µs; 0: any
		what      string
	}{
		{"frames", file(t, 4, judgetest.BridgeTrip()), trace.Frames, trace.WaitsSoftirq, 4, ""},
		{"frames-that-must", rules, "", trace.Frames, 0, ""},
		{"sleeping", file(t, 4, judgetest.BridgeTrip()), trace.ReadersSlept, trace.LongChains, 0,
			""},
		{"chain", file(t, 4, long("hook FORWARD", 3), withHooks...), trace.LongChains,
			trace.OddStep, 0,
			"FORWARD"},
		{"backlog", file(t, 4, long(sample.PartHandover, 11)), trace.WaitsSoftirq, trace.WaitsQueue,
			11, "eth0"},
		{"queue", file(t, 4, long(sample.PartQdisc, 400)), trace.WaitsQueue, trace.WaitsSoftirq,
			400, "eth0"},
		{"odd", odd, trace.OddLookUp, trace.OddStep, 0, "fib_table_lookup br0 (machine A)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := trace.Judge(c.file).Traces[0]
			f, ok := found(x, c.code)
			if ok != (c.code != "") || c.took > 0 && !took(f, c.took) || f.What != c.what {
				t.Errorf("found %+v, want %+v", x.Findings, c)
			}
			if _, ok := found(x, c.not); ok {
				t.Errorf("found %+v, with %s", x.Findings, c.not)
			}
			// A command acts on this machine, of which the lab's devices and rules are no part.
			if f.Command != "" {
				t.Errorf("%q in the lab", f.Command)
			}
			if f.Rows != nil && (x.Segments[f.Rows[0]].Reply || x.Segments[f.Rows[0]].Device != "eth0") {
				t.Errorf("it waits at %+v", x.Segments[f.Rows[0]])
			}
			if c.name == "sleeping" && math.Abs(f.Values[trace.Share]-0.85) > 0.01 ||
				c.name == "odd" && f.Values[trace.Share] != 1 {
				t.Errorf("%+v", f)
			}
		})
	}
}

// found returns the finding on a trace that has the code.
func found(x trace.Trace, code string) (f trace.Finding, ok bool) {
	i := slices.IndexFunc(x.Findings, func(f trace.Finding) bool { return f.Code == code })
	if i < 0 {
		return f, false
	}
	return x.Findings[i], true
}

func took(f trace.Finding, micros float64) bool {
	return math.Abs(f.Values[trace.Took]/micro-micros) <= 0.05
}

func codes(all []analysis.Finding) (out []string) {
	for _, f := range all {
		out = append(out, f.Code)
	}
	return out
}

func TestVariantGivesSize(t *testing.T) {
	host := judgetest.Cell(mode.Host, mode.FromContainer, mode.ToAddress, workload.RR)
	bridge := judgetest.Cell(mode.Bridge, mode.FromContainer, mode.ToContainer, workload.RR)
	off := bridge
	off.Tune = "mtu=9000"
	fast := judgetest.BridgeTrip()
	for i := range fast.Segments {
		if fast.Segments[i].Hop == "bridge" {
			fast.Segments[i].Micros = 0.3
		}
	}
	r := judgetest.New(t, host, judgetest.Control(host), bridge, off).Trace(5, 5, []judgetest.Trip{
		judgetest.HostTrip(), judgetest.HostTrip(), judgetest.BridgeTrip(), fast})
	for i, x := range []string{"1", "1", "0"} {
		r.File.Header.Paths[i].Sysctls = map[string]string{"net.bridge.bridge-nf-call-iptables": x}
	}
	all := trace.Judge(r.File).Traces
	i := slices.IndexFunc(all, func(x trace.Trace) bool { return x.Label == "bridge" })
	if f, ok := found(all[i], trace.FramesOf); !ok || f.What != "bridge+mtu=9000" || !took(f, 2.8) {
		t.Errorf("%+v", all[i].Findings)
	}
}

func TestRelay(t *testing.T) {
	trip := judgetest.BridgeTrip()
	trip.Segments = append(trip.Segments, judgetest.Piece{SegmentKey: sample.SegmentKey{
		Hop: "proxy", Part: sample.PartRelay}, Micros: 20, Events: 10})
	r := traced(t, 6, trip)
	x := r.Traces[0]
	// The cost of tracing is not subtracted from a relay's time.
	want := 20 + 10*judgetest.EventCost/micro
	if math.Abs(x.Relay.Median/micro-want) > 1 || rowOf(t, x, "relay").Its != nil {
		t.Errorf("the relay adds %+v", x.Relay)
	}
	if r.Traces[1].Relay != (analysis.Price{}) {
		t.Errorf("the control has a relay: %+v", r.Traces[1].Relay)
	}
}

func TestRefused(t *testing.T) {
	f := file(t, 7, judgetest.BridgeTrip())
	for i := range f.Visits {
		if x := f.Visits[i].Trace; x != nil && f.Visits[i].Cell == 2 {
			x.Followed = x.Trips * 57 / 100
			x.Broken = []sample.Break{{Share: 0.01, After: "sock_recv_length",
				Want: "a later byte"},
				{Share: 0.42, After: "netif_rx eth0 (container)", Want: "netif_receive_skb"}}
		}
	}
	r := trace.Judge(f)
	x := r.Traces[0]
	want := trace.Refusal{Refused: trace.FewFollowed, Of: "bridge", Share: 0.57, Lacking: 0.42,
		After: "netif_rx eth0 (container)", Want: "netif_receive_skb"}
	if !refusedAs(x, want) || x.Rows != nil || x.Untraced.N == 0 || r.Complete() {
		t.Errorf("refused %+v with %d rows", x.Refusal, len(x.Rows))
	}
	if r.Traces[1].Refused != "" || len(r.Traces[1].Rows) == 0 {
		t.Errorf("the control is refused: %q", r.Traces[1].Refused)
	}
	if got := codes(r.Found); !slices.Equal(got, []string{trace.NotDivided, trace.ControlDiffers,
		analysis.AllWitnessed}) {
		t.Errorf("found %q", got)
	}
}

func TestNothingFollowed(t *testing.T) {
	f := file(t, 7, judgetest.BridgeTrip())
	for i := range f.Visits {
		if x := f.Visits[i].Trace; x != nil && f.Visits[i].Cell == 2 {
			*x = sample.Trace{State: x.State, Trips: x.Trips,
				Broken: []sample.Break{{Share: 1, After: "net_dev_queue eth0", Want: "netif_rx"}}}
		}
	}
	want := trace.Refusal{Refused: trace.FewFollowed, Of: "bridge", Lacking: 1,
		After: "net_dev_queue eth0", Want: "netif_rx"}
	if x := trace.Judge(f).Traces[0]; !refusedAs(x, want) || x.Trips != 15000 {
		t.Errorf("%d trips, refused %+v", x.Trips, x.Refusal)
	}
}

func refusedAs(x trace.Trace, want trace.Refusal) bool {
	return cmp.Equal(x.Refusal, want, cmpopts.EquateApprox(0, 1e-9))
}

// The columns of a row must agree.
func TestColumnsAgree(t *testing.T) {
	for _, x := range traced(t, 11, judgetest.BridgeTrip(), withHooks...).Traces {
		if len(x.Levels) != 2 || math.Abs(x.Levels[1]-x.Levels[0]-x.Untraced.Median) > 1e-12 {
			t.Errorf("%s: untraced %v, added %g", x.Label, x.Levels, x.Untraced.Median)
		}
		for _, r := range x.Rows {
			for _, r := range append(r.Hooks, r) {
				its := 0.0
				if r.Its != nil {
					its = *r.Its
				}
				if math.Abs(*r.Mine-its-r.Added.Median) > 1e-12 && *r.Mine > 0 {
					t.Errorf("%s %s: %g and %g, added %g", x.Label, r.Name, *r.Mine, its,
						r.Added.Median)
				}
			}
		}
	}
}

// judgetest's p99 is three times the mid-mean.
func TestSegmentsWithoutCost(t *testing.T) {
	costly := false
	for _, x := range traced(t, 11, judgetest.BridgeTrip()).Traces {
		for _, g := range x.Segments {
			costly = costly || g.Cost > 0
			if g.MidMean > 0 && math.Abs(g.P99+g.Cost-3*(g.MidMean+g.Cost)) > 1e-12 {
				t.Errorf("%s: %+v", x.Label, g)
			}
		}
	}
	if !costly {
		t.Error("tracing costs nothing")
	}
}

// Parts that a kernel cannot distinguish share a row that is named after both.
func TestMergedParts(t *testing.T) {
	trip := judgetest.BridgeTrip()
	trip.Segments[0].Part = "call + TCP/IP out"
	trip.Segments = slices.Delete(trip.Segments, 1, 2)
	rowOf(t, traced(t, 8, trip).Traces[0], "programs, system calls + TCP and IP out")
}

func TestFewEpochs(t *testing.T) {
	for name, states := range map[string][]sample.Tracing{
		"untraced": {sample.Untraced}, "traced": {sample.Traced},
		"no-cost":     {sample.Untraced, sample.Traced},
		"only-thrice": {sample.Untraced, sample.TracedThrice},
	} {
		t.Run(name, func(t *testing.T) {
			r := traced(t, 9, judgetest.BridgeTrip(), states...)
			x := r.Traces[0]
			traced := slices.Contains(states, sample.Traced)
			if traced != (x.Refused == "") || traced != (len(x.Rows) > 0) {
				t.Errorf("refused %q with %d rows", x.Refused, len(x.Rows))
			}
			if untraced := slices.Contains(states, sample.Untraced); untraced != (x.Untraced.N > 0) ||
				x.Unattributed.N > 0 != (untraced && traced) {
				t.Errorf("untraced %+v, unattributed %+v", x.Untraced, x.Unattributed)
			}
			if traced && math.Abs(rowOf(t, x, "bridge").Added.Median/micro-4) > 0.3 {
				t.Errorf("the bridge adds %+v", rowOf(t, x, "bridge").Added)
			}
		})
	}
}

func TestWithoutControl(t *testing.T) {
	f := file(t, 10, judgetest.BridgeTrip())
	f.Header.Plan.Cells[1] = f.Header.Plan.Cells[2]
	f.Header.Plan.Cells[1].Tune = "mtu=9000"
	for i := range f.Visits {
		if f.Visits[i].Cell == 1 {
			f.Visits[i].Failure = "it broke"
		}
	}
	x := trace.Judge(f).Traces
	if len(x) != 1 || rowOf(t, x[0], "bridge").Added.Verdict != stats.Costs {
		t.Errorf("%+v", x)
	}
}
