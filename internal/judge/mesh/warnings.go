package mesh

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func failedPairs(pairs []sample.PairVisit) int {
	n := 0
	for _, v := range pairs {
		if v.Failure != "" {
			n++
		}
	}
	return n
}

// The codes of warnings.
const (
	// WarnFewSweeps: N sweeps tell too little about the metrics in Values, or about any link if there
	// are none.
	WarnFewSweeps = "few-sweeps"
	TwoNodes      = "two-nodes"     // either may be the slow one
	Doubtful      = "doubtful"      // N links were slow in too few visits
	DoubtfulLoss  = "doubtful-loss" // N links lost packets in too few visits
	FailedVisits  = "failed-visits" // N of Of, the last one because of Why
	SameMachine   = "same-machine"  // the nodes in Rows
	OtherMTU      = "mtu"           // nodes have different MTUs
)

// warnings returns warnings about a mode of a mesh, which show/sentence words.
func (m *Mesh) warnings(f *sample.File, fs fits) (out []analysis.Finding) {
	add := func(is bool, x analysis.Finding) {
		if is {
			out = append(out, x)
		}
	}
	unknown := fs.unknown()
	add(len(m.Metrics) > 0 && (len(unknown) > 0 || f.End.Sweeps < stats.MinJudged),
		analysis.Finding{Code: WarnFewSweeps, N: f.End.Sweeps, Values: unknown})
	add(len(m.Nodes) == 2, analysis.Finding{Code: TwoNodes})
	add(m.Doubtful > 0, analysis.Finding{Code: Doubtful, N: m.Doubtful})
	add(m.DoubtfulLoss > 0, analysis.Finding{Code: DoubtfulLoss, N: m.DoubtfulLoss})
	bad := analysis.Finding{Code: FailedVisits, Of: len(f.Pairs)}
	for _, v := range f.Pairs {
		if v.Failure != "" {
			bad.N, bad.Why = bad.N+1, v.Failure
		}
	}
	add(bad.N > 0, bad)
	for _, nodes := range m.sharing() {
		add(true, analysis.Finding{Code: SameMachine, Rows: nodes})
	}
	mtus := map[int]bool{}
	for _, n := range m.Nodes {
		mtus[n.MTU] = mtus[n.MTU] || n.MTU > 0
	}
	delete(mtus, 0)
	add(len(mtus) > 1, analysis.Finding{Code: OtherMTU})
	return out
}

// unknown returns the metrics in which slow cannot be told from noise, with their visits.
func (fs fits) unknown() map[string]float64 {
	var out map[string]float64
	for _, l := range loadsOfMesh {
		fit := fs.of[l.metric]
		if fit == nil || fit.Visits == 0 || fit.Known() || fit.Alone {
			continue
		}
		if out == nil {
			out = map[string]float64{}
		}
		out[l.metric] = float64(fit.Visits)
	}
	return out
}

// sharing returns the nodes, by index, that are the same machine.
func (m *Mesh) sharing() [][]int {
	at := map[string]int{}
	var all [][]int
	for k, n := range m.Nodes {
		if n.Boot == "" {
			continue
		}
		i, ok := at[n.Boot]
		if !ok {
			i = len(all)
			at[n.Boot] = i
			all = append(all, nil)
		}
		all[i] = append(all[i], k)
	}
	return slices.DeleteFunc(all, func(nodes []int) bool { return len(nodes) < 2 })
}
