package comparison

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

var limiters = map[string]string{
	"client core":  "the client's CPU core",
	"server core":  "the server's CPU core",
	"proxy":        "the CPU time of the relaying process",
	"softirq core": "the CPU core that handles packets", "all cores": "the CPU: all cores are busy",
}

func limits(cells []analysis.Cell) string {
	var by []string
	rows := 0
	for _, c := range cells {
		if c.Load != workload.Bulk {
			continue
		}
		w := c.LimitedBy
		if c.FillsLink() {
			w = c.Link()
		}
		if rows++; !slices.Contains(by, w) {
			by = append(by, w)
		}
	}
	if len(by) == 1 && strings.HasPrefix(by[0], "the ") {
		text := "Every mode's throughput is limited by " + by[0]
		if rows > 1 {
			text += " and says nothing about the modes: compare CPU time per byte"
		}
		return text + "."
	}
	if len(by) == 1 && limiters[by[0]] != "" {
		return "Every mode's throughput is limited by " + limiters[by[0]] + "."
	}
	return ""
}

func uncertain(r *analysis.Report) string {
	var t analysis.Tally
	for _, c := range r.Cells {
		if r.Plan.OnlyUnpaced(c) {
			continue
		}
		if x := c.Metrics[c.Primary].Ratio; x != nil && !x.Undecided() {
			t.Add(x.Verdict, x.N, x.Epochs)
		}
	}
	said := t.Sentence()
	before, _, ok := strings.Cut(said, ": measure longer")
	if open, paced := unclearOnes(r); ok && 2*paced > open {
		return fmt.Sprintf("%s, mostly because %s's pacing differs from run to run: "+
			"--congestion reno measures without it.", before, r.Environment.Congestion)
	}
	return said
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
