package mesh

import (
	"math"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/mesh/model"
)

// marks are the links, from the row's node to the column's, that are slow or lose
// packets by a fault that is named.
type marks struct {
	all [][]bool
	// out and in are those of them that are held against the row's node: what it sends
	// to, and what it receives from the column's. What is its partner's fault is not.
	out, in [][]bool
}

// markLinks marks what each fault explains: the links that have half of it, in
// logarithms, or more.
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

// has reports whether a fault explains a link.
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
