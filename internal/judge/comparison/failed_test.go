package comparison

import (
	"fmt"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

func TestFailed(t *testing.T) {
	unwitnessed := func(v *sample.Visit) {
		v.Witness = sample.Witness{Evidence: fmt.Sprintf(
			"round %d: DNAT hit 0 times by 1 connection", v.Round)}
	}
	failing := func(v *sample.Visit) {
		v.Failure, v.Witness.OK = "client: connection refused", false
	}
	for _, tt := range []struct {
		name             string
		change           func(*sample.Visit)
		reason, evidence string
	}{
		{"unwitnessed", unwitnessed, "the path was not witnessed",
			"round 5: DNAT hit 0 times by 1 connection"},
		{"failing", failing, "the visit failed", "client: connection refused"},
		{"never-visited", nil, "it was never visited", ""},
		{"too-short", nil, "it was never visited", "the budget ended before that"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := judgetest.New(t, judgetest.Trio(mode.PublishNAT, "bulk")...)
			limited := func(v *sample.Visit) { v.Client.BusiestCPU = 1 } // all modes, as far as is known
			for round := range 6 {
				r.Visit(round, 0, 8, limited)
				r.Visit(round, 1, 8, limited)
				if tt.change != nil {
					r.Visit(round, 2, 4, tt.change)
				}
			}
			if tt.name == "too-short" {
				r.File.End.Reason = sample.EndedByBudget
			}
			got := Judge(r.File)
			if len(got.Cells) != 1 || got.Cells[0].Mode != "host" {
				t.Errorf("a cell without a good visit is listed: %+v", got.Cells)
			}
			want := analysis.Failed{Cell: sample.Cell{
				Mode: "publish-nat", From: "host", To: "loopback", Load: "bulk", On: "lab"},
				Reason: tt.reason, Evidence: tt.evidence}
			if len(got.Failed) != 1 || got.Failed[0] != want {
				t.Errorf("failed %+v, want %+v", got.Failed, want)
			}
			wantFindings(t, got, "only-result host", "witnessed")
		})
	}
}
