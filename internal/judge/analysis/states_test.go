package analysis_test

import (
	"strings"
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
		says      []string
		codes     string
	}{
		{"bulk", "bulk", []float64{14, 14, 18.2, 14}, 9, 4, 0.58, 0.62, 0.04,
			[]string{"in 4 of 13 epochs the ratio was 1", " % instead of 6",
				"; those epochs are left out. host ran at 1", " Gbit/s then and 3"}, "states"},
		{"rr", "rr", []float64{60, 60, 60, 60}, 10, 3, 0.58, 0.62, 0.04,
			[]string{"in 3 of 13 epochs the ratio was 10", " % instead of 6", ". host took ",
				" µs then and "}, "states"},
		{"half-of-them", "bulk", []float64{14, 14, 18.2, 14}, 6, 6, 0.6, 1.3, 1,
			[]string{"in 6 of 12 epochs", "the mean describes neither"}, "states"},
		{"the-ratio-is-the-same", "bulk", []float64{14, 14, 8.4, 14}, 9, 4, 0.58, 0.62, 0.04, nil,
			"bimodal"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newSlicedRun(t, four(tt.load)...)
			r.epochs(tt.usual, 36, 36, 21.6, 36).epochs(tt.in, tt.then...)
			got := analysis.Judge(r.File)
			x := ratioIn(t, got, mode.Bridge, tt.load,
				analysis.PrimaryOf(r.File.Header.Plan.Loads.Of(tt.load), got.Cells[0].Shape))
			if x.Median < tt.low || x.Median > tt.high || x.HalfWidth() > tt.widest {
				t.Errorf("ratio %+v", x)
			}
			text, codes := "", []string{}
			for _, w := range judgetest.Find(t, got, mode.Bridge, tt.load).Warnings {
				if w.Code == "states" {
					text = w.Text
				}
				if w.Code == "states" || w.Code == "bimodal" {
					codes = append(codes, w.Code)
				}
			}
			if strings.Join(codes, " ") != tt.codes {
				t.Errorf("warnings %v", codes)
			}
			for _, say := range tt.says {
				if !strings.Contains(text, say) {
					t.Errorf("%q lacks %q", text, say)
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
		"the machine was too busy: of 9 slices only 2 were on time": "",
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
