package comparison

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// limits returns what limits the throughput of all modes, or nil if there is no such thing.
func limits(r *analysis.Report) []analysis.Finding {
	var by []string
	f := analysis.Finding{Code: Limited}
	for i, c := range r.Cells {
		if c.Load != workload.Bulk {
			continue
		}
		w := c.LimitedBy
		if c.FillsLink() {
			w = c.Link()
		}
		f.Cells = append(f.Cells, i)
		if !slices.Contains(by, w) {
			by = append(by, w)
		}
	}
	switch {
	case len(by) != 1 || by[0] == "":
		return nil
	case r.Cells[f.Cells[0]].FillsLink() && len(f.Cells) > 1:
		f.Code = HiddenByLink
	}
	return []analysis.Finding{f}
}

// undecided returns how many verdicts are unclear, and why, or nil if none is.
func undecided(r *analysis.Report) []analysis.Finding {
	var t analysis.Tally
	for _, c := range r.Cells {
		if r.Plan.OnlyUnpaced(c) {
			continue
		}
		if x := c.Metrics[c.Primary].Ratio; x != nil && !x.Undecided() {
			t.Add(x.Verdict, x.N, x.Epochs)
		}
	}
	f, ok := t.Finding()
	if !ok {
		return nil
	}
	if open, paced := unclearOnes(r); f.Code == analysis.Unclear && 2*paced > open {
		f.Code = MostlyPacing
	}
	return []analysis.Finding{f}
}

// unclearOnes returns the number of cells whose verdict is unclear, and of those whose interval was
// widened because of pacing.
func unclearOnes(r *analysis.Report) (open, paced int) {
	for _, c := range r.Cells {
		x := c.Metrics[c.Primary].Ratio
		if x == nil || x.Verdict != stats.Unclear || x.Undecided() || r.Plan.OnlyUnpaced(c) {
			continue
		}
		open++
		if slices.ContainsFunc(c.Warnings, func(w analysis.Warning) bool {
			return w.Code == analysis.Repeats
		}) {
			paced++
		}
	}
	return open, paced
}
