package analysis_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/ladder"
	"github.com/bridgetoll/bridgetoll/internal/judge/predict"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

type slicedRun struct {
	*judgetest.Run
	rng *rand.Rand
	// cells with fewer slices
	known []bool
	// each cell's speed in slices relative to windows
	burst []float64
	// standard deviation of the effect of a cell's new connections
	session float64
	// standard deviation of the steps by which the machine's speed drifts
	drift float64
}

func newSlicedRun(t *testing.T, cells ...sample.Cell) *slicedRun {
	r := judgetest.New(t, cells...)
	p := &r.File.Header.Plan
	p.Same, p.Epoch = 0.03, 0.5
	for k := range p.Loads {
		p.Loads[k].Slice, p.Loads[k].Window = 0.004, 0.1
	}
	// The tests ask of 95 % intervals that they contain the truth, which not all seeds do.
	return &slicedRun{Run: r, rng: rand.New(rand.NewPCG(1, 12)), burst: make([]float64, len(cells)),
		session: 0.005, drift: 0.04}
}

// epochs adds n rounds; xs holds the cells' Gbit/s and µs.
func (r *slicedRun) epochs(n int, xs ...float64) *slicedRun {
	r.T.Helper()
	p := r.File.Header.Plan
	for range n {
		round := r.File.End.Rounds
		for _, l := range p.Loads {
			var cells []int
			for c := range p.Cells {
				if p.Cells[c].Load == l.Kind {
					cells = append(cells, c)
				}
			}
			if l.Slice > 0 && len(cells) > 0 {
				r.epoch(round, cells, xs)
			}
		}
		r.File.End.Rounds++
	}
	return r
}

func (r *slicedRun) epoch(round int, cells []int, xs []float64) {
	r.T.Helper()
	p := r.File.Header.Plan
	session := make([]float64, len(xs))
	for c := range session {
		session[c] = math.Exp(r.session * r.rng.NormFloat64())
	}
	got := map[int]*sample.Slices{}
	table := plan.Epoch(p, cells, plan.Pace{Known: r.known}, round)
	drift := 0.0
	for k, s := range table.Slots {
		drift = 0.98*drift + r.drift*r.rng.NormFloat64() // 5 r.drift in the long run
		if !s.Measured() {
			continue
		}
		x := xs[s.Cell] * session[s.Cell] * math.Exp(drift+0.05*r.rng.NormFloat64())
		g := got[s.Cell]
		if g == nil {
			g = &sample.Slices{}
			got[s.Cell] = g
		}
		g.Slots = append(g.Slots, k)
		if p.Cells[s.Cell].Load == "rr" {
			g.Rates, g.Medians = append(g.Rates, 1e6/x), append(g.Medians, x*1e-6)
		} else {
			g.Rates = append(g.Rates, x*(1+r.burst[s.Cell])*1e9/8)
		}
	}
	for _, c := range cells {
		window := xs[c] * math.Exp(0.1*r.rng.NormFloat64())
		r.Visit(round, c, window, func(v *sample.Visit) {
			v.Slices = got[c]
			v.At = float64(round)
		})
	}
}

func four(load string) []sample.Cell {
	return append(judgetest.Trio(mode.Bridge, load), judgetest.HostCell(mode.Native, load))
}

func ratioIn(t *testing.T, r *analysis.Report, m mode.Name, load, metric string) analysis.Ratio {
	t.Helper()
	x := judgetest.Find(t, r, m, load).Metrics[metric].Ratio
	if x == nil {
		t.Fatalf("%s %s has no ratio of %s", m, load, metric)
	}
	return *x
}

