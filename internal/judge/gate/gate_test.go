package gate_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/gate"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

// The run has bulk of 40, 32 and 10 Gbit/s, and round trips of 20, 24 and 60 µs, over host, bridge
// and publish-proxy, with intervals of about 1 %.
func measured(t *testing.T, rounds int, change ...func(*sample.File)) *sample.File {
	t.Helper()
	var cells []sample.Cell
	for _, l := range []string{workload.Bulk, workload.RR} {
		cells = append(append(cells, judgetest.Trio(mode.Bridge, l)...),
			judgetest.HostCell(mode.PublishProxy, l))
	}
	noise := []float64{0.004, 0.006, 0.005, 0.005, 0.004, 0.006, 0.005, 0.005}
	f := judgetest.New(t, cells...).Rounds(
		rounds, judgetest.Noisy(noise, 40, 40, 32, 10, 20, 20, 24, 60)).File
	for _, c := range change {
		c(f)
	}
	return f
}

func outcome(t *testing.T, f *sample.File, text string) gate.Rule {
	t.Helper()
	s, err := gate.Parse(text, gate.WordsOf(f))
	if err != nil {
		t.Fatal(err)
	}
	r := gate.Judge("run", f, []gate.Sentence{s})
	if _, err := json.Marshal(r); err != nil {
		t.Fatal(err)
	}
	if r.Outcome != r.Rules[0].Outcome {
		t.Errorf("%s, but the report is %s", r.Rules[0].Outcome, r.Outcome)
	}
	return r.Rules[0]
}

func TestOwnNoise(t *testing.T) {
	bridge := judgetest.HostCell(mode.Bridge, workload.Bulk)
	cells := append(judgetest.Trio(mode.Bridge, workload.Bulk), judgetest.Control(bridge),
		judgetest.HostCell(mode.PublishProxy, workload.Bulk))
	noise := []float64{0, 0.3, 0.003, 0.003, 0.003}
	f := judgetest.New(t, cells...).Rounds(12, judgetest.Noisy(noise, 40, 40, 32, 32, 16)).File
	if r := outcome(t, f, "publish-proxy.throughput >= 0.48 of bridge"); r.Outcome != gate.Holds {
		t.Errorf("by bridge's control: %+v", r)
	}
	cells[3] = judgetest.HostCell(mode.Native, workload.Bulk) // leaves only host's noise
	f = judgetest.New(t, cells...).Rounds(12, judgetest.Noisy(noise, 40, 40, 32, 32, 16)).File
	if r := outcome(t, f, "publish-proxy.throughput >= 0.48 of bridge"); r.Outcome != gate.Unclear {
		t.Errorf("by host's control: %+v", r)
	}
}

func TestOutcomes(t *testing.T) {
	f := measured(t, 12)
	for text, want := range map[string]gate.Outcome{
		"bridge.throughput >= 0.7 of host":                  gate.Holds,
		"bridge.throughput >= 70% of host":                  gate.Holds,
		"bridge.throughput >= 0.8 of host":                  gate.Unclear,
		"bridge.throughput >= 0.9 of host":                  gate.Violated,
		"bridge.throughput < 0.9 of host":                   gate.Holds,
		"bridge.throughput <= 0.7 of host":                  gate.Violated,
		"publish-proxy.throughput >= 0.3 of bridge":         gate.Holds,
		"publish-proxy.throughput >= 0.3 of bridge load rr": gate.Missing,
		"bridge.throughput >= 30 Gbit/s":                    gate.Holds,
		"bridge.throughput >= 35 Gbit/s":                    gate.Violated,
		"bridge.latency <= 30us":                            gate.Holds,
		"bridge.latency <= 20us":                            gate.Violated,
		"bridge.latency_p99 <= 1.3 of host":                 gate.Holds,
		"bridge.cpu <= 1.3 of host":                         gate.Holds,
		"bridge.cpu <= 1.1 of host":                         gate.Violated,
		"bridge.cpu <= 1.1 of host load rr":                 gate.Holds,
		"bridge.cpu <= 1 s/GB":                              gate.Holds,
		"bridge.throughput >= 0.7 of host from container":   gate.Missing,
		"routed.throughput >= 0.7 of host":                  gate.Missing,
		"bridge.throughput >= 0.7 of routed":                gate.Missing,
		"host.throughput >= 1 of bridge":                    gate.Holds,
	} {
		t.Run(strings.NewReplacer(" ", "-", "/", "-per-").Replace(text), func(t *testing.T) {
			if got := outcome(t, f, text); got.Outcome != want {
				t.Errorf("%s, want %s: %+v", got.Outcome, want, got)
			}
		})
	}
}

