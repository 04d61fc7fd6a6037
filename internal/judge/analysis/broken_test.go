package analysis_test

import (
	"fmt"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

// In visits, each letter is a visit: g good, f failed, c contradicted, s starved.
func TestBrokenPathIsNoRow(t *testing.T) {
	for _, tt := range []struct {
		visits string
		reason string
		warned bool
	}{
		{"gggggggggg", "", false},
		{"ggggfggggg", "", true},
		{"gggffggggggg", "", true},
		{"gggggggggf", "", true},
		{"ggggcggggg", "", true},
		{"gsgsgsgsgs", "", true},
		{"ggggggggss", "", true},
		{"gggggggggff", "the path broke in round 10, 9.0 s after the start, and did not come back",
			false},
		{"gggggggggcc", "the path broke in round 10, 9.0 s after the start, and did not come back",
			false},
		{"gggggggggfc", "the path broke in round 10, 9.0 s after the start, and did not come back",
			false},
		{"ggggggggfsf", "the path broke in round 9, 8.0 s after the start, and did not come back",
			false},
		{"ggfsffgggggggggggggggg",
			"the path was broken from round 3 to round 6, 2.0 s to 5.0 s after the start", false},
		{"gfgggfgg", "2 of 8 visits failed or were not witnessed", false},
		{"gcgg", "1 of 4 visits failed or was not witnessed", false},
		{"gfgg", "", true},
		{"ffff", "the visit failed", false},
		{"cccc", "the path was not witnessed", false},
		{"ssss", "the visit failed", false},
	} {
		t.Run(tt.visits, func(t *testing.T) {
			r := judgetest.New(t, judgetest.Trio(mode.Bridge, "bulk")...)
			for round, c := range tt.visits {
				r.Visit(round, 0, 8)
				r.Visit(round, 1, 8)
				r.Visit(round, 2, 4, func(v *sample.Visit) {
					v.At = float64(round)
					switch c {
					case 'f', 's':
						v.Failure, v.Starved = fmt.Sprintf("failure %d", round), c == 's'
					case 'c':
						v.Witness = sample.Witness{Evidence: fmt.Sprintf("evidence %d", round)}
					}
				})
			}
			got := analysis.Judge(r.File)
			if tt.reason != "" {
				if len(got.Failed) != 1 || got.Failed[0].Reason != tt.reason ||
					got.Failed[0].Evidence == "" {
					t.Errorf("failed %+v, want %q", got.Failed, tt.reason)
				}
				if len(got.Findings) > 0 || len(got.Cells) != 1 {
					t.Errorf("a broken path is judged: %q, %d cells", got.Findings, len(got.Cells))
				}
				return
			}
			c := judgetest.Find(t, got, mode.Bridge, "bulk")
			warned := false
			for _, w := range c.Warnings {
				warned = warned || w.Code == "failed-visits"
			}
			if len(got.Failed) != 0 || warned != tt.warned {
				t.Errorf("failed %+v, warnings %+v", got.Failed, c.Warnings)
			}
		})
	}
}
