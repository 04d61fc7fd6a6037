package sample

import (
	"math"
	"slices"
)

type search struct {
	Search
	from  int
	cells []int
	steps []Step
}

// Searches returns the file's searches in order, each as a file with its own baseline, cells,
// visits and steps. A file with one search is returned unchanged.
func (f *File) Searches() []*File {
	p := f.Header.Plan
	first := search{Search: Search{p.Baseline, p.Elsewhere, p.Levers}}
	for i := range p.own() {
		first.cells = append(first.cells, i)
	}
	all := []search{first}
	for _, s := range p.Steps {
		if s.Begins != nil {
			all = append(all, search{Search: *s.Begins, from: s.Round})
		} else {
			last := &all[len(all)-1]
			last.steps = append(last.steps, s)
		}
		last := &all[len(all)-1]
		last.cells = append(last.cells, s.Active...)
	}
	if len(all) == 1 {
		return []*File{f}
	}
	out := make([]*File, len(all))
	for i, s := range all {
		until := math.MaxInt
		if i+1 < len(all) {
			until = all[i+1].from
		}
		out[i] = f.only(s, until)
	}
	return out
}

// Now returns the plan of the search that began last.
func (p Plan) Now() Plan {
	all := (&File{Header: Header{Plan: p}}).Searches()
	return all[len(all)-1].Header.Plan
}

// own returns the number of cells that no step added.
func (p Plan) own() int {
	n := len(p.Cells)
	for _, s := range p.Steps {
		n -= len(s.Cells)
	}
	return n
}

func (f *File) only(s search, until int) *File {
	out := *f
	p := &out.Header.Plan
	p.Baseline, p.Elsewhere = s.Baseline, s.Elsewhere
	p.Levers, p.Also = s.Levers, nil
	slices.Sort(s.cells)
	s.cells = slices.Compact(s.cells)
	index := map[int]int{}
	p.Cells = make([]Cell, len(s.cells))
	for i, c := range s.cells {
		p.Cells[i], index[c] = f.Header.Plan.Cells[c], i
	}
	p.Steps = nil
	for _, step := range s.steps {
		active := make([]int, len(step.Active))
		for i, c := range step.Active {
			active[i] = index[c]
		}
		step.Active = active
		p.Steps = append(p.Steps, step)
	}
	p.Skipped = nil
	for _, x := range f.Header.Plan.Skipped {
		if m := string(x.Mode); m == s.Baseline || m == s.Elsewhere ||
			slices.ContainsFunc(s.Levers, func(l Lever) bool {
				return l.Mode == x.Mode
			}) {
			p.Skipped = append(p.Skipped, x)
		}
	}
	out.Visits = nil
	for _, v := range f.Visits {
		if i, ok := index[v.Cell]; ok && v.Round >= s.from && v.Round < until {
			v.Cell = i
			out.Visits = append(out.Visits, v)
		}
	}
	return &out
}