// program returns a run of a program over host and bridge. Each of its metrics is always 2.
func program(t *testing.T, gauges ...sample.Gauge) *sample.File {
	t.Helper()
	f := judgetest.New(t, judgetest.Trio(mode.Bridge, workload.Exec)...).Rounds(
		12, judgetest.Steady(1, 1, 1)).File
	f.Header.Plan.Loads = append(f.Header.Plan.Loads, sample.Load{Kind: workload.Exec, Window: 1,
		Options: sample.ExecOptions{Program: &sample.Program{Server: "serve", Client: "ask",
			Gauges: gauges}}})
	for i := range f.Visits {
		f.Visits[i].Values = map[string]float64{}
		for _, g := range gauges {
			f.Visits[i].Values[g.Name] = 2
		}
	}
	return f
}

func TestProgram(t *testing.T) {
	f := program(t, sample.Gauge{Name: "bandwidth", Unit: "B/s"}, sample.Gauge{Name: "size"},
		sample.Gauge{Name: gate.Latency, Unit: "s"}, sample.Gauge{Name: gate.CPU},
		sample.Gauge{Name: "p99.9", Unit: "s"})
	for text, want := range map[string]gate.Outcome{
		"bridge.bandwidth >= 1 B/s":    gate.Holds,
		"bridge.bandwidth > 2 B/s":     gate.Violated,
		"bridge.bandwidth < 17 bit/s":  gate.Holds,
		"bridge.bandwidth <= 15 bit/s": gate.Violated,
		"bridge.size <= 2":             gate.Holds,
		"bridge.latency <= 2s":         gate.Holds,
		"bridge.latency <= 1900 ms":    gate.Violated,
		"bridge.latency <= 1 of host":  gate.Holds,
		"bridge.cpu < 3":               gate.Holds,
		"bridge.p99.9 > 2 s":           gate.Violated,
	} {
		if got := outcome(t, f, text); got.Outcome != want {
			t.Errorf("%s: %s, want %s: %+v", text, got.Outcome, want, got)
		}
	}
}

// A row that varies is judged by its range, however many rounds there are.
func TestVaryingRow(t *testing.T) {
	rates := []float64{0.02, 2.2, 0.3, 0.05}
	f := judgetest.New(t, judgetest.Trio(mode.Bridge, workload.Bulk)...).Rounds(
		40, func(round, cell int) float64 {
			if cell == 2 {
				return rates[round%len(rates)]
			}
			return 40
		}).File
	for text, want := range map[string]gate.Outcome{
		"bridge.throughput <= 0.2 of host":   gate.Holds,
		"bridge.throughput >= 0.1 of host":   gate.Violated,
		"bridge.throughput >= 0.002 of host": gate.Unclear,
		"bridge.throughput >= 3 Gbit/s":      gate.Violated,
		"bridge.throughput >= 0.1 Gbit/s":    gate.Unclear,
	} {
		if got := outcome(t, f, text); got.Outcome != want {
			t.Errorf("%s: %s, want %s: %+v", text, got.Outcome, want, got)
		}
	}
}

func TestEveryCell(t *testing.T) {
	if r := outcome(t, measured(t, 12), "bridge.cpu <= 1.1 of host"); len(r.Checks) != 2 ||
		r.Checks[0].Outcome != gate.Violated || r.Checks[1].Outcome != gate.Holds {
		t.Errorf("%+v", r.Checks)
	}
}

