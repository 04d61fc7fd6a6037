package comparison

import (
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
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
	return t.Sentence()
}
