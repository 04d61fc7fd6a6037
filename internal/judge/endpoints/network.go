package endpoints

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// suspect returns whether it is the network, as far as that is certain. A route that differs from
// the baseline speaks for the network, unless packets show that the difference is elsewhere.
func suspect(r *analysis.Report) []analysis.Finding {
	by := map[stats.Verdict][]int{}
	inside := map[string][]int{} // by the part of the server or of the client
	judged := 0
	base := slices.IndexFunc(r.Cells, func(c analysis.Cell) bool { return c.Baseline })
	for i, c := range r.Cells {
		x := c.Metrics[c.Primary].Ratio
		if x == nil || c.Baseline {
			continue
		}
		judged++
		if base >= 0 {
			if part := outsidePath(c, r.Cells[base], *x); part != "" {
				inside[part] = append(inside[part], i)
				continue
			}
		}
		by[x.Verdict] = append(by[x.Verdict], i)
	}
	if judged > 0 && len(by[stats.Same]) == judged {
		return []analysis.Finding{{Code: NoNetwork, Cells: by[stats.Same]}}
	}
	out := append(some(analysis.Finding{Code: NetworkBetter, Cells: by[stats.Better]}),
		some(analysis.Finding{Code: NetworkWorse, Cells: by[stats.Worse]})...)
	for _, part := range []string{sample.EvidenceServer, sample.EvidenceClient} {
		out = append(out, some(analysis.Finding{Code: NotThePath, What: part,
			Cells: inside[part]})...)
	}
	return out
}

// outsidePath returns the part, the server or the client, in which a route that is better or worse
// than the baseline spends the difference. It returns "" if packets do not show that: if they show
// it on the path, or if the exchanges as captured differ by less than a quarter of what the routes do.
func outsidePath(c, base analysis.Cell, x analysis.Ratio) string {
	slow, fast, factor := c, base, x.Median
	if c.Metrics[c.Primary].Higher {
		factor = 1 / factor
	}
	switch x.Verdict {
	case stats.Worse:
	case stats.Better:
		slow, fast, factor = base, c, 1/factor
	default:
		return ""
	}
	if !slow.Proven() || !fast.Proven() || !slow.Evidence.Writes || !fast.Evidence.Writes {
		return ""
	}
	more := map[string]float64{}
	for _, p := range slow.Evidence.Parts {
		more[p.Part] += p.Last
	}
	for _, p := range fast.Evidence.Parts {
		more[p.Part] -= p.Last
	}
	whole := Division{fast.Evidence}.Sum(Last)
	added := Division{slow.Evidence}.Sum(Last) - whole
	server, client := more[sample.EvidenceServer], more[sample.EvidenceClient]
	switch {
	case added < partShare*(factor-1)*whole || added-server-client > partShare*added:
		return ""
	case server >= client:
		return sample.EvidenceServer
	}
	return sample.EvidenceClient
}
