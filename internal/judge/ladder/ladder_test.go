package ladder

import (
	"fmt"
	"maps"
	"math"
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

func chain(p mode.Placement, to mode.Name, loads ...string) []sample.Cell {
	var cells []sample.Cell
	for _, load := range loads {
		for i, r := range mode.Climb(p, "", []mode.Name{to}) {
			c := judgetest.Cell(r.Mode, p, r.To, load)
			if cells = append(cells, c); i == 0 {
				cells = append(cells, judgetest.Control(c))
			}
		}
	}
	return cells
}

func TestStepsOutward(t *testing.T) {
	var cells []sample.Cell
	for i, r := range mode.Climb(mode.FromContainer, mode.ToOutside, []mode.Name{mode.Bridge}) {
		c := judgetest.Cell(r.Mode, mode.FromContainer, r.To, "rr")
		if cells = append(cells, c); i == 0 {
			cells = append(cells, judgetest.Control(c))
		}
	}
	// host, its control, pipework, bridge-default, bridge
	r := Judge(newLadderRun(t, cells...).Rounds(8, judgetest.Steady(20, 20, 24, 27, 29)).File)
	s := step(t, r, mode.BridgeDefault)
	if s.Label != "bridge-default :out" || s.Below != "pipework :out" || s.To != "outside" ||
		!strings.HasPrefix(s.Part, "routing and NAT of the container's address") ||
		s.Way() != "another container to outside" ||
		math.Round(1e6*s.Prices[workload.LatencyP50].Median) != 3 {
		t.Errorf("step %+v", s)
	}
	if len(r.Steps) != 4 || r.Steps[0].Mode != "host" {
		t.Errorf("steps %+v", r.Steps)
	}
}

func newLadderRun(t *testing.T, cells ...sample.Cell) *judgetest.Run {
	t.Helper()
	r := judgetest.New(t, cells...)
	r.File.Header.Plan.Study, r.File.Header.Plan.Baseline = sample.StudyLadder, cells[0].Name()
	return r
}

func step(t *testing.T, r *Report, m mode.Name) Step {
	t.Helper()
	for _, s := range r.Steps {
		if s.Mode == m {
			return s
		}
	}
	t.Fatalf("no step %s among %+v", m, r.Steps)
	return Step{}
}

func TestSteps(t *testing.T) {
	cells := chain(mode.FromHost, mode.PublishProxy, "rr", "bulk")
	// native, its control, host, bridge-default, bridge, publish-nat, publish-proxy
	r := Judge(newLadderRun(t, cells...).Rounds(
		8, judgetest.Steady(20, 20, 20, 30, 30, 33, 60, 8, 8, 8, 8, 8, 4, 4),
		func(v *sample.Visit) {
			if v.Cell == 6 { // needs half a CPU more
				v.Machine[1].User = 0.5
			}
		}).File)
	if len(r.Steps) != 6 || r.Steps[0].Mode != "native" || r.Steps[5].Mode != "publish-proxy" {
		t.Fatalf("steps %+v", r.Steps)
	}
	if s := r.Steps[0]; s.Below != "" || s.Part != "" || s.Prices == nil || len(s.Prices) > 0 {
		t.Errorf("the bottom: %+v", s)
	}
	proxy := step(t, r, mode.PublishProxy)
	if proxy.Label != "publish-proxy :lo" || proxy.Below != "publish-nat :lo" ||
		proxy.Part != "docker-proxy instead of NAT" ||
		proxy.From != "host" || proxy.To != "loopback" || proxy.On != "lab" {
		t.Errorf("step %+v", proxy)
	}
	for _, tt := range []struct {
		of     mode.Name
		metric string
		want   analysis.Price
	}{
		{mode.Host, workload.LatencyP50, analysis.Price{Unit: "s", Verdict: stats.Nothing}},
		{mode.Host, workload.Throughput, analysis.Price{
			Unit: "ratio", Median: 1, Verdict: stats.Nothing}},
		{mode.BridgeDefault, workload.LatencyP50,
			analysis.Price{Unit: "s", Median: 10e-6, Verdict: stats.Costs}},
		{mode.Bridge, workload.LatencyP50, analysis.Price{Unit: "s", Verdict: stats.Nothing}},
		{mode.PublishNAT, workload.LatencyP50,
			analysis.Price{Unit: "s", Median: 3e-6, Verdict: stats.Costs}},
		{mode.PublishNAT, workload.Throughput,
			analysis.Price{Unit: "ratio", Median: 0.5, Verdict: stats.Costs}},
		{mode.PublishNAT, workload.CPUPerByte,
			analysis.Price{Unit: "s/B", Median: 0.8e-9, Verdict: stats.Costs}},
		{mode.PublishProxy, workload.LatencyP50,
			analysis.Price{Unit: "s", Median: 27e-6, Verdict: stats.Costs}},
		{mode.PublishProxy, workload.CPUPerTrip,
			analysis.Price{Unit: "s", Median: 0.5 / judgetest.TripsPerVisit, Verdict: stats.Costs}},
		{mode.PublishProxy, workload.CPUPerByte,
			analysis.Price{Unit: "s/B", Verdict: stats.Nothing}},
	} {
		t.Run(string(tt.of)+"-"+tt.metric, func(t *testing.T) {
			got, ok := step(t, r, tt.of).Prices[tt.metric]
			apart := math.Abs(got.Median-tt.want.Median) + got.High - got.Low
			if !ok || got.Unit != tt.want.Unit || apart > 4e-3*math.Abs(tt.want.Median) ||
				got.Verdict != tt.want.Verdict || got.N != 8 {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
	label := func(i int) string { return r.Steps[i].Label }
	sums, free := map[string]string{}, map[string][]string{}
	for _, f := range r.Found {
		switch f.Code {
		case Sum:
			sums[f.What] = fmt.Sprintf("%s over %s: %.3g", label(f.Rows[len(f.Rows)-1]),
				r.Steps[f.Rows[0]].Below, f.Prices[0].Median)
		case Free:
			for _, i := range f.Rows {
				free[f.What] = append(free[f.What], label(i))
			}
		}
	}
	wantSums := map[string]string{workload.LatencyP50: "publish-proxy :lo over native: 4e-05",
		workload.CPUPerByte: "publish-proxy :lo over native: 8e-10"}
	if !maps.Equal(sums, wantSums) {
		t.Errorf("sums %q, want %q", sums, wantSums)
	}
	for metric, want := range map[string][]string{workload.LatencyP50: {"host", "bridge"},
		workload.Throughput: {"host", "bridge-default"}} {
		if got := free[metric]; len(got) < 2 || !slices.Equal(got[:2], want) {
			t.Errorf("%s: %q cost nothing, want %q", metric, got, want)
		}
	}
}

func TestStepsPairByRound(t *testing.T) {
	r := newLadderRun(t, chain(mode.FromHost, mode.Host, "bulk")...)
	r.Rounds(8, func(round, cell int) float64 {
		return float64(1+round) * []float64{8, 8, 6}[cell]
	})
	if p := step(t, Judge(r.File), mode.Host).Prices[workload.Throughput]; !judgetest.Near(p.Low,
		0.75) || !judgetest.Near(p.High, 0.75) || p.Verdict != stats.Costs {
		t.Errorf("price %+v", p)
	}
}

// The rung after a gap is priced with both parts, and for all loads relative to the same rung.
func TestStepsOverGaps(t *testing.T) {
	const both = "a network namespace of its own, with a veth pair on a bridge, and connection " +
		"tracking in each container for the rules of Docker's DNS server, " +
		"and NAT of a published port instead of the container's address"
	for _, tt := range []struct {
		name string
		cell func(i int) bool
	}{
		{"every-load", func(i int) bool { return i == 3 || i == 4 || i == 10 || i == 11 }},
		{"one-load", func(i int) bool { return i == 10 || i == 11 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newLadderRun(t, chain(mode.FromHost, mode.PublishProxy, "rr", "bulk")...)
			r.Rounds(6, judgetest.Steady(20, 20, 20, 30, 30, 33, 60, 8, 8, 8, 8, 8, 4, 4),
				func(v *sample.Visit) {
					v.Witness.OK = !tt.cell(v.Cell)
				})
			s := step(t, Judge(r.File), mode.PublishNAT)
			if s.Below != "host" || s.Part != both || len(s.Prices) != 4 ||
				!judgetest.Near(s.Prices[workload.LatencyP50].Median, 13e-6) {
				t.Errorf("step %+v", s)
			}
		})
	}
	t.Run("not-built", func(t *testing.T) {
		cells := chain(mode.FromRemote, mode.IPvlanL2, "rr")
		s := step(t, Judge(newLadderRun(t, append(cells[:3], cells[4:]...)...).Rounds(
			6, judgetest.Steady(20, 20, 20, 30)).File), mode.IPvlanL2)
		if s.Below != "host" || !strings.HasPrefix(s.Part,
			"a network namespace of its own, on a macvlan sub-interface") ||
			!strings.HasSuffix(
				s.Part, ", and ipvlan instead of macvlan: the card's own MAC address") {
			t.Errorf("step %+v", s)
		}
	})
	t.Run("no-bottom", func(t *testing.T) {
		r := newLadderRun(t, chain(mode.FromHost, mode.Host, "rr")...)
		r.Rounds(6, judgetest.Steady(20, 20, 20), func(v *sample.Visit) {
			v.Witness.OK = v.Cell > 1
		})
		if s := Judge(r.File).Steps; len(s) != 1 || s[0].Below != "" || len(s[0].Prices) > 0 {
			t.Errorf("steps %+v", s)
		}
	})
}

// Two rungs that fill the wire are equally fast, which is no evidence about the part. A rung that
// does not fill it is certainly slower.
func TestStepsOverAFullWire(t *testing.T) {
	// native, control, host, routed, publish-nat
	cells := chain(mode.FromRemote, mode.PublishNAT, "bulk")
	r := newLadderRun(t, cells...)
	r.File.Header.Plan.Wire = &sample.Wire{Rate: 10e9}
	got := Judge(r.Rounds(6, judgetest.Steady(9.4, 9.4, 9.4, 9.4, 5)).File)
	if p := step(t, got, mode.Routed).Prices[workload.Throughput]; p.LimitedBy != "wire" ||
		p.Verdict != stats.Unclear || p.String() != "wire full" {
		t.Errorf("price %+v", p)
	}
	if p := step(t, got, mode.Routed).Prices[workload.CPUPerByte]; p.LimitedBy != "" ||
		p.Verdict != stats.Nothing {
		t.Errorf("CPU price %+v", p)
	}
	if p := step(t, got, mode.PublishNAT).Prices[workload.Throughput]; p.LimitedBy != "" ||
		p.Verdict != stats.Costs {
		t.Errorf("price %+v", p)
	}
	if i := slices.IndexFunc(got.Found, func(f analysis.Finding) bool { return f.Code == Hidden }); i < 0 ||
		got.Found[i].Why != "wire" || !slices.Equal(got.Found[i].Rows, []int{1, 2}) {
		t.Errorf("findings %+v", got.Found)
	}
}

func TestPriceString(t *testing.T) {
	us := func(median, low, high float64, v stats.Verdict) analysis.Price {
		return analysis.Price{Unit: "s", Median: median * 1e-6, Low: low * 1e-6, High: high * 1e-6,
			N: 9, Verdict: v}
	}
	ratio := func(median, low, high float64, v stats.Verdict) analysis.Price {
		return analysis.Price{Unit: "ratio", Median: median, Low: low, High: high, N: 9, Verdict: v}
	}
	once := us(51.107, 51.107, 51.107, stats.Unclear)
	once.N = 1
	for _, tt := range []struct {
		name string
		p    analysis.Price
		want string
	}{
		{"even", us(3.4, 2.6, 4.2, stats.Costs), "+3.4 ±0.8"},
		{"uneven", us(17.1, 16.3, 20.5, stats.Costs), "+17 (16–20)"},
		{"gain", us(-31, -45, -17, stats.Gains), "-31 ±14"},
		{"unclear", us(3, -20, 26, stats.Unclear), "+3 ±23 ?"},
		{"no-negative-zero", us(-0.2, -11, 11, stats.Unclear), "+0 ±11 ?"},
		{"one-round", once, "+51 ±?"},
		{"nothing-is-rounded-up", us(0.1, -0.31, 0.502, stats.Nothing), "≤ 0.6"},
		{"nothing-gained", us(-0.1, -2.31, 0, stats.Nothing), "≤ 3"},
		{"per-gigabyte", analysis.Price{Unit: "s/B", Median: 0.152e-9, Low: 0.131e-9,
			High: 0.173e-9, N: 9, Verdict: stats.Costs}, "+0.15 ±0.02"},
		{"ratio", ratio(0.62, 0.59, 0.65, stats.Costs), "62 % (59–65)"},
		{"ratio-unclear", ratio(0.95, 0.74, 0.96, stats.Unclear), "95 % (74–96) ?"},
		{"ratio-nothing", ratio(0.99, 0.974, 1.01, stats.Nothing), "≤ 3 %"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.p.String(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestTracedSteps(t *testing.T) {
	cells := chain(mode.FromHost, mode.BridgeDefault, workload.RR)
	run := newLadderRun(t, cells...) // native, its control, host, bridge-default
	host, bridge := judgetest.HostTrip(), judgetest.BridgeTrip()
	run.Trace(1, 5, []judgetest.Trip{host, host, host, bridge})
	run.File.Header.Plan.Study = sample.StudyLadder
	r := Judge(run.File)
	if r.Steps[0].Trace != nil {
		t.Errorf("the bottom has %+v", r.Steps[0].Trace)
	}
	s := step(t, r, mode.BridgeDefault)
	if s.Trace == nil || s.Trace.Against != "host" || len(s.Trace.Rows) == 0 ||
		s.Trace.Untraced != s.Prices[workload.LatencyP50] {
		t.Fatalf("%+v, price %+v", s.Trace, s.Prices)
	}
	if p := s.Trace.Path; math.Abs(1e6*p.Median-3.1) > 0.3 || p.Verdict != stats.Costs {
		t.Errorf("in the path: %+v", p)
	}
	run.File.Header.Plan.Trace = nil
	if s := step(t, Judge(run.File), mode.Host); s.Trace != nil {
		t.Errorf("untraced: %+v", s.Trace)
	}
}
