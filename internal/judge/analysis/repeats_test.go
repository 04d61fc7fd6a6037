package analysis_test

import (
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

func pacedRun(t *testing.T, control string, load string) *sample.File {
	f := newSlicedRun(t, four(load)...).epochs(8, 40, 40, 30, 18).File
	for k := range f.Header.Paths {
		f.Header.Paths[k].Sysctls = map[string]string{"net.ipv4.tcp_congestion_control": control}
	}
	return f
}

// What one run shows of paced throughput does not tell what the next one shows.
func TestPacedRatiosHaveRepetitionsInTheirInterval(t *testing.T) {
	reno := ratioIn(t, analysis.Judge(pacedRun(t, "reno", workload.Bulk)), mode.Bridge,
		workload.Bulk, workload.Throughput)
	if reno.Verdict != stats.Worse || reno.HalfWidth() > 0.05 {
		t.Fatalf("without pacing: %+v", reno)
	}
	f := pacedRun(t, "bbr", workload.Bulk)
	report := analysis.Judge(f)
	bridge := ratioIn(t, report, mode.Bridge, workload.Bulk, workload.Throughput)
	for _, again := range []float64{0.65, 0.75, 0.88} {
		if bridge.Low > again || bridge.High < again {
			t.Errorf("%+v does not cover %g", bridge, again)
		}
	}
	if bridge.Verdict != stats.Unclear || bridge.Median != reno.Median {
		t.Errorf("%+v, want an unclear verdict on %g", bridge, reno.Median)
	}
	said := judgetest.Find(t, report, mode.Bridge, workload.Bulk).Warnings
	if !slices.Contains(judgetest.Codes(said), analysis.Repeats) {
		t.Errorf("warnings %+v", said)
	}
	if far := ratioIn(t, report, mode.Native, workload.Bulk,
		workload.Throughput); far.Verdict != stats.Worse {
		t.Errorf("less than half of the throughput is %+v", far)
	}
	var floor float64
	for _, g := range report.Control.Groups {
		floor = g.Floor[workload.Throughput]
	}
	if floor > 0.05 {
		t.Errorf("the control, on the baseline's own path, is widened too: %g", floor)
	}
	if x := ratioIn(t, analysis.Judge(pacedRun(t, "bbr", workload.RR)), mode.Bridge, workload.RR,
		workload.LatencyP50); x.HalfWidth() > 0.05 {
		t.Errorf("round trips are not paced: %+v", x)
	}
}

// The ranking during a run has the report's intervals; the run does not go on for what only other
// runs could tell.
func TestPacedRatiosDuringARun(t *testing.T) {
	r := newSlicedRun(t, four(workload.Bulk)...)
	for k := range r.File.Header.Paths {
		r.File.Header.Paths[k].Sysctls = map[string]string{"net.ipv4.tcp_congestion_control": "bbr"}
	}
	r.File.Header.Plan.Precision = 0.10
	if r.epochs(2, 40, 40, 30, 18); allKnown(live(r.Run)) {
		t.Error("two epochs are enough")
	}
	r.epochs(6, 40, 40, 30, 18)
	if l := live(r.Run); !allKnown(l) {
		t.Errorf("known: %v", l.Known())
	}
	for _, s := range live(r.Run).Standings() {
		if want := ratioIn(t, analysis.Judge(r.File), s.Cell.Mode, workload.Bulk,
			workload.Throughput); s.Ratio != want || want.HalfWidth() < 0.07 {
			t.Errorf("%s: %+v, the report has %+v", s.Label, s.Ratio, want)
		}
	}
	noisy := newSlicedRun(t, four(workload.Bulk)...)
	noisy.session, noisy.File.Header = 0.3, r.File.Header
	if noisy.epochs(8, 40, 40, 30, 38); allKnown(live(noisy.Run)) {
		t.Error("a run that is noisy itself does not go on")
	}
}

func TestRepetitionsOfThisMachineCount(t *testing.T) {
	f := pacedRun(t, "bbr", workload.Bulk)
	f.Header.Plan.Repeats = []sample.Prior{{From: "host", Load: workload.Bulk, On: "lab",
		Metric: workload.Throughput, Variance: 0.02 * 0.02, Freedom: 12}}
	x := ratioIn(t, analysis.Judge(f), mode.Bridge, workload.Bulk, workload.Throughput)
	if x.Verdict != stats.Worse || x.HalfWidth() > 0.05 {
		t.Errorf("with runs that agreed: %+v", x)
	}
}

// A path that does not pace is compared with one that does.
func TestUnpacedAgainstPaced(t *testing.T) {
	cells := four(workload.Bulk)
	cells[3].Mode, cells[3].Tune = mode.Bridge, "congestion=reno"
	f := newSlicedRun(t, cells...).epochs(8, 40, 40, 30, 44).File
	for k := range f.Header.Paths {
		f.Header.Paths[k].Sysctls = map[string]string{"net.ipv4.tcp_congestion_control": "bbr"}
	}
	for _, c := range analysis.Judge(f).Cells {
		if c.Tune == "" || c.Baseline {
			continue
		}
		if x := c.Metrics[workload.Throughput].Ratio; x.HalfWidth() < 0.2 ||
			!strings.HasPrefix(c.Label(), "bridge+") {
			t.Errorf("%s: %+v", c.Label(), x)
		}
	}
}
