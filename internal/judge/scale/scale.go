// Package scale judges how a mode's throughput scales with servers, clients and processes.
package scale

import (
	"cmp"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
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

// The codes of findings on crowds.
const (
	Scaling = "scaling" // rates of Cells, the modes in a size, by their ratios to the first size
	AtSize  = "at-size" // the same by their ratios to the baseline
	OneSize = "one-size"
	Idle    = "idle-processes"
	Growth  = "growth"       // of one mode, to its largest size
	OneIdle = "idle-process" // of one row
	Largest = "largest-crowd"
)

// Findings returns what the judged cells show, in which each mode's cells are adjacent, or nil
// without cells. It claims no more than the verdicts do.
func Findings(r *analysis.Report) (out []analysis.Finding) {
	if len(r.Cells) == 0 {
		return nil
	}
	var tally analysis.Tally
	var more []analysis.Finding
	for _, g := range largest(r.Cells) {
		c := r.Cells[g[0]]
		grown := analysis.Finding{Code: Scaling, From: c.From, On: c.On, Load: c.Load}
		held := grown
		held.Code = AtSize
		for _, i := range g {
			m := r.Cells[i].Metrics[Rate(c)]
			for _, x := range []struct {
				ratio *analysis.Ratio
				in    *analysis.Finding
			}{{m.Scaling, &grown}, {m.Ratio, &held}} {
				if x.ratio != nil {
					x.in.Cells = append(x.in.Cells, i)
					tally.Add(x.ratio.Verdict, x.ratio.N, x.ratio.Epochs)
				}
			}
		}
		for _, f := range []analysis.Finding{grown, held} {
			if len(f.Cells) > 0 {
				out = append(out, f)
			}
		}
	}
	if len(out) == 0 {
		out = []analysis.Finding{{Code: OneSize}}
	}
	starved := analysis.Finding{Code: Idle}
	for i, c := range r.Cells {
		last := i+1 == len(r.Cells) || !sameMode(c, r.Cells[i+1])
		if last && c.Metrics[Rate(c)].Scaling != nil {
			more = append(more, analysis.Finding{Code: Growth, Cells: []int{i}})
		}
		m := c.Metrics[workload.ProcessMin]
		if len(m.Rounds) == 0 || m.Median != 0 {
			continue
		}
		more = append(more, analysis.Finding{Code: OneIdle, Cells: []int{i}})
		if len(m.Rounds) >= stats.MinJudged {
			starved.Cells = append(starved.Cells, i)
		}
	}
	if len(starved.Cells) > 0 {
		out = append(out, starved)
	}
	if f, ok := tally.Finding(); ok {
		out = append(out, f)
	}
	return append(out, more...)
}

// Rate returns the metric of a crowd's throughput.
func Rate(c analysis.Cell) string { return analysis.Rate(sample.Load{Kind: c.Load}) }

// largest returns each mode's largest size, by place, load and size.
func largest(cells []analysis.Cell) [][]int {
	var last []int
	for i, c := range cells {
		if i+1 == len(cells) || !sameMode(c, cells[i+1]) {
			last = append(last, i)
		}
	}
	return analysis.Grouped(last, func(i int) sample.Cell {
		c := cells[i]
		return sample.Cell{From: c.From, Load: c.Load, On: c.On, Shape: c.Shape}
	})
}

// biggest returns the crowd with most processes.
func biggest(cells []analysis.Cell) analysis.Finding {
	most := 0
	for i, c := range cells {
		if cmp.Compare(Ends(c), Ends(cells[most])) > 0 {
			most = i
		}
	}
	return analysis.Finding{Code: Largest, Cells: []int{most}, N: Ends(cells[most])}
}

// Ends returns the number of a crowd's processes.
func Ends(c analysis.Cell) int { return c.Shape.Servers + c.Shape.Clients*c.Shape.Procs }