func TestSlicesFindSmallDifferences(t *testing.T) {
	cells := append(four("bulk"), four("rr")...)
	got := analysis.Judge(newSlicedRun(t, cells...).epochs(13, 30, 30, 28, 30, 20, 20, 22, 20).File)
	for _, tt := range []struct {
		mode         mode.Name
		load, metric string
		truth        float64
		want         stats.Verdict
	}{
		{mode.Bridge, "bulk", workload.Throughput, 28.0 / 30, stats.Worse},
		{mode.Native, "bulk", workload.Throughput, 1, stats.Same},
		{mode.Bridge, "rr", workload.LatencyP50, 1.1, stats.Worse},
		{mode.Bridge, "rr", workload.Transactions, 1 / 1.1, stats.Worse},
		{mode.Native, "rr", workload.LatencyP50, 1, stats.Same},
	} {
		x := ratioIn(t, got, tt.mode, tt.load, tt.metric)
		if x.Verdict != tt.want || x.Low > tt.truth || x.High < tt.truth || x.HalfWidth() > 0.025 ||
			x.Epochs != 13 || x.N < 13*10 {
			t.Errorf("%s %s of %s: %+v, truth %.3f, want %s", tt.load, tt.metric, tt.mode, x,
				tt.truth, tt.want)
		}
	}
	p := judgetest.Find(t, got, mode.Bridge, "rr").Metrics[workload.LatencyP50].Price
	if p == nil || p.Verdict != stats.Costs || p.Unit != "s" || p.Low > 2e-6 || p.High < 2e-6 ||
		p.High-p.Low > 1.2e-6 || p.Epochs != 13 {
		t.Errorf("what a bridge adds: %+v", p)
	}
	if p := judgetest.Find(t, got, mode.Bridge, "bulk").Metrics[workload.Throughput].Price; p != nil {
		t.Errorf("a throughput is said to add something: %+v", p)
	}
	// Metrics without slices are compared by rounds, and their windows are too noisy for a verdict.
	w := ratioIn(t, got, mode.Bridge, "bulk", workload.WindowThroughput)
	if w.Epochs != 0 || w.N != 13 || w.Verdict != stats.Unclear {
		t.Errorf("windows: %+v", w)
	}
	if f := got.Control.Groups[0].Floor[workload.Throughput]; !(f > 0 && f < 0.03) {
		t.Errorf("noise floor %v", f)
	}
}

func TestRowsLearnFromEachOther(t *testing.T) {
	cells := four("bulk")
	for _, tune := range []mode.Tunes{"gro=off", "gso=off", "mtu=1400", "tso=off"} {
		c := judgetest.HostCell(mode.Bridge, "bulk")
		c.Tune = tune
		cells = append(cells, c)
	}
	r := newSlicedRun(t, cells...)
	r.session = 0.001
	r.epochs(5, 30, 30, 28, 30, 28, 28, 28, 28)
	many := ratioIn(t, analysis.Judge(r.File), mode.Native, "bulk", workload.Throughput)
	if now := live(r.Run).Standings()[1].Ratio; now != many {
		t.Errorf("during the run %+v, in the report %+v", now, many)
	}
	r.File.Visits = slices.DeleteFunc(r.File.Visits, func(v sample.Visit) bool {
		return v.Cell != 0 && v.Cell != 3
	})
	alone := ratioIn(t, analysis.Judge(r.File), mode.Native, "bulk", workload.Throughput)
	if many.HalfWidth() > 0.9*alone.HalfWidth() {
		t.Errorf("with other rows ±%.4f, alone ±%.4f", many.HalfWidth(), alone.HalfWidth())
	}
}

// A machine that slows down in the middle of a run changes the ratios of modes that are measured
// one after the other, but not of those that take turns.
func TestUnpaired(t *testing.T) {
	r := newSlicedRun(t, four("bulk")...).epochs(4, 30, 30, 27, 30).epochs(4, 24, 24, 21.6, 24)
	got := analysis.Judge(r.File).Unpaired
	if len(got) != 1 || got[0].Load != "bulk" || got[0].Rows != 2 || got[0].Off < 0.1 ||
		got[0].Off > 0.4 || got[0].Most < got[0].Off || got[0].Width > 0.03 || got[0].Row == "" {
		t.Errorf("%+v", got)
	}
	if short := analysis.Judge(newSlicedRun(t, four("bulk")...).epochs(3, 30, 30, 27, 30).File).Unpaired; short != nil {
		t.Errorf("of three epochs: %+v", short)
	}
}

