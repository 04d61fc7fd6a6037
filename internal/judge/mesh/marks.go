package mesh

import (
	"math"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/mesh/model"
)

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
