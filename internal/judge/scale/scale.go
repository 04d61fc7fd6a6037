// Package scale judges how a mode's throughput scales with servers, clients and processes.
package scale

import (
	"cmp"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Judge judges a results file as a scaling study.
func Judge(f *sample.File) *analysis.Report {
	r := analysis.Open(f).Report()
	sortByMode(r.Cells)
	if len(r.Cells) == 0 {
		r.Found = []analysis.Finding{{Code: analysis.NothingMeasured}}
		return r
	}
	r.Found = append(Findings(r), analysis.Finding{Code: analysis.AllWitnessed}, biggest(r.Cells))
	return r
}

// sortByMode keeps the plan's order of placements, loads and shapes, and puts a mode's shapes
// together.
func sortByMode(cells []analysis.Cell) {
	type block struct {
		from            mode.Placement
		load, on, label string
	}
	order := map[block]int{}
	of := func(c analysis.Cell) block { return block{c.From, c.Load, c.On, c.Label()} }
	loads := map[block]int{}
	for _, c := range cells {
		b := of(c)
		if order[b] == 0 {
			order[b] = len(order) + 1
		}
		b.label = ""
		if loads[b] == 0 {
			loads[b] = len(loads) + 1
		}
	}
	slices.SortStableFunc(cells, func(a, b analysis.Cell) int {
		la, lb := of(a), of(b)
		la.label, lb.label = "", ""
		return cmp.Or(cmp.Compare(loads[la], loads[lb]), cmp.Compare(order[of(a)], order[of(b)]))
	})
}

func sameMode(a, b analysis.Cell) bool {
	return a.Label() == b.Label() && a.From == b.From && a.Load == b.Load && a.On == b.On
}
