package difference_test

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/difference"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/judge/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

// The run has host at 40 Gbit/s, twice, and bridge at x times that.
func measured(t *testing.T, x float64, change ...func(*sample.File)) *sample.File {
	t.Helper()
	noise := []float64{0.004, 0.006, 0.005}
	f := judgetest.New(t, judgetest.Trio(mode.Bridge, workload.Bulk)...).Rounds(
		12, judgetest.Noisy(noise, 40, 40, 40*x)).File
	for _, c := range change {
		c(f)
	}
	return f
}

func judged(t *testing.T, old, now *sample.File) *difference.Report {
	t.Helper()
	r, err := difference.Judge(difference.Input{Name: "old", File: old},
		difference.Input{Name: "new", File: now})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func ratioOf(t *testing.T, r *difference.Report) *difference.Change {
	t.Helper()
	for _, c := range r.Cells {
		if c.Mode == mode.Bridge {
			return c.Metrics[workload.Throughput].Ratio
		}
	}
	t.Fatalf("no bridge in %+v", r.Cells)
	return nil
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		name     string
		old, now float64
		want     stats.Verdict
		fails    bool
	}{
		{"as-before", 0.8, 0.8, stats.Same, false},
		{"a-little-less", 0.8, 0.77, stats.Worse, false},
		{"much-less", 0.8, 0.6, stats.Worse, true},
		{"more", 0.6, 0.8, stats.Better, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := judged(t, measured(t, c.old), measured(t, c.now))
			x := ratioOf(t, r)
			if want := c.now / c.old; math.Abs(x.Median-want) > 0.01 || x.Low > want ||
				x.High < want || x.SureLow > x.Low || x.SureHigh < x.High {
				t.Errorf("%+v, want about %.3f", x, want)
			}
			if x.Verdict != c.want {
				t.Errorf("%s, want %s", x.Verdict, c.want)
			}
			r.FailAbove(0.05)
			failed := slices.ContainsFunc(r.Failing, func(f difference.Exceeded) bool {
				return f.Metric == workload.Throughput
			})
			if failed != c.fails {
				t.Errorf("failing: %+v", r.Failing)
			}
		})
	}
}

func TestFasterMachine(t *testing.T) {
	f := judgetest.New(t, judgetest.Trio(mode.Bridge, workload.Bulk)...).Rounds(
		12, judgetest.Noisy([]float64{0.004, 0.006, 0.005}, 80, 80, 64)).File
	r := judged(t, measured(t, 0.8), f)
	if v := ratioOf(t, r).Verdict; v != stats.Same {
		t.Errorf("the verdict is %s", v)
	}
	for _, c := range r.Cells {
		m := c.Metrics[workload.Throughput]
		if m.Value == nil || math.Abs(m.Value.Median-2) > 0.02 || m.Value.Verdict != "" {
			t.Errorf("%s: %+v", c.Label, m.Value)
		}
		if c.Baseline != (m.Ratio == nil) {
			t.Errorf("%s has the ratio %+v", c.Label, m.Ratio)
		}
	}
}

func TestOtherState(t *testing.T) {
	in := func(host, x float64) *sample.File {
		return judgetest.New(t, judgetest.Trio(mode.Bridge, workload.Bulk)...).Rounds(
			12, judgetest.Noisy([]float64{0.004, 0.006, 0.005}, host, host, host*x)).File
	}
	for _, c := range []struct {
		name   string
		host   float64
		x      float64
		states int
		want   stats.Verdict
	}{
		{"moved-and-worse", 57, 0.7, 1, stats.Unclear},
		{"moved-and-better", 30, 0.9, 1, stats.Unclear},
		{"moved-and-same", 57, 0.84, 1, stats.Same},
		{"not-moved", 47, 0.7, 0, stats.Worse},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := judged(t, in(45, 0.84), in(c.host, c.x))
			r.FailAbove(0.05)
			if len(r.States) != c.states || ratioOf(t, r).Verdict != c.want {
				t.Errorf("%s, states %+v; want %s", ratioOf(t, r).Verdict, r.States, c.want)
			}
			if worse, moved := c.x < 0.8, c.states > 0; (len(r.Failing) > 0) != (worse && !moved) ||
				r.Undecided(0.05) != (worse && moved) {
				t.Errorf("failing %+v, undecided %t", r.Failing, r.Undecided(0.05))
			}
		})
	}
}

