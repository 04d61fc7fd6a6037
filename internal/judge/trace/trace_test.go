package trace_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/judgetest"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/judge/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

const micro = 1e-6

var withHooks = []sample.Tracing{sample.Untraced, sample.Traced, sample.TracedTwice,
	sample.TracedHooks}

func traced(t *testing.T, seed uint64, bridge judgetest.Trip, states ...sample.Tracing) *trace.Report {
	t.Helper()
	r := judgetest.New(t, judgetest.Trio(mode.Bridge, workload.RR)...).Trace(seed, 5,
		[]judgetest.Trip{judgetest.HostTrip(), judgetest.HostTrip(), bridge}, states...)
	r.File.Header.Paths[1].Sysctls = map[string]string{
		"net.bridge.bridge-nf-call-iptables": "1"}
	return trace.Judge(r.File)
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
			t.Errorf("%s: adds %+v in %d epochs, want %g", c.row, row.Added, len(row.Epochs), c.adds)
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

// Intervals of known parts, over many runs.
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
	if !said(r.Traces[0], "2.0 µs of its 4.0 µs are in their hooks") {
		t.Errorf("%+v", r.Traces[0].Findings)
	}
}

func said(x trace.Trace, text string) bool {
	return slices.ContainsFunc(x.Findings, func(f trace.Finding) bool {
		return strings.Contains(f.Text, text)
	})
}
