package analysis_test

import (
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

func TestTogether(t *testing.T) {
	for _, tt := range []struct {
		name         string
		host, bridge float64 // shares; below 0: not known
		says         string
		warns        bool
	}{
		{"near", 0.9, 0.95,
			"The scheduler had client and server on one CPU for 90 to 95 % of the time, as in " +
				"toll compare --pin near.", false},
		{"far", 0, 0,
			"The scheduler had client and server on one CPU for 0 % of the time, as in toll " +
				"compare --pin far.", false},
		{"between", 0.5, 0.8,
			"The scheduler had client and server on one CPU for 50 to 80 % of the time.", false},
		{"mixed", 0.1, 0.8,
			"The scheduler had client and server on one CPU for 10 to 80 % of the time.", true},
		{"pinned", -1, -1, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			shares := []float64{tt.host, tt.host, tt.bridge}
			run := judgetest.New(t, judgetest.Trio(mode.Bridge, "rr")...).Rounds(
				5, judgetest.Steady(1, 1, 1), func(v *sample.Visit) {
					if x := shares[v.Cell]; x >= 0 {
						v.Together = &x
					}
				})
			r := analysis.Judge(run.File)
			if got := r.Together(); got != tt.says {
				t.Errorf("it says %q", got)
			}
			if got := slices.Contains(judgetest.Codes(r.Warnings), "mixed-placement"); got != tt.warns {
				t.Errorf("warnings: %v", r.Warnings)
			}
		})
	}
}
