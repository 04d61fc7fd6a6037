package sentence

import (
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/advise"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// A longer budget is not advised after a run that the user interrupted.
func TestInterruptedRuns(t *testing.T) {
	r := tracedAll()
	w := &writer{r: r.Base(), study: r, trace: &r.Traces[1]}
	levers := &writer{r: &analysis.Report{}, study: &advise.Report{Advice: []advise.Advice{{}}}}
	for _, ended := range []string{sample.EndedByBudget, sample.EndedByInterrupt} {
		w.r.Plan.EndedBy, levers.r.Plan.EndedBy = ended, ended
		for code, w := range map[string]*writer{trace.TooShort: w, trace.CostUnknown: w,
			trace.CostUnsure: w, analysis.Unclear: w, analysis.TooFewRounds: w,
			advise.EffectsUnclear: levers} {
			f := analysis.Finding{Code: code, Rows: []int{0}, N: 2, Of: 3}
			got := w.fill(find(code).text, []analysis.Finding{f})
			if strings.Contains(got, "--budget") != (ended == sample.EndedByBudget) {
				t.Errorf("%s, ended by %s: %q", code, ended, got)
			}
		}
	}
}
