package endpoints

import (
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// FewReplies is the number of replies of which one that waits in the server's TCP is mentioned.
const FewReplies = 20

// exchanged returns the routes on which it is known where the time of an exchange goes, and, as
// unclear, the others, by reason.
func exchanged(r *analysis.Report) (out, unclear []analysis.Finding) {
	var unknown reasons
	for i, c := range r.Cells {
		if c.Load == workload.Chat || c.Load == workload.Batch {
			continue
		}
		if c.Evidence == nil {
			unknown.add(c.Facts[sample.FactExchangesUnseen], i)
		} else if why, ok := c.Evidence.Clear(); !ok {
			unknown.add(why, i)
		} else {
			out = append(out, analysis.Finding{Code: Exchanged, Cells: []int{i}})
		}
	}
	return out, unknown.findings(NotExchanged)
}

// traceable returns the routes that toll trace would divide further, or nil unless packets showed
// their servers on this machine: only then it would run here.
func traceable(r *analysis.Report) []analysis.Finding {
	f := analysis.Finding{Code: Comparable}
	for i, c := range r.Cells {
		if c.Load == workload.Batch || c.Facts["from"] != "" || !c.Proven() || distant(c.Evidence) {
			continue
		}
		if f.Cells = append(f.Cells, i); c.Load != workload.Exec { // it would need a login, or a prompt
			return []analysis.Finding{{Code: Attachable, Cells: []int{i}}}
		}
	}
	return some(f)
}

// distant reports whether the server is on another machine.
func distant(e *sample.Evidence) bool { return len(e.Hops) > 0 && e.Hops[0].Machine != "" }

// reasons groups routes by a reason.
type reasons struct {
	order []string
	by    map[string][]int
}

// add adds a route. It ignores an empty reason.
func (x *reasons) add(why string, route int) {
	if why == "" {
		return
	}
	if x.by == nil {
		x.by = map[string][]int{}
	}
	if x.by[why] == nil {
		x.order = append(x.order, why)
	}
	x.by[why] = append(x.by[why], route)
}

// findings returns a finding for each reason.
func (x *reasons) findings(code string) (out []analysis.Finding) {
	for _, why := range x.order {
		out = append(out, analysis.Finding{Code: code, What: why, Cells: x.by[why]})
	}
	return out
}
