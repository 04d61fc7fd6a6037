package analysis_test

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

func TestMetrics(t *testing.T) {
	counted := func(v *sample.Visit) {
		v.Client.TCP = sample.TCPInfo{Retransmits: 3, RTT: 50e-6, Cwnd: 40}
		v.Server.TCP = sample.TCPInfo{Retransmits: 4, RTT: 70e-6, Cwnd: 10}
		v.Client.Involuntary, v.Server.Involuntary = 5, 6
	}
	const rate, busy = 8e9, 0.8 // bit/s, CPUs
	for _, tt := range []struct {
		name string
		load string
		x    float64
		want map[string]analysis.Metric
	}{
		{"bulk", "bulk", 8, map[string]analysis.Metric{
			workload.Throughput:  {Unit: "bit/s", Median: rate},
			workload.CPUPerByte:  {Unit: "s/B", Median: busy / 1e9},
			workload.PerBusyCore: {Unit: "bit/s", Median: rate / busy},
			workload.Retransmits: {Unit: "segments", Median: 7},
			workload.RTT:         {Unit: "s", Median: 50e-6},
			workload.Cwnd:        {Unit: "segments", Median: 40},
			workload.Involuntary: {Unit: "switches", Median: 11},
		}},
		{"rr", "rr", 60, map[string]analysis.Metric{
			workload.LatencyP50:   {Unit: "s", Median: 60e-6},
			workload.LatencyP90:   {Unit: "s", Median: 60e-6},
			workload.LatencyP99:   {Unit: "s", Median: 60e-6},
			workload.LatencyP999:  {Unit: "s", Median: 60e-6},
			workload.LatencyMax:   {Unit: "s", Median: 60e-6},
			workload.Transactions: {Unit: "1/s", Median: judgetest.TripsPerVisit},
			workload.CPUPerTrip:   {Unit: "s", Median: busy / judgetest.TripsPerVisit},
			workload.Retransmits:  {Unit: "segments", Median: 7},
			workload.RTT:          {Unit: "s", Median: 50e-6},
			workload.Cwnd:         {Unit: "segments", Median: 40},
			workload.Involuntary:  {Unit: "switches", Median: 11},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := analysis.Judge(judgetest.New(t, judgetest.Trio(mode.Bridge, tt.load)...).Rounds(
				6, judgetest.Steady(tt.x, tt.x, tt.x), counted).File)
			c := judgetest.Find(t, r, mode.Bridge, tt.load)
			for name, want := range tt.want {
				m := c.Metrics[name]
				if m.Unit != want.Unit || !judgetest.Near(m.Median, want.Median) ||
					!judgetest.Near(m.Low, want.Median) || !judgetest.Near(m.High, want.Median) {
					t.Errorf("%s: got %+v, want %v %s", name, m, want.Median, want.Unit)
				}
				if len(m.Rounds) != 6 {
					t.Errorf("%s: rounds %v", name, m.Rounds)
				}
				if tail := strings.HasPrefix(name, "latency_") && name != workload.LatencyP50; (m.Merged != nil) != tail {
					t.Errorf("%s: merged %v", name, m.Merged)
				}
			}
			for name := range c.Metrics {
				if _, ok := tt.want[name]; !ok {
					t.Errorf("unexpected metric %s", name)
				}
			}
		})
	}
}

func TestMergedPercentile(t *testing.T) {
	r := judgetest.New(t, judgetest.Trio(mode.Bridge, "rr")...)
	r.Rounds(5, func(round, cell int) float64 { return []float64{10, 20, 30, 40, 500}[round] })
	m := judgetest.Find(t, analysis.Judge(r.File), mode.Bridge, "rr").Metrics[workload.LatencyP90]
	if !judgetest.Near(m.Median, 30e-6) || !judgetest.Near(*m.Merged, 500e-6) {
		t.Errorf("median over rounds %v, merged %v; want 30 µs and 500 µs", m.Median, *m.Merged)
	}
}

