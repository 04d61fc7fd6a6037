package endpoints

import (
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Ends are the facts of a route's devices at both ends.
var Ends = []struct{ Whose, Device, Off string }{
	{"its device", sample.FactDevice, sample.FactOffloadsOff},
	{"the server's device", sample.FactServerDevice, sample.FactServerOffloadsOff},
}

// switched returns a finding for each route that has less throughput than another one and has
// offloads off at one end that are on for the other route.
func switched(r *analysis.Report) (out []analysis.Finding) {
	for k, c := range r.Cells {
		m := c.Metrics[c.Primary]
		if m.Ratio == nil || !m.Higher {
			continue
		}
		i := slices.IndexFunc(r.Cells, func(b analysis.Cell) bool {
			return b.Baseline && b.Load == c.Load
		})
		if i < 0 {
			continue
		}
		slow, fast := k, i
		switch m.Ratio.Verdict {
		case stats.Worse:
		case stats.Better:
			slow, fast = fast, slow
		default:
			continue
		}
		for _, e := range Ends {
			if r.Cells[fast].Facts[e.Device] != "" &&
				len(OnlyOff(r.Cells[slow].Facts[e.Off], r.Cells[fast].Facts[e.Off])) > 0 {
				out = append(out, analysis.Finding{Code: OffloadsOff, What: e.Whose,
					Cells: []int{slow, fast}})
			}
		}
	}
	return out
}

// OnlyOff returns what is in the list slow and not in the list fast.
func OnlyOff(slow, fast string) []string {
	others := strings.Split(fast, ", ")
	return slices.DeleteFunc(strings.Split(slow, ", "), func(s string) bool {
		return s == "" || slices.Contains(others, s)
	})
}
