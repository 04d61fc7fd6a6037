package judge

import "github.com/bridgetoll/bridgetoll/internal/record/sample"

// SoFar judges the file of a run that is still going on. The report leaves out unvisited cells, and
// a missing end of the file is not an error.
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
	at := make([]int, len(p.Cells)) // new index, by index in the plan
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