func TestFewRoundsAreUnclear(t *testing.T) {
	f := judgetest.New(t, judgetest.Trio(mode.Bridge, workload.Bulk)...).Rounds(
		3, judgetest.Steady(40, 40, 10)).File
	r := judged(t, measured(t, 0.8), f)
	r.FailAbove(0.05)
	if v := ratioOf(t, r).Verdict; v != stats.Unclear || len(r.Failing) != 0 {
		t.Errorf("the verdict is %s, failing %v", v, r.Failing)
	}
}

func TestSettings(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*sample.File)
		want   difference.Setting
	}{
		{"kernel", func(f *sample.File) {
			f.Header.Environment.Kernel = "6.99"
		}, difference.Setting{What: "kernel", New: "6.99"}},
		{"cpus", func(f *sample.File) {
			f.Header.Environment.CPUsAllowed = []int{0, 3}
		}, difference.Setting{What: "CPUs allowed", New: "0 3"}},
		{"sysctl", func(f *sample.File) {
			f.Header.Environment.Sysctls = map[string]string{"net.core.rmem_max": "1"}
		},
			difference.Setting{What: "net.core.rmem_max", New: "1"}},
		{"load-average", func(f *sample.File) {
			f.Header.Environment.CPUs, f.Header.Environment.LoadAverage = 2, 9
		},
			difference.Setting{What: "load average before the run", Old: "0.0", New: "9.0"}},
		{"wire", func(f *sample.File) { f.Header.Plan.Wire = &sample.Wire{Rate: 1e9, MTU: 9000} },
			difference.Setting{What: "wire", New: "rate=1gbit,mtu=9000"}},
		{"window", func(f *sample.File) { f.Header.Plan.Loads[0].Window = 0.25 },
			difference.Setting{What: "window of bulk", Old: "1s", New: "250ms"}},
		{"mtu", func(f *sample.File) {
			f.Header.Paths[1].Links = []sample.Link{
				{Name: "v", Kind: "veth", Where: "machine A", MTU: 9000, Qdisc: "noqueue"}}
		}, difference.Setting{What: "MTU of veth in machine A", New: "9000",
			Cells: []string{"bridge"}}},
		{"fact", func(f *sample.File) {
			f.Header.Paths[1].Facts = map[string]string{"engine": "Docker Engine 29"}
		},
			difference.Setting{What: "engine", New: "Docker Engine 29", Cells: []string{"bridge"}}},
		{"hops", func(f *sample.File) { f.Header.Paths[1].Hops = []string{"lo"} },
			difference.Setting{What: "path", Old: "bridge·veth", New: "lo",
				Cells: []string{"bridge"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			same := func(s difference.Setting) bool {
				return s.What == c.want.What && s.Old == c.want.Old && s.New == c.want.New &&
					slices.Equal(s.Cells, c.want.Cells)
			}
			if r := judged(t, measured(t, 0.8), measured(t, 0.8, c.change)); !slices.ContainsFunc(r.Settings, same) {
				t.Errorf("%+v is not in %+v", c.want, r.Settings)
			}
		})
	}
	if r := judged(t, measured(t, 0.8), measured(t, 0.8)); len(r.Settings) != 0 {
		t.Errorf("of equal runs differs %+v", r.Settings)
	}
}

