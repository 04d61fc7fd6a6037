package predict

import (
	"cmp"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

// The run has host and bridge with round trips of 100 and 150 µs, and bulk of 40 and 20 Gbit/s. The
// machine has 0.8 CPUs busy, and rr makes 2,000 round trips a second.
func costs(t *testing.T, loads ...string) *sample.File {
	t.Helper()
	var cells []sample.Cell
	var xs []float64
	for _, l := range loads {
		cells = append(cells, judgetest.Trio(mode.Bridge, l)...)
		if l == "rr" {
			xs = append(xs, 100, 100, 150)
		} else {
			xs = append(xs, 40, 40, 20)
		}
	}
	return judgetest.New(t, cells...).Rounds(6, judgetest.Steady(xs...)).File
}

func TestPredict(t *testing.T) {
	p, err := Judge(costs(t, "rr", "bulk"), Workload{Queries: 20, Bytes: 4001, QPS: 500})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Rows) != 2 || !p.Rows[0].Baseline || p.Rows[1].Label != "bridge" || len(p.Noted) != 0 {
		t.Fatalf("rows %+v, notes %v", p.Rows, p.Noted)
	}
	host, bridge := p.Rows[0], p.Rows[1]
	// 4000 more bytes than measured take 0.8 µs at 40 Gbit/s, 1.6 µs at 20.
	const hostPage, bridgePage = 20 * (100e-6 + 0.8e-6), 20 * (150e-6 + 1.6e-6)
	if !judgetest.Near(host.Page.Median, hostPage) ||
		!judgetest.Near(bridge.Page.Median, bridgePage) || bridge.Page.N != 6 ||
		bridge.Page.Unit != "s" {
		t.Errorf("pages %+v, %+v", host.Page, bridge.Page)
	}
	over := bridge.Over[Page]
	if !judgetest.Near(over.Median, bridgePage-hostPage) || over.Verdict != stats.Costs ||
		len(host.Over) != 0 {
		t.Errorf("over %+v", over)
	}
	// 0.8 CPUs for 2,000 round trips a second and for 5 or 2.5 GB a second.
	const perTrip = 0.8 / 2000
	if want := 500 * (perTrip + 4000*0.8/5e9); !judgetest.Near(host.CPU.Median, want) {
		t.Errorf("CPU %+v, want %v", host.CPU, want)
	}
	if want := 500 * (perTrip + 4000*0.8/2.5e9); !judgetest.Near(bridge.CPU.Median, want) {
		t.Errorf("CPU %+v, want %v", bridge.CPU, want)
	}
	if got := bridge.Costs; !judgetest.Near(got[workload.LatencyP50], 150e-6) ||
		!judgetest.Near(got[workload.Throughput], 20e9) || bridge.Extra != 4000 {
		t.Errorf("costs %v, extra %v", got, bridge.Extra)
	}
	if host.StreamCPU != nil {
		t.Errorf("tokens that nobody asked for: %+v", host.StreamCPU)
	}
}