func TestSlicesAbsolute(t *testing.T) {
	r := newSlicedRun(t, append(judgetest.Trio(mode.Bridge, "bulk"),
		judgetest.Trio(mode.Bridge, "rr")...)...)
	r.epochs(1, 30, 30, 20, 20, 20, 40)
	for i := range r.File.Visits {
		v := &r.File.Visits[i]
		v.Slices = &sample.Slices{Slots: []int{3 * v.Cell, 100 + 3*v.Cell, 200 + 3*v.Cell},
			Rates: []float64{1e9, 3e9, 2e9}}
		if v.Cell >= 3 {
			v.Slices.Rates, v.Slices.Medians = []float64{1e4, 3e4, 2e4}, []float64{1e-4, 3e-5, 5e-5}
		}
	}
	bulk, rr := judgetest.Find(t, analysis.Judge(r.File), mode.Bridge, "bulk"),
		judgetest.Find(t, analysis.Judge(r.File), mode.Bridge, "rr")
	for _, tt := range []struct {
		cell analysis.Cell
		name string
		want float64
	}{
		{bulk, workload.Throughput, 16e9}, {bulk, workload.WindowThroughput,
			float64(r.File.Visits[2].Server.Received) * 8},
		{rr, workload.Transactions, 2e4}, {rr, workload.LatencyP50, 5e-5},
		{rr, workload.WindowTransactions, judgetest.TripsPerVisit},
	} {
		if got := tt.cell.Metrics[tt.name]; !judgetest.Near(got.Median, tt.want) ||
			got.Unit == "" || got.Higher != (tt.name != workload.LatencyP50) {
			t.Errorf("%s: %+v, want %g", tt.name, got, tt.want)
		}
	}
	for i := range r.File.Visits {
		r.File.Visits[i].Slices = &sample.Slices{Lost: 5}
	}
	if c := judgetest.Find(t, analysis.Judge(r.File), mode.Bridge, "bulk"); len(c.Metrics[workload.Throughput].Rounds) != 0 || len(c.Metrics[workload.WindowThroughput].Rounds) != 1 {
		t.Errorf("without slices: %+v", c.Metrics)
	}
}

// A cell whose last visit failed is visited once more alone; no other slices of the round are near.
func TestRepeatedVisitsArePairedWithNobody(t *testing.T) {
	r := newSlicedRun(t, four("bulk")...).epochs(4, 30, 30, 28, 30)
	want := ratioIn(t, analysis.Judge(r.File), mode.Bridge, "bulk", workload.Throughput)
	r.epochs(1, 30, 30, 28, 30)
	failed := &r.File.Visits[len(r.File.Visits)-2]
	again := *failed
	failed.Failure, failed.Starved = "the machine was too busy", true
	for k := range again.Slices.Rates {
		again.Slices.Rates[k] *= 3
	}
	r.File.Visits = append(r.File.Visits, again)
	got := analysis.Judge(r.File)
	x := ratioIn(t, got, mode.Bridge, "bulk", workload.Throughput)
	if x.Median != want.Median || x.N != want.N || x.Epochs != want.Epochs {
		t.Errorf("%+v, without the repeated visit %+v", x, want)
	}
	if n := len(judgetest.Find(t, got, mode.Bridge, "bulk").Metrics[workload.Throughput].Rounds); n != 5 {
		t.Errorf("%d rounds have a value", n)
	}
	l := live(r.Run)
	if now := l.Standings()[0].Ratio; now != x {
		t.Errorf("during the run: %+v, in the report %+v", now, x)
	}
}