func TestSettingOnce(t *testing.T) {
	set := func(cc string) func(*sample.File) {
		return func(f *sample.File) {
			f.Header.Environment.Congestion = cc
			for i := range f.Header.Paths {
				f.Header.Paths[i].Sysctls = map[string]string{"net.ipv4.tcp_congestion_control": cc}
			}
		}
	}
	if r := judged(t, measured(t, 0.8, set("bbr")), measured(t, 0.8, set("reno"))); len(r.Settings) != 1 {
		t.Errorf("%+v", r.Settings)
	}
}

func TestOtherLoad(t *testing.T) {
	r := judged(t, measured(t, 0.8), measured(t, 0.8, func(f *sample.File) {
		f.Header.Plan.Loads[0].Streams = 4
	}))
	if len(r.Cells) != 0 || len(r.OnlyNew) != 2 || !slices.Equal(r.OnlyOld, r.OnlyNew) ||
		r.OnlyNew[0].Code != difference.OtherLoad || r.OnlyNew[0].Work[0] == r.OnlyNew[0].Work[1] {
		t.Errorf("%+v, only new %+v", r.Cells, r.OnlyNew)
	}
}

func TestOnlyOne(t *testing.T) {
	more := judgetest.New(t, append(judgetest.Trio(mode.Bridge, workload.Bulk),
		judgetest.HostCell(mode.Routed, workload.Bulk))...).
		Rounds(12, judgetest.Steady(40, 40, 32, 30)).File
	if r := judged(t, measured(t, 0.8), more); len(r.OnlyNew) != 1 ||
		r.OnlyNew[0].Label != "routed" || len(r.OnlyOld) != 0 {
		t.Errorf("%+v, %+v", r.OnlyOld, r.OnlyNew)
	}
	if r := judged(t, more, measured(t, 0.8)); len(r.OnlyOld) != 1 ||
		r.OnlyOld[0].Label != "routed" || len(r.OnlyNew) != 0 {
		t.Errorf("%+v, %+v", r.OnlyOld, r.OnlyNew)
	}
	failed := measured(t, 0.8, func(f *sample.File) {
		for i := range f.Visits {
			if f.Visits[i].Cell == 2 {
				f.Visits[i].Failure = "it broke"
			}
		}
	})
	if r := judged(t, measured(t, 0.8), failed); len(r.OnlyOld) != 1 ||
		r.OnlyOld[0].Code != difference.FailedNew {
		t.Errorf("%+v", r.OnlyOld)
	}
	if r := judged(t, failed, measured(t, 0.8)); len(r.OnlyNew) != 1 ||
		r.OnlyNew[0].Code != difference.FailedOld {
		t.Errorf("%+v", r.OnlyNew)
	}
	if r := judged(t, failed, failed); len(r.OnlyNew)+len(r.OnlyOld) != 0 {
		t.Errorf("%+v %+v", r.OnlyOld, r.OnlyNew)
	}
}