func TestHeadOfReport(t *testing.T) {
	r := judgetest.New(t, judgetest.Trio(mode.Bridge, "bulk")...)
	r.File.Header.Environment = sample.Environment{Kernel: "6.18", CPUs: 2}
	r.File.Header.Plan.Pin = "auto"
	skip := sample.Skip{Mode: "shared", From: "host", Reason: "no such path",
		Remedy: "--from container"}
	r.File.Header.Plan.Skipped = []sample.Skip{skip}
	r.File.Header.Paths[1].Facts = map[string]string{"rules": "Docker Engine 28"}
	r.Rounds(6, judgetest.Steady(8, 8, 4))
	got := analysis.Judge(r.File)
	p := got.Plan
	if got.Schema != analysis.Schema || got.Environment.Kernel != "6.18" || p.Seed != 1 ||
		p.Rounds != 6 || p.Window != 1 || p.Baseline != "host" ||
		p.EndedBy != "rounds" || p.Elapsed != 12 || p.Budget != 60 || p.Precision != 0.02 ||
		p.Pin != "auto" || len(p.Loads) != 2 {
		t.Errorf("schema %s, plan %+v", got.Schema, p)
	}
	if len(got.Skipped) != 1 || got.Skipped[0] != skip {
		t.Errorf("skipped %+v", got.Skipped)
	}
	c := judgetest.Find(t, got, mode.Bridge, "bulk")
	if !slices.Equal(c.Hops, []string{"bridge", "veth"}) || !c.Witnessed || c.Baseline ||
		c.Facts["rules"] != "Docker Engine 28" {
		t.Errorf("cell %+v", c)
	}
	if base := judgetest.Find(t, got, mode.Host, "bulk"); !base.Baseline ||
		base.Metrics[workload.Throughput].Ratio != nil {
		t.Errorf("baseline %+v", base)
	}
	for _, c := range got.Cells {
		if c.Mode == "host" && !c.Baseline {
			t.Error("the control is listed as a cell")
		}
	}
}

// A machine that drifts by a factor of three changes medians, not ratios.
func TestPairingByRound(t *testing.T) {
	drift := func(round int) float64 { return 1 + 0.5*float64(round) }
	for _, tt := range []struct {
		load    string
		metric  string
		verdict stats.Verdict
		value   [3]float64
		want    float64
	}{
		{"bulk", workload.Throughput, stats.Worse, [3]float64{8, 8, 4}, 0.5},
		{"rr", workload.LatencyP50, stats.Worse, [3]float64{32, 32, 64}, 2},
	} {
		t.Run(tt.load, func(t *testing.T) {
			r := judgetest.New(t, judgetest.Trio(mode.Bridge, tt.load)...)
			r.Rounds(5, func(round, cell int) float64 { return drift(round) * tt.value[cell] })
			x := judgetest.Find(t, analysis.Judge(r.File), mode.Bridge,
				tt.load).Metrics[tt.metric].Ratio
			if x == nil || x.To != "host" || x.N != 5 || !judgetest.Near(x.Median, tt.want) ||
				!judgetest.Near(x.Low, tt.want) || !judgetest.Near(x.High, tt.want) ||
				x.Verdict != tt.verdict {
				t.Errorf("ratio %+v, want %v exactly and %s", x, tt.want, tt.verdict)
			}
		})
	}
}

func TestPairingLeavesHolesOut(t *testing.T) {
	r := judgetest.New(t, judgetest.Trio(mode.Bridge, "bulk")...)
	for round := range 8 {
		r.Visit(round, 0, 8)
		r.Visit(round, 1, 8)
		if round%2 == 0 {
			r.Visit(round, 2, 2)
		}
	}
	r.Visit(8, 2, 800)
	m := judgetest.Find(t, analysis.Judge(r.File), mode.Bridge, "bulk").Metrics[workload.Throughput]
	if m.Ratio.N != 4 || m.Ratio.Median != 0.25 || len(m.Rounds) != 5 {
		t.Errorf("ratio %+v, rounds %v", m.Ratio, m.Rounds)
	}
}