// Where the median of the differences is not the difference of the medians, rows still add up.
func TestRowsAddUp(t *testing.T) {
	r := judgetest.New(t, judgetest.Trio(mode.Bridge, "rr")...)
	hosts := []float64{100, 120, 140, 160, 180, 200, 220}
	bridges := []float64{150, 190, 150, 240, 200, 300, 230}
	r.Rounds(len(hosts), func(round, cell int) float64 {
		if r.File.Header.Plan.Cells[cell].Mode == mode.Bridge {
			return bridges[round]
		}
		return hosts[round]
	})
	p, err := Judge(r.File, Workload{Queries: 20, Bytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	host, bridge := p.Rows[0].Page, p.Rows[1].Page
	over := p.Rows[1].Over[Page].Median
	if judgetest.Near(bridge.Median, host.Median+over) {
		t.Fatalf("the medians %g and %g agree with %g by themselves", host.Median, bridge.Median,
			over)
	}
	if got := bridge.Shown(); !judgetest.Near(got.Median, host.Shown().Median+over) ||
		!judgetest.Near(got.High-got.Low, bridge.High-bridge.Low) {
		t.Errorf("%+v is not %+v plus %g", got, host.Shown(), over)
	}
}

// What is unclear is no order: such rows stand where the plan has them, as if they cost nothing.
func TestUnclearRowsKeepTheirOrder(t *testing.T) {
	row := func(label string, over float64, v stats.Verdict) Row {
		return Row{Label: label, Baseline: v == "",
			Over: map[string]analysis.Price{Page: {Median: over, Verdict: v}}}
	}
	rows := []Row{row("dear", 3, stats.Costs), row("odd", 9, stats.Unclear),
		row("cheap", -1, stats.Gains),
		row("odder", -9, stats.Unclear), row("base", 0, "")}
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(a.rank(), b.rank()) })
	var got []string
	for _, r := range rows {
		got = append(got, r.Label)
	}
	if want := []string{"base", "cheap", "odd", "odder", "dear"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestPredictNotesABusyMachine(t *testing.T) {
	f := costs(t, "rr", "bulk")
	f.End.Contention = &sample.Contention{CPUs: 2, Others: new(1.9)}
	p, err := Judge(f, Workload{Queries: 20, Bytes: 4001})
	if err != nil || len(p.Noted) != 1 || p.Noted[0].Code != analysis.Busy ||
		p.Noted[0].Contention != f.End.Contention {
		t.Errorf("%+v, %v", p.Noted, err)
	}
}

func TestPredictNotesWhatVaries(t *testing.T) {
	cells := slices.Concat(judgetest.Trio(mode.Bridge, "rr"), judgetest.Trio(mode.Bridge, "bulk"))
	f := judgetest.New(t, cells...).Rounds(12, func(round, cell int) float64 {
		switch {
		case cell == 5 && round%2 == 0:
			return 0.02
		case cell < 3:
			return 100
		}
		return 40
	}).File
	varies := analysis.Finding{Code: analysis.Varying, What: "bridge", Why: "throughput",
		Prices: []analysis.Price{{Unit: "bit/s", Low: 0.02e9, High: 40e9, N: 12}}}
	for bytes, want := range map[int64][]analysis.Finding{4001: {varies}, 1: nil} {
		p, err := Judge(f, Workload{Queries: 20, Bytes: bytes})
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(p.Noted, want) {
			t.Errorf("replies of %d bytes: %+v", bytes, p.Noted)
		}
	}
}

func TestPredictTokens(t *testing.T) {
	cells := judgetest.Trio(mode.Bridge, workload.Stream)
	f := judgetest.New(t, cells...).Rounds(6, judgetest.Steady(1, 1, 1), func(v *sample.Visit) {
		v.Client.Counts = map[string]int64{workload.CountTokens: 100}
		if v.Cell == 2 {
			v.Proxy = &sample.ProxyUse{CPU: 0.3}
		}
	}).File
	p, err := Judge(f, Workload{Tokens: 5})
	if err != nil {
		t.Fatal(err)
	}
	const ends = 0.4 + 0.2 // s of CPU time for 100 tokens
	for i, want := range []float64{ends / 100, (ends + 0.3) / 100} {
		r := p.Rows[i]
		if r.StreamCPU == nil || !judgetest.Near(r.StreamCPU.Median, 5*want) ||
			!judgetest.Near(r.Costs[workload.CPUPerToken], want) {
			t.Errorf("%s: %+v, costs %v", r.Label, r.StreamCPU, r.Costs)
		}
	}
	if over := p.Rows[1].Over[StreamCPU]; over.Verdict != stats.Costs {
		t.Errorf("over %+v", over)
	}
}

func TestPredictFromLess(t *testing.T) {
	small := Workload{Queries: 3, Bytes: 1}
	p, err := Judge(costs(t, "rr"), small)
	if err != nil || len(p.Noted) != 0 || !judgetest.Near(p.Rows[0].Page.Median, 300e-6) ||
		p.Rows[0].CPU != nil {
		t.Errorf("%+v, %v", p, err)
	}
	p, err = Judge(costs(t, "rr"), Workload{Queries: 3, Bytes: 2000})
	noBulk := []analysis.Finding{{Code: NoBulk, Values: map[string]float64{AskedBytes: 2000,
		MeasuredBytes: 1}}}
	if err != nil || !reflect.DeepEqual(p.Noted, noBulk) ||
		!judgetest.Near(p.Rows[0].Page.Median, 300e-6) {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := Judge(costs(t, "bulk"), small); !errors.Is(err, errNothingToPredict) {
		t.Errorf("a file without rr: %v", err)
	}
	if _, err := Judge(&sample.File{}, small); !errors.Is(err, errNothingToPredict) {
		t.Errorf("an empty file: %v", err)
	}
}

func TestPredictPairsLoadsByRound(t *testing.T) {
	f := costs(t, "rr", "bulk")
	for i := range f.Visits {
		if v := &f.Visits[i]; v.Round == 2 && v.Cell == 5 {
			v.Failure = "client: reset"
		}
	}
	p, err := Judge(f, Workload{Queries: 1, Bytes: 100_000})
	if err != nil || p.Rows[0].Page.N != 6 || p.Rows[1].Page.N != 5 || p.Rows[1].Over[Page].N != 5 {
		t.Errorf("%+v, %v", p, err)
	}
}

// A mode whose bulk failed must not seem cheaper than the others.
func TestPredictNothingOfModeWithoutBulk(t *testing.T) {
	f := costs(t, "rr", "bulk")
	for i := range f.Visits {
		if v := &f.Visits[i]; v.Cell == 5 {
			v.Failure = "client: reset"
		}
	}
	p, err := Judge(f, Workload{Queries: 1, Bytes: 100_000})
	if err != nil || len(p.Noted) > 0 || p.Rows[0].Page.N != 6 || p.Rows[1].Page != nil ||
		len(p.Rows[1].Over) > 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

// If bulk's CPU time is unknown, that of queries lacks the extra bytes, which is noted.
func TestPredictWithoutCPUTimeOfBulk(t *testing.T) {
	f := costs(t, "rr", "bulk")
	for i := range f.Visits {
		if v := &f.Visits[i]; v.Cell >= 3 {
			v.Machine = nil
		}
	}
	p, err := Judge(f, Workload{Queries: 1, Bytes: 4001, QPS: 500})
	if err != nil {
		t.Fatal(err)
	}
	noted := []analysis.Finding{{Code: NoBulkCPU, Values: map[string]float64{AskedBytes: 4001,
		MeasuredBytes: 1}}}
	host, bridge := p.Rows[0], p.Rows[1]
	if !reflect.DeepEqual(p.Noted, noted) || !judgetest.Near(host.Page.Median, 100.8e-6) ||
		host.CPU == nil || !judgetest.Near(host.CPU.Median, 500*0.8/2000) || bridge.CPU == nil ||
		bridge.Over[CPU].N == 0 {
		t.Errorf("%+v", p)
	}
}

func TestPredictFromPlacementWithResults(t *testing.T) {
	var cells []sample.Cell
	for _, pin := range []string{sample.PinFar, sample.PinNear} {
		for _, c := range judgetest.Trio(mode.Bridge, workload.RR) {
			c.Pin = pin
			cells = append(cells, c)
		}
	}
	f := judgetest.New(t, cells...).Rounds(6, judgetest.Steady(100, 100, 150, 200, 200, 300)).File
	p, err := Judge(f, Workload{Queries: 3, Bytes: 1})
	if err != nil || p.Rows[0].Pin != sample.PinFar || len(p.Noted) != 0 {
		t.Fatalf("%+v, %v", p, err)
	}
	f.Visits = slices.DeleteFunc(f.Visits, func(v sample.Visit) bool { return v.Cell < 3 })
	want := []analysis.Finding{{Code: OtherPlacement, Pin: sample.PinNear, What: sample.PinFar}}
	p, err = Judge(f, Workload{Queries: 3, Bytes: 1})
	if err != nil || len(p.Rows) != 2 || p.Rows[1].Pin != sample.PinNear ||
		!judgetest.Near(p.Rows[1].Costs[workload.LatencyP50], 300e-6) ||
		!reflect.DeepEqual(p.Noted, want) {
		t.Errorf("%+v, %v", p, err)
	}
}