func TestNotKnown(t *testing.T) {
	for _, c := range []struct {
		text   string
		rounds int
		want   gate.Reason
	}{
		{"bridge.throughput >= 0.1 of host", 4,
			gate.Reason{Code: gate.FewRounds, Rounds: 4, Least: 5}},
		{"bridge.throughput >= 0.1 of host", 5, gate.Reason{}},
		{"bridge.throughput >= 1 Gbit/s", 7,
			gate.Reason{Code: gate.FewRounds, Rounds: 7, Least: 8}},
		{"bridge.throughput >= 1 Gbit/s", 8, gate.Reason{}},
	} {
		r := outcome(t, measured(t, c.rounds), c.text)
		if r.Checks[0].Reason != c.want || (r.Outcome == gate.Holds) != (c.want.Code == "") {
			t.Errorf("%s, %d rounds: %+v", c.text, c.rounds, r)
		}
	}
	alone := measured(t, 12, func(f *sample.File) {
		for i := range f.Visits {
			if f.Header.Plan.Cells[f.Visits[i].Cell].Control {
				f.Visits[i].Failure = "it broke"
			}
		}
	})
	if r := outcome(t, alone, "bridge.throughput >= 0.1 of host"); r.Outcome != gate.Unclear ||
		r.Checks[0].Code != gate.NoControl {
		t.Errorf("%+v", r)
	}
}

func TestFailed(t *testing.T) {
	failed := measured(t, 12, func(f *sample.File) {
		for i := range f.Visits {
			if f.Visits[i].Cell == 2 {
				f.Visits[i].Failure = "it broke"
			}
		}
		f.Header.Plan.Skipped = []sample.Skip{{Mode: "netkit", Reason: "this kernel has none"}}
	})
	if r := outcome(t, failed, "bridge.throughput >= 0.1 of host"); r.Outcome != gate.Missing ||
		r.Checks[0].Code != gate.NoResult {
		t.Errorf("%+v", r)
	}
	if r := outcome(t, failed, "publish-proxy.throughput >= 0.1 of bridge"); r.Outcome != gate.Missing ||
		r.Checks[0].Reason != (gate.Reason{Code: gate.NoReference, Of: "bridge"}) {
		t.Errorf("%+v", r)
	}
	if r := outcome(t, failed, "bridge.latency <= 1ms"); r.Outcome != gate.Holds {
		t.Errorf("%+v", r)
	}
	if r := outcome(t, failed, "netkit.latency <= 1ms"); r.Outcome != gate.Missing ||
		r.Reason != (gate.Reason{Code: gate.Unmeasured, Of: "netkit",
			Cause: "this kernel has none"}) {
		t.Errorf("%+v", r)
	}
}

func TestWorstOutcome(t *testing.T) {
	f := measured(t, 12)
	var all []gate.Sentence
	for _, text := range []string{"bridge.latency <= 1ms", "bridge.throughput >= 0.8 of host",
		"routed.latency <= 1ms", "bridge.latency <= 1us"} {
		s, err := gate.Parse(text, gate.WordsOf(f))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	for n, want := range []gate.Outcome{gate.Holds, gate.Holds, gate.Unclear, gate.Missing,
		gate.Violated} {
		if got := gate.Judge("run", f, all[:n]).Outcome; got != want {
			t.Errorf("%d sentences: %s, want %s", n, got, want)
		}
	}
}

func TestConfirm(t *testing.T) {
	for _, c := range []struct {
		here, there, want gate.Outcome
	}{
		{gate.Violated, gate.Violated, gate.Violated},
		{gate.Violated, gate.Unclear, gate.Unclear},
		{gate.Violated, gate.Missing, gate.Unclear},
		{gate.Violated, gate.Holds, gate.Unclear},
		{gate.Holds, gate.Violated, gate.Unclear},
		{gate.Holds, gate.Unclear, gate.Holds},
		{gate.Holds, gate.Missing, gate.Holds},
		{gate.Unclear, gate.Violated, gate.Unclear},
		{gate.Missing, gate.Violated, gate.Missing},
		{gate.Missing, gate.Holds, gate.Missing},
	} {
		r := &gate.Report{Outcome: c.here, Rules: []gate.Rule{{Outcome: c.here}}}
		r.Confirm(&gate.Report{Name: "again", Rules: []gate.Rule{{Outcome: c.there}}})
		if r.Outcome != c.want || r.Rules[0].Outcome != c.want ||
			(r.Rules[0].Code == gate.NotConfirmed) != (c.here != c.want) ||
			c.here != c.want && r.Rules[0].Seen != c.there {
			t.Errorf("%s, then %s: %+v, want %s", c.here, c.there, r, c.want)
		}
	}
}