func TestVerdicts(t *testing.T) {
	none, tenth := []float64{0, 0, 0}, []float64{0, 0.1, 0}
	for _, tt := range []struct {
		name   string
		load   string
		rounds int
		value  func(round, cell int) float64
		want   stats.Verdict
	}{
		{"bulk-half", "bulk", 6, judgetest.Steady(8, 8, 4), stats.Worse},
		{"bulk-double", "bulk", 6, judgetest.Steady(8, 8, 16), stats.Better},
		{"bulk-equal", "bulk", 6, judgetest.Steady(8, 8, 8), stats.Same},
		{"rr-half", "rr", 6, judgetest.Steady(50, 50, 25), stats.Better},
		{"rr-double", "rr", 6, judgetest.Steady(50, 50, 100), stats.Worse},
		{"rr-equal", "rr", 6, judgetest.Steady(50, 50, 50), stats.Same},
		{"below-precision", "bulk", 6, judgetest.Steady(8, 8, 7.9), stats.Worse},
		{"within-the-floor", "bulk", 8, judgetest.Noisy(tenth, 8, 8, 7.6), stats.Same},
		{"across-the-floor", "bulk", 8, judgetest.Noisy([]float64{0, 0.05, 0.3}, 8, 8, 6.8),
			stats.Unclear},
		{"beyond-the-floor", "bulk", 8, judgetest.Noisy(tenth, 8, 8, 4), stats.Worse},
		{"few-rounds", "bulk", stats.MinJudged - 1, judgetest.Steady(8, 8, 4), stats.Unclear},
		{"enough-rounds", "bulk", stats.MinJudged, judgetest.Noisy(none, 8, 8, 4), stats.Worse},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := analysis.Judge(judgetest.New(t, judgetest.Trio(mode.Bridge, tt.load)...).Rounds(
				tt.rounds, tt.value).File)
			x := judgetest.Find(t, r, mode.Bridge,
				tt.load).Metrics[analysis.Primary(sample.Load{Kind: tt.load})].Ratio
			if x == nil || x.Verdict != tt.want {
				t.Errorf("ratio %+v, want %s; floors %+v", x, tt.want, r.Control.Groups)
			}
		})
	}
}

func TestVerdictTakesAControl(t *testing.T) {
	r := analysis.Judge(judgetest.New(t, judgetest.HostCell(mode.Host, "bulk"),
		judgetest.HostCell(mode.Bridge, "bulk")).Rounds(6, judgetest.Steady(8, 4)).File)
	if x := judgetest.Find(t, r, mode.Bridge, "bulk").Metrics[workload.Throughput].Ratio; x == nil || x.Verdict != stats.Unclear || x.Median != 0.5 {
		t.Errorf("ratio without a control: %+v", x)
	}
	if len(r.Control.Groups) != 0 {
		t.Errorf("control %+v", r.Control)
	}
}

func TestNoiseFloor(t *testing.T) {
	base, remote := judgetest.HostCell(mode.Host, "bulk"),
		judgetest.Cell(mode.Host, mode.FromRemote, mode.ToAddress, "bulk")
	r := judgetest.New(t, base, judgetest.Control(base), remote, judgetest.Control(remote))
	r.Rounds(8, judgetest.Noisy([]float64{0, 0.05, 0, 0.2}, 8, 8, 8, 8))
	got := analysis.Judge(r.File).Control
	if got.Mode != "host" || len(got.Groups) != 2 {
		t.Fatalf("control %+v", got)
	}
	for i, want := range []struct {
		from  string
		floor float64
	}{{"host", 0.05}, {"remote", 0.2}} {
		g := got.Groups[i]
		if g.From != want.from || g.Load != "bulk" || g.On != "lab" ||
			math.Abs(g.Floor[workload.Throughput]-want.floor) > 1e-6 {
			t.Errorf("group %d: %+v, want %v of throughput from %s", i, g, want.floor, want.from)
		}
	}
}

