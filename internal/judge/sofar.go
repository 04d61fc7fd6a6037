package judge

import "github.com/bridgetoll/bridgetoll/internal/record/sample"

// SoFar judges the file of a run that goes on: cells that were not visited yet are not in the
// report, and that the file has no end is no fault of it.
func SoFar(f *sample.File) Report {
	if !f.Truncated {
		return Judge(f)
	}
	g := *f
	g.Truncated = false
	p := &g.Header.Plan
	visited := make([]bool, len(p.Cells))
	for _, v := range f.Visits {
		visited[v.Cell] = true
	}
	at := make([]int, len(p.Cells)) // where a cell is among those that were visited
	p.Cells = nil
	for i, c := range f.Header.Plan.Cells {
		at[i] = len(p.Cells)
		if visited[i] {
			p.Cells = append(p.Cells, c)
		}
	}
	if len(p.Cells) == len(at) {
		return Judge(&g)
	}
	g.Visits = append([]sample.Visit{}, f.Visits...)
	for i := range g.Visits {
		g.Visits[i].Cell = at[g.Visits[i].Cell]
	}
	g.Changes = nil
	for _, c := range f.Changes {
		var cells []int
		for _, i := range c.Cells {
			if visited[i] {
				cells = append(cells, at[i])
			}
		}
		if len(cells) > 0 || len(c.Cells) == 0 {
			c.Cells = cells
			g.Changes = append(g.Changes, c)
		}
	}
	return Judge(&g)
}
