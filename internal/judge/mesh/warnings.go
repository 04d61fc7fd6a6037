package mesh

import (
	"math"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/mesh/model"
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
	// WarnFewSweeps: N sweeps tell too little about the metrics in Values, or about any link if
	// there are none.
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
	var known []int
	for k, n := range m.Nodes {
		if n.Boot != "" {
			known = append(known, k)
		}
	}
	all := analysis.Grouped(known, func(k int) string { return m.Nodes[k].Boot })
	return slices.DeleteFunc(all, func(nodes []int) bool { return len(nodes) < 2 })
}

type marks struct {
	all [][]bool
	// out and in mark the links from the row's node to the column's and back that count against the
	// row's node. A fault of its partner does not.
	out, in [][]bool
}

// markLinks marks the links whose slowness a fault explains by at least half, in logarithms.
func markLinks(fit *model.Fit, faults []model.Fault) marks {
	m := marks{square(fit.Nodes), square(fit.Nodes), square(fit.Nodes)}
	for _, x := range faults {
		mark := func(a, b int, factor float64) {
			if a == b || !(fit.Slowness(a, b)/fit.Level >= math.Sqrt(factor)) {
				return
			}
			m.all[a][b] = true
			m.out[a][b] = m.out[a][b] || slices.Contains(x.Nodes, a)
			m.in[b][a] = m.in[b][a] || slices.Contains(x.Nodes, b)
		}
		switch x.Kind {
		case model.Link, model.LinkWay:
			mark(x.Nodes[0], x.Nodes[1], 0)
			if x.In {
				mark(x.Nodes[1], x.Nodes[0], 0)
			}
		case model.Apart:
			for j := range fit.Nodes {
				for _, i := range x.Nodes {
					if !slices.Contains(x.Nodes, j) {
						mark(i, j, x.Factor)
						mark(j, i, x.Factor)
					}
				}
			}
		case model.Node, model.Direction:
			for i, j := x.Nodes[0], 0; j < fit.Nodes; j++ {
				if x.Out {
					mark(i, j, fit.Out[i].Factor)
				}
				if x.In {
					mark(j, i, fit.In[i].Factor)
				}
			}
		}
	}
	return m
}

func (m marks) has(a, b int) bool { return m.all != nil && m.all[a][b] }

func square(n int) [][]bool {
	out := make([][]bool, n)
	for i := range out {
		out[i] = make([]bool, n)
	}
	return out
}

func trues(xs []bool) int {
	n := 0
	for _, x := range xs {
		if x {
			n++
		}
	}
	return n
}
