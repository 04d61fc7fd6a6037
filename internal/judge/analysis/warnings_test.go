package analysis_test

import (
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

// enough is a number of rounds that causes no warning: 10 × 2000 round trips.
const enough = 10

func calm(v *sample.Visit) { v.Client.CPU, v.Server.CPU = 0.5, 0.3 }

func TestNoWarnings(t *testing.T) {
	for _, load := range []string{"bulk", "rr"} {
		t.Run(load, func(t *testing.T) {
			r := analysis.Judge(judgetest.New(t, judgetest.Trio(mode.Bridge, load)...).Rounds(
				enough, judgetest.Steady(50, 50, 25), calm).File)
			if len(r.Warnings) != 0 {
				t.Errorf("warnings %+v", r.Warnings)
			}
			for _, c := range r.Cells {
				if len(c.Warnings) != 0 {
					t.Errorf("%s: %+v", c.Mode, c.Warnings)
				}
			}
		})
	}
}

func TestCellWarnings(t *testing.T) {
	two := func(round, cell int) float64 { return []float64{4, 8}[round%2] }
	for _, tt := range []struct {
		name   string
		load   string
		rounds int
		value  func(round, cell int) float64
		change func(*sample.Visit)
		want   []string
	}{
		{"few-rounds", "bulk", stats.MinValues - 1, judgetest.Steady(8, 8, 8), nil,
			[]string{"few-rounds"}},
		{"enough-rounds", "bulk", stats.MinValues, judgetest.Steady(8, 8, 8), nil, []string{}},
		{"bimodal", "bulk", enough, two, nil, []string{"bimodal"}},
		{"thin-tail-999", "rr", 6, judgetest.Steady(50, 50, 50), func(v *sample.Visit) {
			// 6 rounds of a sixth of the round trips that p99.9 needs, less one
			h := sample.NewHistogram()
			_ = h.RecordValues(50_000, 1666)
			v.Latency, _ = sample.Encode(h)
		}, []string{"thin-tail"}},
		{"no-thin-tail", "rr", 6, judgetest.Steady(50, 50, 50), nil, []string{}},
		{"late", "bulk", enough, judgetest.Steady(8, 8, 8), func(v *sample.Visit) {
			v.Server.Late = 0.06
		}, []string{"late"}},
		{"late-now-and-then", "bulk", enough, judgetest.Steady(8, 8, 8), func(v *sample.Visit) {
			if v.Round%2 == 0 {
				v.Client.Late = 0.06
			}
		}, []string{}},
		{"failed-visits", "bulk", enough, judgetest.Steady(8, 8, 8), func(v *sample.Visit) {
			v.Witness.OK = v.Round > 0
		}, []string{"failed-visits"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			change := []func(*sample.Visit){calm}
			if tt.change != nil {
				change = append(change, tt.change)
			}
			r := analysis.Judge(judgetest.New(t, judgetest.Trio(mode.Bridge, tt.load)...).Rounds(
				tt.rounds, tt.value, change...).File)
			c := judgetest.Find(t, r, mode.Bridge, tt.load)
			if got := judgetest.Codes(c.Warnings); !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestRunWarnings(t *testing.T) {
	valued := func(code string, x float64) analysis.Finding {
		return analysis.Finding{Code: code, Values: map[string]float64{code: x}}
	}
	during := sample.Contention{CPUs: 2, Others: new(1.87), Pressure: new(0.93), LoadAverage: 35}
	before := sample.Contention{CPUs: 2, Others: new(1.2), Stolen: 0.4}
	for _, tt := range []struct {
		name   string
		change func(*sample.Visit)
		file   func(*sample.File)
		want   []string
		found  analysis.Finding // the first; zero: only its code
	}{
		{name: "truncated", file: func(f *sample.File) {
			f.Truncated = true
		}, want: []string{"truncated"}},
		{name: "failure", file: func(f *sample.File) {
			f.End.Detail = "the disk is full"
		}, want: []string{"failure"},
			found: analysis.Finding{Code: analysis.Aborted, What: "the disk is full"}},
		{name: "steal", change: func(v *sample.Visit) {
			v.Machine[0].Steal = 0.06
		}, want: []string{"steal"}, found: valued(analysis.Steal, 0.03)},
		{name: "little-steal", change: func(v *sample.Visit) {
			v.Machine[0].Steal = 0.03
		}, want: []string{}},
		{name: "other-load", change: func(v *sample.Visit) {
			v.Client.CPU = 0.1
		}, want: []string{"other-load"}, found: valued(analysis.OtherLoad, 0.3)},
		{name: "busy", change: func(v *sample.Visit) {
			v.Client.CPU = 0.1
		}, file: func(f *sample.File) {
			f.End.Contention = &during
		}, want: []string{"busy"}, found: analysis.Finding{Code: analysis.Busy,
			What: analysis.DuringRun, Contention: &during}},
		{name: "busy-before", file: func(f *sample.File) {
			f.Header.Contention = &before
			f.End.Contention = &sample.Contention{CPUs: 2}
		}, want: []string{"busy"}, found: analysis.Finding{Code: analysis.Busy,
			What: analysis.AtStart, Contention: &before}},
		{name: "busy-only-before", file: func(f *sample.File) {
			f.Header.Contention = &sample.Contention{CPUs: 2, Others: new(1.9)}
			f.End.Contention = &sample.Contention{CPUs: 2, Others: new(0.1)}
		}, want: []string{}},
		{name: "kernel-work-of-a-mode-is-no-other-load", change: func(v *sample.Visit) {
			if v.Cell == 2 {
				v.Client.CPU = 0.1
			}
		}, want: []string{}},
		{name: "throttled", change: func(v *sample.Visit) {
			v.Throttled = v.Round % 2
		}, want: []string{"throttled"}, found: valued(analysis.Throttled, 15)},
		{name: "cgroup-limit", file: func(f *sample.File) {
			f.Header.Environment.CgroupCPUs = 1.5
		}, want: []string{"cgroup-limit"}, found: valued(analysis.CgroupLimit, 1.5)},
		{name: "wide-cgroup-limit", file: func(f *sample.File) {
			f.Header.Environment.CgroupCPUs = 2
		}, want: []string{}},
		{name: "paced", file: func(f *sample.File) {
			f.Header.Paths[0].Sysctls = map[string]string{"net.ipv4.tcp_congestion_control": "bbr"}
		}, want: []string{"paced"}, found: analysis.Finding{Code: analysis.Paced, What: "bbr",
			Why: analysis.ByFlag}},
		// Docker's containers get the machine's congestion control; --congestion is refused there.
		{name: "paced-on-docker", file: func(f *sample.File) {
			f.Header.Paths[0].Sysctls = map[string]string{"net.ipv4.tcp_congestion_control": "bbr"}
			for i := range f.Header.Plan.Cells {
				f.Header.Plan.Cells[i].On = "docker"
			}
			for i := range f.Header.Paths {
				f.Header.Paths[i].On = "docker"
			}
		}, want: []string{"paced"}, found: analysis.Finding{Code: analysis.Paced, What: "bbr",
			Why: analysis.ByMachine}},
		{name: "same-core", file: func(f *sample.File) {
			f.Header.Plan.CPUs.SameCore = true
		}, want: []string{"same-core"}},
		{name: "siblings", file: func(f *sample.File) {
			f.Header.Plan.Pin, f.Header.Plan.Pins = "far",
				[]sample.Pinning{{Name: sample.PinFar, CPUs: sample.CPUs{SameCore: true}}}
		}, want: []string{"same-core"}, found: analysis.Finding{Code: analysis.SameCore,
			What: analysis.SharedCore}},
		{name: "asked-for-one-cpu", file: func(f *sample.File) {
			f.Header.Plan.Pin, f.Header.Plan.Pins = "near",
				[]sample.Pinning{{Name: sample.PinNear, CPUs: sample.CPUs{SameCore: true}}}
		}, want: []string{}},
		{name: "no-far", file: func(f *sample.File) {
			f.Header.Plan.Pin, f.Header.Plan.Pins = "far,near",
				[]sample.Pinning{{Name: sample.PinNear, CPUs: sample.CPUs{SameCore: true}}}
		}, want: []string{"same-core"}, found: analysis.Finding{Code: analysis.SameCore,
			What: analysis.OnlyCPU}},
		{name: "one-cpu", change: func(v *sample.Visit) {
			v.Client.CPUs, v.Server.CPUs = nil, nil
			v.Machine = []sample.CPU{{User: 0.8, Idle: 0.2}}
		}, want: []string{"same-core"}},
		{name: "not-pinned", change: func(v *sample.Visit) {
			v.Client.CPUs, v.Server.CPUs = nil, nil
		}, want: []string{}},
		{name: "two-at-once", file: func(f *sample.File) {
			f.Truncated, f.Header.Plan.CPUs.SameCore = true, true
		},
			want: []string{"truncated", "same-core"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			change := []func(*sample.Visit){calm}
			if tt.change != nil {
				change = append(change, tt.change)
			}
			r := judgetest.New(t, judgetest.Trio(mode.Bridge, "bulk")...).Rounds(
				enough, judgetest.Steady(8, 8, 4), change...)
			if tt.file != nil {
				tt.file(r.File)
			}
			got := analysis.Judge(r.File)
			if c := judgetest.Codes(got.Warnings); !slices.Equal(c, tt.want) {
				t.Fatalf("got %v, want %v", c, tt.want)
			}
			if tt.found.Code != "" {
				wantFound(t, got.Warnings[:1], tt.found)
			}
		})
	}
}

func TestLimitedBy(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*sample.Visit)
		want   string
	}{
		{"nothing", func(v *sample.Visit) {}, ""},
		{"client", func(v *sample.Visit) { v.Client.BusiestCPU = 0.97 }, "client core"},
		{"server", func(v *sample.Visit) { v.Server.BusiestCPU = 0.97 }, "server core"},
		{"the-busier-end", func(v *sample.Visit) {
			v.Client.BusiestCPU, v.Server.BusiestCPU = 0.96, 0.99
		}, "server core"},
		{"proxy", func(v *sample.Visit) { v.Proxy = &sample.ProxyUse{CPU: 0.92} }, "proxy"},
		{"proxy-not-quite", func(v *sample.Visit) { v.Proxy = &sample.ProxyUse{CPU: 0.85} }, ""},
		{"client-before-proxy", func(v *sample.Visit) {
			v.Proxy, v.Client.BusiestCPU = &sample.ProxyUse{CPU: 1.5}, 0.99
		}, "client core"},
		{"softirq", func(v *sample.Visit) {
			v.Machine[1] = sample.CPU{SoftIRQ: 0.93, Idle: 0.07}
		}, "softirq core"},
		{"all", func(v *sample.Visit) {
			v.Machine = []sample.CPU{{User: 0.98}, {System: 0.97}}
		}, "all cores"},
		{"now-and-then", func(v *sample.Visit) {
			if v.Round%2 == 0 {
				v.Client.BusiestCPU = 1
			}
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := analysis.Judge(judgetest.New(t, judgetest.Trio(mode.Bridge, "bulk")...).Rounds(
				6, judgetest.Steady(8, 8, 4), tt.change).File)
			if got := judgetest.Find(t, r, mode.Bridge, "bulk").LimitedBy; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestFewRounds(t *testing.T) {
	for rounds := 1; rounds < stats.MinValues; rounds++ {
		r := analysis.Judge(judgetest.New(t, judgetest.Trio(mode.Bridge, "bulk")...).Rounds(
			rounds, judgetest.Steady(8, 8, 8)).File)
		if got := r.Cells[0].Warnings; len(got) != 1 || got[0].Code != analysis.FewRounds ||
			got[0].Found.N != rounds {
			t.Errorf("%d rounds: %+v", rounds, got)
		}
	}
}