func TestSortByToll(t *testing.T) {
	cells := func(load string) []sample.Cell {
		return append(judgetest.Trio(mode.Bridge, load), judgetest.HostCell(mode.Native, load),
			judgetest.HostCell(mode.PublishNAT, load), judgetest.HostCell(mode.PublishProxy, load))
	}
	for _, tt := range []struct {
		name, load string
		value      []float64
		want       string
	}{
		{"bulk", "bulk", []float64{8, 8, 4, 9, 2, 6},
			"host native publish-proxy bridge publish-nat"},
		{"rr", "rr", []float64{50, 50, 70, 49, 60, 90},
			"host native publish-nat bridge publish-proxy"},
		{"ties", "bulk", []float64{8, 8, 4, 4, 4, 4},
			"host bridge native publish-nat publish-proxy"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := analysis.Judge(judgetest.New(t, cells(tt.load)...).Rounds(
				6, judgetest.Steady(tt.value...)).File)
			var got []string
			for _, c := range r.Cells {
				got = append(got, string(c.Mode))
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("got %v, want %s", got, tt.want)
			}
		})
	}
	t.Run("groups-and-no-ratio", func(t *testing.T) {
		r := judgetest.New(t, append(judgetest.Trio(mode.Bridge, "rr"),
			judgetest.Trio(mode.Native, "bulk")...)...)
		for round := range 6 {
			for i, x := range []float64{50, 50, 60, 8, 8, 7} {
				if i == 2 {
					r.Visit(round+6, i, x)
					continue
				}
				r.Visit(round, i, x)
			}
		}
		var got []string
		for _, c := range analysis.Judge(r.File).Cells {
			got = append(got, string(c.Mode)+" "+c.Load)
		}
		if want := []string{"host rr", "bridge rr", "host bulk", "native bulk"}; !slices.Equal(got,
			want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestBadVisitsAreLeftOut(t *testing.T) {
	r := judgetest.New(t, judgetest.Trio(mode.Bridge, "bulk")...).Rounds(
		12, judgetest.Steady(8, 8, 4))
	for i := range r.File.Visits {
		if v := &r.File.Visits[i]; v.Cell == 2 && v.Round < 2 {
			v.Server.Received, v.Client.CPU = 1<<40, 9
			v.Witness.OK = v.Round == 1
			if v.Round == 1 {
				v.Failure = "server: it died"
			}
		}
	}
	got := analysis.Judge(r.File)
	c := judgetest.Find(t, got, mode.Bridge, "bulk")
	if m := c.Metrics[workload.Throughput]; m.Median != 4e9 || len(m.Rounds) != 10 ||
		m.Ratio.N != 10 || !judgetest.Near(c.CPU.Client, 0.8e-9) {
		t.Errorf("metric %+v, CPU %+v", m, c.CPU)
	}
	if i := slices.IndexFunc(c.Warnings, func(w analysis.Warning) bool {
		return w.Code == analysis.FailedVisits
	}); i < 0 || c.Warnings[i].Found.N != 2 || c.Warnings[i].Found.Of != 12 {
		t.Errorf("warnings %+v", c.Warnings)
	}
	if len(got.Failed) != 0 {
		t.Errorf("failed %+v", got.Failed)
	}
}

func TestBaselineIsMissing(t *testing.T) {
	t.Run("no-route", func(t *testing.T) {
		base := judgetest.HostCell(mode.Native, "bulk")
		r := judgetest.New(t, base, judgetest.Control(base),
			judgetest.HostCell(mode.Bridge, "bulk"),
			judgetest.Cell(mode.Bridge, mode.FromContainer, mode.ToContainer, "bulk"))
		r.File.Header.Plan.Baseline = string(mode.Native)
		got := analysis.Judge(r.Rounds(6, judgetest.Steady(8, 8, 4, 3)).File)
		for _, c := range got.Cells {
			x := c.Metrics[workload.Throughput].Ratio
			if has := x != nil; has != (c.From == "host" && !c.Baseline) {
				t.Errorf("%s from %s has the ratio %+v", c.Mode, c.From, x)
			}
		}
		wantFound(t, got.Warnings,
			analysis.Finding{Code: analysis.NoBaseline, From: mode.FromContainer,
				Load: "bulk", What: "native", Why: analysis.Unreachable})
	})
	t.Run("no-good-visit", func(t *testing.T) {
		r := judgetest.New(t, judgetest.Trio(mode.Bridge, "bulk")...)
		for round := range 6 {
			r.Visit(round, 0, 8, func(v *sample.Visit) { v.Failure = "refused" })
			r.Visit(round, 1, 8)
			r.Visit(round, 2, 4)
		}
		got := analysis.Judge(r.File)
		if x := judgetest.Find(t, got, mode.Bridge, "bulk").Metrics[workload.Throughput].Ratio; x != nil {
			t.Errorf("ratio %+v", x)
		}
		wantFound(t, got.Warnings, analysis.Finding{Code: analysis.NoBaseline, From: mode.FromHost,
			Load: "bulk", What: "host", Why: analysis.NoResult})
	})
	t.Run("in-one-placement", func(t *testing.T) {
		var cells []sample.Cell
		for _, pin := range []string{sample.PinFar, sample.PinNear} {
			for _, c := range judgetest.Trio(mode.Bridge, "bulk") {
				c.Pin = pin
				cells = append(cells, c)
			}
		}
		r := judgetest.New(t, cells...)
		r.File.Header.Plan.Pins = []sample.Pinning{{Name: sample.PinFar}, {Name: sample.PinNear}}
		for round := range 6 {
			r.Visit(round, 0, 8, func(v *sample.Visit) { v.Failure = "refused" })
			for cell := 1; cell < len(cells); cell++ {
				r.Visit(round, cell, 8)
			}
		}
		wantFound(t, analysis.Judge(r.File).Warnings, analysis.Finding{Code: analysis.NoBaseline,
			From: mode.FromHost, Load: "bulk", Pin: sample.PinFar, What: "host",
			Why: analysis.NoResult})
	})
}

func wantFound(t *testing.T, ws []analysis.Warning, want analysis.Finding) {
	t.Helper()
	got := judgetest.Found(t, ws, want.Code)
	for name, x := range got.Values {
		if judgetest.Near(x, want.Values[name]) {
			got.Values[name] = want.Values[name]
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestReverseBulk(t *testing.T) {
	r := judgetest.New(t, judgetest.Trio(mode.Bridge, "bulk")...)
	r.File.Header.Plan.Loads[0].Options = sample.BulkOptions{Reverse: true}
	r.Rounds(6, judgetest.Steady(8, 8, 4), func(v *sample.Visit) {
		v.Server.Sent, v.Client.Received = v.Server.Received, v.Server.Received
		v.Client.Sent, v.Server.Received = 0, 1
		v.Client.TCP.Cwnd, v.Server.TCP.Cwnd = 10, 99
	})
	c := judgetest.Find(t, analysis.Judge(r.File), mode.Bridge, "bulk")
	if m := c.Metrics[workload.Throughput]; m.Median != 4e9 || m.Ratio.Median != 0.5 {
		t.Errorf("throughput %+v", m)
	}
	if m := c.Metrics[workload.Cwnd]; m.Median != 99 {
		t.Errorf("cwnd %+v, want the sender's", m)
	}
}

func TestCPUSplit(t *testing.T) {
	r := judgetest.New(t, judgetest.Trio(mode.PublishProxy, "bulk")...)
	r.Rounds(6, judgetest.Steady(8, 8, 4), func(v *sample.Visit) {
		v.Elapsed = 0.5
		v.Client.CPU, v.Server.CPU = 0.1, 0.05
		if v.Cell == 2 {
			v.Proxy = &sample.ProxyUse{Name: "docker-proxy", CPU: 0.3}
		}
	})
	got := analysis.Judge(r.File)
	for _, tt := range []struct {
		mode mode.Name
		want analysis.CPUSplit
	}{
		{mode.Host, analysis.CPUSplit{Unit: "s/B", Client: 0.1e-9, Server: 0.05e-9, Rest: 0.65e-9}},
		{mode.PublishProxy, analysis.CPUSplit{
			Unit: "s/B", Client: 0.2e-9, Server: 0.1e-9, Proxy: 0.6e-9, Rest: 0.7e-9}},
	} {
		t.Run(string(tt.mode), func(t *testing.T) {
			c := judgetest.Find(t, got, tt.mode, "bulk").CPU
			if c.Unit != tt.want.Unit || !judgetest.Near(c.Client, tt.want.Client) ||
				!judgetest.Near(c.Server, tt.want.Server) ||
				!judgetest.Near(c.Proxy, tt.want.Proxy) || !judgetest.Near(c.Rest, tt.want.Rest) {
				t.Errorf("got %+v, want %+v", c, tt.want)
			}
		})
	}
	t.Run("rest-is-never-negative", func(t *testing.T) {
		r := judgetest.New(t, judgetest.Trio(mode.Bridge, "bulk")...).Rounds(
			6, judgetest.Steady(8, 8, 4), func(v *sample.Visit) {
				v.Client.CPU = 1.9
			})
		if c := judgetest.Find(t, analysis.Judge(r.File), mode.Bridge, "bulk").CPU; c.Rest != 0 {
			t.Errorf("got %+v", c)
		}
	})
	t.Run("no-clock", func(t *testing.T) {
		r := judgetest.New(t, judgetest.Trio(mode.Bridge, "bulk")...).Rounds(
			6, judgetest.Steady(8, 8, 4), func(v *sample.Visit) {
				v.Elapsed = 0
			})
		c := judgetest.Find(t, analysis.Judge(r.File), mode.Bridge, "bulk")
		if _, ok := c.Metrics[workload.CPUPerByte]; ok {
			t.Errorf("CPU per byte %t", ok)
		}
	})
}

func TestRatioString(t *testing.T) {
	for _, tt := range []struct {
		name string
		r    analysis.Ratio
		want string
	}{
		{"even", analysis.Ratio{Median: 0.5, Low: 0.45, High: 0.55, N: 6}, "50 % (45–55)"},
		{"uneven-shows-both-sides", analysis.Ratio{Median: 1, Low: 0.99, High: 1.5, N: 6},
			"100 % (99–150)"},
		{"large", analysis.Ratio{Median: 12.34, Low: 11.11, High: 12.96, N: 6}, "12× (11–13)"},
		{"one-round", analysis.Ratio{Median: 2, Low: 2, High: 2, N: 1}, "200 % ±?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.r.String(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestLabel(t *testing.T) {
	for _, tt := range []struct {
		c    analysis.Cell
		want string
	}{
		{analysis.Cell{Cell: sample.Cell{Mode: "bridge", From: "host", To: "container"}}, "bridge"},
		{analysis.Cell{Cell: sample.Cell{Mode: "publish-nat", From: "host", To: "address"}},
			"publish-nat :addr"},
		{analysis.Cell{Cell: sample.Cell{Mode: "of-a-later-version", From: "host", To: "loopback"}},
			"of-a-later-version"},
	} {
		t.Run(string(tt.c.Mode), func(t *testing.T) {
			if got := tt.c.Label(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
