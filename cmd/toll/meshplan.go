package main

import (
	"fmt"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// The number of tournament rounds that a mesh's plan prints, of phases in each round, and of pairs
// in each phase.
const (
	shownRounds = 5
	shownPhases = 6
	shownPairs  = 6
)

// meshSections describes what a run of a mesh would do.
func meshSections(p sample.Plan) []document.Section {
	m := p.Mesh
	n := len(m.Nodes)
	text := fmt.Sprintf("%d nodes, %d pairs, %d rounds per sweep, about %.1f s per round and %.0f s per sweep; ",
		n, n*(n-1)/2, plan.MeshRounds(p), plan.RoundTime(p), plan.SweepTime(p))
	if m.Sweeps > 0 {
		text += fmt.Sprintf("%d sweeps", m.Sweeps)
	} else {
		text += fmt.Sprintf("sweeps until each node's values are known to ± %g %% (at least %d sweeps) or %g s have passed (at least one sweep)",
			100*p.Precision, plan.MinSweeps, p.Budget)
	}
	atOnce := ""
	if m.AtOnce > 0 {
		atOnce = fmt.Sprintf("at most %d pairs at once", m.AtOnce)
	}
	head := document.Section{Blocks: lines(fmt.Sprintf("%s; seed %d", text, p.Seed), overBudget(p), atOnce)}
	head.Add(loadLines(p, nil)...)
	first := document.Section{Title: document.Plainly("The first sweep, client → server:")}
	said := func(level int, format string, n int) {
		first.Add(document.Paragraph{Level: level, Text: document.Plainly(fmt.Sprintf(format, n))})
	}
	for round := range min(shownRounds, plan.MeshRounds(p)) {
		said(1, "round %d", round+1)
		phases := plan.MeshRound(p, 0, round)
		first.Add(phaseTable(m, phases[:min(shownPhases, len(phases))]))
		if left := len(phases) - shownPhases; left > 0 {
			said(2, "and %d phases more", left)
		}
	}
	if left := plan.MeshRounds(p) - shownRounds; left > 0 {
		said(1, "and %d rounds more", left)
	}
	return []document.Section{head, first}
}

// phaseTable lists the load and the first pairs of each phase.
func phaseTable(m *sample.Mesh, phases []plan.Phase) document.Table {
	t := document.Table{Level: 2, Columns: []document.Column{{Width: 4}, {}}}
	for _, ph := range phases {
		var pairs []string
		for i, x := range ph.Pairs {
			if i == shownPairs {
				pairs = append(pairs, fmt.Sprintf("%d more", len(ph.Pairs)-i))
				break
			}
			pairs = append(pairs, m.Nodes[x[0]].Name+" → "+m.Nodes[x[1]].Name)
		}
		t.Rows = append(t.Rows, document.Row{Cells: document.Texts(ph.Load.Kind, strings.Join(pairs, ", "))})
	}
	return t
}
