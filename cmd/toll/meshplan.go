package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// Of a mesh's plan, so many tournament rounds are printed, so many phases of each
// and so many pairs of these.
const (
	shownRounds = 5
	shownPhases = 6
	shownPairs  = 6
)

// printMesh prints what a run of a mesh would do.
func printMesh(w io.Writer, p sample.Plan) {
	m := p.Mesh
	n := len(m.Nodes)
	fmt.Fprintf(w, "%d nodes, %d pairs, %d rounds a sweep, about %.1f s a round and %.0f s a sweep; ",
		n, n*(n-1)/2, plan.MeshRounds(p), plan.RoundTime(p), plan.SweepTime(p))
	if m.Sweeps > 0 {
		fmt.Fprintf(w, "%d sweeps", m.Sweeps)
	} else {
		fmt.Fprintf(w, "sweeps until what each node does is known to ± %g %%, after %d at least, or %g s are over, after one at least",
			100*p.Precision, plan.MinSweeps, p.Budget)
	}
	fmt.Fprintf(w, "; seed %d\n", p.Seed)
	if over := overBudget(p); over != "" {
		fmt.Fprintln(w, over)
	}
	if m.AtOnce > 0 {
		fmt.Fprintf(w, "at most %d pairs at once\n", m.AtOnce)
	}
	printLoads(w, p)
	fmt.Fprintln(w, "\nThe first sweep, client → server:")
	for round := range min(shownRounds, plan.MeshRounds(p)) {
		fmt.Fprintf(w, "  round %d\n", round+1)
		phases := plan.MeshRound(p, 0, round)
		for k, ph := range phases {
			if k == shownPhases {
				fmt.Fprintf(w, "    and %d phases more\n", len(phases)-k)
				break
			}
			var pairs []string
			for i, x := range ph.Pairs {
				if i == shownPairs {
					pairs = append(pairs, fmt.Sprintf("%d more", len(ph.Pairs)-i))
					break
				}
				pairs = append(pairs, m.Nodes[x[0]].Name+" → "+m.Nodes[x[1]].Name)
			}
			fmt.Fprintf(w, "    %-4s  %s\n", ph.Load.Kind, strings.Join(pairs, ", "))
		}
	}
	if left := plan.MeshRounds(p) - shownRounds; left > 0 {
		fmt.Fprintf(w, "  and %d rounds more\n", left)
	}
}