func TestIncomparable(t *testing.T) {
	for _, c := range []struct {
		change func(*sample.File)
		want   string
	}{
		{func(f *sample.File) {
			f.Header.Plan.Study = sample.StudyLadder
		}, "the old run is of the kind compare, the new one of the kind ladder"},
		{func(f *sample.File) {
			f.Header.Plan.Baseline = "native"
		}, "the old run's baseline is host, the new one's native, so their ratios cannot " +
			"be compared"},
		{func(f *sample.File) { f.Header.Plan.Mesh = &sample.Mesh{} },
			"a mesh has no rows to compare"},
	} {
		_, err := difference.Judge(difference.Input{File: measured(t, 0.8)},
			difference.Input{File: measured(t, 0.8, c.change)})
		if err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

// The report must not have values that JSON cannot represent.
func TestOddFiles(t *testing.T) {
	empty := measured(t, 0.8, func(f *sample.File) { f.Visits, f.Header.Paths = nil, nil })
	huge := measured(t, 0.8, func(f *sample.File) {
		for i := range f.Visits {
			f.Visits[i].Server.Received, f.Visits[i].Client.CPU = math.MaxInt64, 1e9
			f.Visits[i].Server.Window = 1e-6
		}
	})
	for _, pair := range [][2]*sample.File{{empty, empty}, {empty, measured(t, 1)},
		{measured(t, 1), huge}, {huge, measured(t, 1)}} {
		r := judged(t, pair[0], pair[1])
		r.FailAbove(0.05)
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
	}
}

func TestTraces(t *testing.T) {
	run := func(seed uint64, bridge float64) *sample.File {
		trip := judgetest.BridgeTrip()
		for i := range trip.Segments {
			if trip.Segments[i].Part == sample.PartBridge {
				trip.Segments[i].Micros += bridge / 2
			}
		}
		return judgetest.New(t, judgetest.Trio(mode.Bridge, workload.RR)...).Trace(seed, 5,
			[]judgetest.Trip{judgetest.HostTrip(), judgetest.HostTrip(), trip}).File
	}
	r := judged(t, run(1, 0), run(2, 1))
	if len(r.Traces) != 2 || r.Traces[0].Label != "bridge" || r.Traces[0].Refused != "" {
		t.Fatalf("%+v", r.Traces)
	}
	for _, p := range r.Traces[0].Parts {
		want := 0.0
		if p.Name == "bridge" || p.Name == "in the path" || p.Name == "untraced" {
			want = 1e-6
		}
		sure := !p.Sum && p.Name != "wake-ups"
		if p.Change.Low > want || p.Change.High < want ||
			sure && (p.Change.Verdict == stats.Costs) != (p.Name == "bridge") {
			t.Errorf("%s changes by %+v", p.Name, p.Change)
		}
	}
	lost := run(2, 1)
	for i := range lost.Visits {
		if x := lost.Visits[i].Trace; x != nil {
			x.Followed = 0
		}
	}
	if r := judged(t, run(1, 0), lost); len(r.Traces) != 2 ||
		r.Traces[0].Refused != trace.FewFollowed || r.Traces[0].Run != "new" ||
		r.Traces[0].Share != 0 {
		t.Errorf("%+v", r.Traces)
	}
}

// Every load has CPU time, each by a unit of its own.
func TestCPUTimeOfEveryLoadIsCompared(t *testing.T) {
	for _, w := range workload.All() {
		worse := difference.Metric{Ratio: &difference.Change{SureLow: 1.2, SureHigh: 1.3,
			Verdict: stats.Worse}}
		r := &difference.Report{Cells: []difference.Cell{{
			Cell: sample.Cell{Load: w.Name}, Primary: w.Primary,
			Metrics: map[string]difference.Metric{w.CPU(): worse, w.Primary: {}}}}}
		if r.FailAbove(0.05); len(r.Failing) != 1 || r.Failing[0].Metric != w.CPU() {
			t.Errorf("%s: failing %+v", w.Name, r.Failing)
		}
		if got := difference.Metrics(r.Cells[0]); len(got) != 2 || got[0] != w.Primary {
			t.Errorf("%s: %q", w.Name, got)
		}
	}
}

func TestFailAboveTakesTheWholeInterval(t *testing.T) {
	for _, c := range []struct {
		low, high    float64
		higher, want bool
	}{{0.8, 0.94, true, true}, {0.8, 0.96, true, false}, {1.06, 1.2, false, true},
		{1.04, 1.2, false, false}} {
		r := &difference.Report{Cells: []difference.Cell{{Primary: workload.LatencyP50,
			Metrics: map[string]difference.Metric{workload.LatencyP50: {Higher: c.higher,
				Ratio: &difference.Change{SureLow: c.low, SureHigh: c.high,
					Verdict: stats.Worse}}}}}}
		r.FailAbove(0.05)
		if got := len(r.Failing) > 0; got != c.want {
			t.Errorf("%+v: failing %+v", c, r.Failing)
		}
	}
}