func TestSlicesOfAnyPair(t *testing.T) {
	r := newSlicedRun(t, four("bulk")...)
	r.File.Header.Plan.Study = sample.StudyLadder
	r.epochs(8, 30, 30, 24, 27)
	for _, s := range ladder.Judge(r.File).Steps {
		if s.Mode != mode.Bridge {
			continue
		}
		p := s.Prices[workload.Throughput]
		if s.Below != string(mode.Host) || p.Epochs != 8 || p.Low > 24.0/30 || p.High < 24.0/30 ||
			p.High-p.Low > 0.08 || p.Verdict != stats.Costs {
			t.Errorf("a bridge over %s: %+v", s.Below, p)
		}
	}
	x, ok := analysis.Pair(r.File).Between(
		analysis.Figure{Cell: judgetest.HostCell(mode.Bridge, "bulk"), Metric: workload.Throughput},
		analysis.Figure{Cell: judgetest.HostCell(mode.Native, "bulk"), Metric: workload.Throughput,
			Share: 2})
	if !ok || x.Epochs != 8 || x.Low > 48.0/27 || x.High < 48.0/27 || x.HalfWidth() > 0.1 {
		t.Errorf("between: %+v", x)
	}
}

func TestLadderPricesLatencyBySlices(t *testing.T) {
	r := newSlicedRun(t, four("rr")...)
	r.File.Header.Plan.Study = sample.StudyLadder
	got := ladder.Judge(r.epochs(8, 20, 20, 26, 22).File)
	at := slices.IndexFunc(got.Steps, func(s ladder.Step) bool {
		return s.Mode == mode.Bridge
	})
	p := got.Steps[at].Prices[workload.LatencyP50]
	adds := 0.3 * judgetest.Find(t, got.Base(), mode.Host, "rr").Metrics[workload.LatencyP50].Median
	if p.Epochs != 8 || p.Low > adds || p.High < adds || p.High-p.Low > 2e-6 ||
		p.Verdict != stats.Costs {
		t.Errorf("a bridge's price: %+v", p)
	}
}

func TestPredictBySlices(t *testing.T) {
	cells := append(four("bulk"), four("rr")...)
	r := newSlicedRun(t, cells...).epochs(8, 8, 8, 4, 8, 20, 20, 26, 20)
	judged := analysis.Judge(r.File)
	trip := judgetest.Find(t, judged, mode.Host, "rr").Metrics[workload.LatencyP50].Median
	perByte := 8 / judgetest.Find(t, judged, mode.Host, "bulk").Metrics[workload.Throughput].Median
	for _, tt := range []struct {
		bytes int64
		truth float64
	}{{1, 10 * 0.3 * trip}, {10_001, 10 * (0.3*trip + 10_000*perByte)}} {
		got, err := predict.Judge(r.File, predict.Workload{Queries: 10, Bytes: tt.bytes})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range got.Rows {
			p := row.Over[predict.Page]
			switch {
			case row.Mode == string(mode.Bridge) &&
				(p.Epochs != 8 || p.Low > tt.truth || p.High < tt.truth ||
					p.High-p.Low > tt.truth/3 || p.Verdict != stats.Costs):
				t.Errorf("%d bytes: %+v, want %g", tt.bytes, p, tt.truth)
			case row.Mode == string(mode.Native) && p.Verdict != stats.Nothing:
				t.Errorf("%d bytes: what is the same: %+v", tt.bytes, p)
			}
		}
	}
}

func TestFewEpochsAreJudged(t *testing.T) {
	got := analysis.Judge(newSlicedRun(t, four("bulk")...).epochs(2, 30, 30, 20, 30).File)
	if x := ratioIn(t, got, mode.Bridge, "bulk", workload.Throughput); x.Verdict != stats.Worse ||
		x.N < 2*stats.MinJudged {
		t.Errorf("%+v", x)
	}
	if x := ratioIn(t, got, mode.Bridge, "bulk", workload.CPUPerByte); x.Verdict != stats.Unclear ||
		x.N != 2 {
		t.Errorf("by rounds: %+v", x)
	}
}

