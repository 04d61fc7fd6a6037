package sentence

import (
	"fmt"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/endpoints"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

// TestBrief has an answer on more routes than a summary has sentences for. What it leaves out is in
// the details.
func TestBrief(t *testing.T) {
	var cells []analysis.Cell
	for i, last := range [][7]float64{{1: 540}, {1: 300, 4: 700}, {1: 300, 5: 700}, {1: 540}, {1: 540}, {}} {
		c := analysis.Cell{Cell: sample.Cell{Route: fmt.Sprint("r", i), Load: workload.Chat}}
		c.Evidence = judgetest.Evidence([7]float64{1: 60}, last, [7]float64{})
		if i == 2 { // the first token only
			c.Evidence = judgetest.Evidence([7]float64{1: 60, 4: 250}, [7]float64{1: 1800, 4: 10}, [7]float64{})
		}
		if i == 5 {
			c.Evidence = &sample.Evidence{Responses: 1, Tokens: 9, Broken: "it left"}
		}
		cells = append(cells, c)
	}
	for n, want := range map[int][]string{
		3: nil,
		6: {"Neither, over r0, r3 and r4; the relay nginx at port 80, over r1 (700 ms of 1.00 s) and r2 " +
			"(250 ms of 310 ms to the first token); no verdict, over r5."},
	} {
		r := &analysis.Report{}
		r.Study, r.Cells = sample.StudyEndpoints, slices.Clone(cells[:n])
		r.Plan.Loads = []sample.Load{{Kind: workload.Chat}}
		r.Found = endpoints.Findings(r, nil)
		Fill(r)
		a := r.Answer
		if len(a.Text) < n || n == 3 && len(a.Text) > mostBrief+1 {
			t.Errorf("%d routes: %q", n, a.Text)
		}
		if len(a.Brief) > mostBrief || !slices.Equal(a.Brief[:min(1, len(want), len(a.Brief))], want) {
			t.Errorf("%d routes: %q, want %q first", n, a.Brief, want)
		}
		for _, s := range a.Brief[min(1, len(want)):] {
			if !slices.Contains(a.Text, s) {
				t.Errorf("%d routes: %q is not in the answer", n, s)
			}
		}
	}
}
