package analysis_test

import (
	"math"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

func TestStates(t *testing.T) {
	for _, tt := range []struct {
		name      string
		load      string
		then      []float64 // cells' values in the other state
		usual, in int       // epochs
		low, high float64
		widest    float64
		what      string // of the warning about states
		code      string
	}{
		{"bulk", "bulk", []float64{14, 14, 18.2, 14}, 9, 4, 0.58, 0.62, 0.04, analysis.LeftOut,
			analysis.InStates},
		{"rr", "rr", []float64{60, 60, 60, 60}, 10, 3, 0.58, 0.62, 0.04, analysis.LeftOut,
			analysis.InStates},
		{"half-of-them", "bulk", []float64{14, 14, 18.2, 14}, 6, 6, 0.6, 1.3, 1, "",
			analysis.InStates},
		{"the-ratio-is-the-same", "bulk", []float64{14, 14, 8.4, 14}, 9, 4, 0.58, 0.62, 0.04, "",
			analysis.Bimodal},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newSlicedRun(t, four(tt.load)...)
			r.drift = 0.01 // levels are compared
			r.epochs(tt.usual, 36, 36, 21.6, 36).epochs(tt.in, tt.then...)
			got := analysis.Judge(r.File)
			x := ratioIn(t, got, mode.Bridge, tt.load,
				analysis.PrimaryOf(r.File.Header.Plan.Loads.Of(tt.load), got.Cells[0].Shape))
			if x.Median < tt.low || x.Median > tt.high || x.HalfWidth() > tt.widest {
				t.Errorf("ratio %+v", x)
			}
			codes := slices.DeleteFunc(judgetest.Codes(
				judgetest.Find(t, got, mode.Bridge, tt.load).Warnings), func(code string) bool {
				return code != analysis.InStates && code != analysis.Bimodal
			})
			if !slices.Equal(codes, []string{tt.code}) {
				t.Errorf("warnings %v", codes)
			}
			if tt.code == analysis.InStates {
				f := judgetest.Found(t, judgetest.Find(t, got, mode.Bridge, tt.load).Warnings,
					tt.code)
				by := map[string]float64{"bulk": 1e9, "rr": 1e-6}[tt.load]
				near := func(a, b float64) bool { return math.Abs(a-b) < 0.05*b }
				if f.N != tt.in || f.Of != tt.in+tt.usual || f.What != tt.what ||
					!near(f.Ratios[0].Median, tt.then[2]/tt.then[0]) ||
					!near(f.Ratios[1].Median, 0.6) ||
					f.Ratios[0].To != "host" || !near(f.Prices[0].Median, by*tt.then[0]) ||
					!near(f.Prices[1].Median, by*36) {
					t.Errorf("%+v", f)
				}
			}
			if y := ratioIn(t, got, mode.Native, tt.load, analysis.PrimaryOf(r.File.Header.Plan.Loads.Of(tt.load), got.Cells[0].Shape)); y.Verdict != stats.Same && y.Verdict != stats.Unclear {
				t.Errorf("what is the same in both states: %+v", y)
			}
		})
	}
}

func TestStarvedEpochsAreSaidOnce(t *testing.T) {
	for failure, want := range map[string]string{
		"the machine was too busy: only 2 of 9 slices began and ended on time": "",
		"another program traced the kernel: watch at sched_switch": "another program traced the " +
			"kernel: watch at sched_switch",
	} {
		r := newSlicedRun(t, four("bulk")...).epochs(8, 30, 30, 28, 30)
		for i := range r.File.Visits {
			if v := &r.File.Visits[i]; v.Round == 2 || v.Round == 5 && v.Cell == 3 {
				v.Failure, v.Starved, v.Slices = failure, true, nil
			}
		}
		found := map[string]int{} // by the cause
		for _, c := range analysis.Judge(r.File).Cells {
			for _, w := range c.Warnings {
				if f := w.Found; w.Code == analysis.FailedVisits && f.Code == analysis.FailedRounds &&
					f.N == 2 && f.Of == 8 {
					found[f.Why]++
				}
			}
		}
		if len(found) != 1 || found[want] != 3 {
			t.Errorf("%v", found)
		}
	}
}