func TestSliceWarnings(t *testing.T) {
	codes := func(r *slicedRun) (out []string) {
		for _, w := range judgetest.Find(t, analysis.Judge(r.File), mode.Bridge, "bulk").Warnings {
			out = append(out, w.Code)
			if f := w.Found; w.Code == analysis.BurstDiffers && (!judgetest.Near(
				f.Values[analysis.SliceLength], 0.004) || !judgetest.Near(
				f.Values[analysis.WindowLength], 0.1) || len(f.Ratios) != 2 ||
				f.Ratios[0].To != "host" || f.Load != workload.Bulk) {
				t.Errorf("%+v", f)
			}
		}
		return out
	}
	if got := codes(newSlicedRun(t, four("bulk")...).epochs(13, 30, 30, 28, 30)); len(got) != 0 {
		t.Errorf("a run without a doubt has %v", got)
	}
	// An interval by slices includes its own error, so few epochs cause no warning.
	if got := codes(newSlicedRun(t, four("bulk")...).epochs(3, 30, 30, 28, 30)); len(got) != 0 {
		t.Errorf("three epochs: %v", got)
	}
	bursts := newSlicedRun(t, four("bulk")...)
	bursts.burst[2] = 0.6
	if got := codes(bursts.epochs(13, 30, 30, 18, 30)); !slices.Contains(got, analysis.BurstDiffers) {
		t.Errorf("slices of 0.93 and windows of 0.6: %v", got)
	}
	lost := newSlicedRun(t, four("bulk")...).epochs(8, 30, 30, 28, 30)
	for i := range lost.File.Visits {
		lost.File.Visits[i].Slices.Lost = len(lost.File.Visits[i].Slices.Slots) / 2
	}
	if got := codes(lost); !slices.Contains(got, "lost-slices") {
		t.Errorf("a third lost: %v", got)
	}
}

func TestNoRatioToABaselineWithoutSlices(t *testing.T) {
	r := newSlicedRun(t, judgetest.Trio(mode.Bridge, "rr")...).epochs(3, 20, 20, 25)
	for k := range r.File.Visits {
		if v := &r.File.Visits[k]; v.Cell == 0 {
			v.Failure, v.Slices, v.Starved = "the machine was too busy", nil, true
		}
	}
	rep := analysis.Judge(r.File)
	for _, m := range judgetest.Find(t, rep, mode.Bridge, "rr").Metrics {
		if m.Ratio != nil {
			t.Errorf("%+v", m.Ratio)
		}
	}
	if _, err := json.Marshal(rep); err != nil {
		t.Error(err)
	}
}

func TestPlaceboShowsSlotBias(t *testing.T) {
	placebo := judgetest.Control(judgetest.HostCell(mode.Host, "rr"))
	placebo.Placebo = true
	for _, tt := range []struct {
		us   float64
		want bool
	}{{20, false}, {20.04, false}, {20.6, true}} {
		r := newSlicedRun(t, append(judgetest.Trio(mode.PublishProxy, "rr"), placebo)...).epochs(
			8, 20, 20, 45, tt.us)
		got := analysis.Judge(r.File)
		floor := got.Control.Groups[0]
		if len(got.Control.Groups) != 1 || floor.Placebo == nil ||
			math.Abs(floor.Placebo.Median-tt.us/20) > 0.01 {
			t.Fatalf("%g µs: groups %+v", tt.us, got.Control.Groups)
		}
		if said := slices.Contains(judgetest.Codes(got.Warnings), "slot-bias"); said != tt.want {
			t.Errorf("%g µs: warning %v, placebo %v, %v", tt.us, said, floor.Placebo, got.Warnings)
		}
		if len(got.Cells) != 2 {
			t.Errorf("%d rows: a placebo is none", len(got.Cells))
		}
	}
}
