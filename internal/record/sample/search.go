package sample

import (
	"math"
	"slices"
)

type search struct {
	Search
	from  int
	cells []int
	steps [2]int // first and last+1 of the plan's steps
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
	for k, s := range p.Steps {
		if s.Begins != nil {
			all = append(all, search{Search: *s.Begins, from: s.Round, steps: [2]int{k + 1}})
		}
		last := &all[len(all)-1]
		last.steps[1] = k + 1
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
	kept := map[int]bool{}
	for _, i := range s.cells {
		kept[i] = true
	}
	out := f.Keep(func(cell int) bool { return kept[cell] })
	p := &out.Header.Plan
	p.Baseline, p.Elsewhere = s.Baseline, s.Elsewhere
	p.Levers, p.Also = s.Levers, nil
	p.Steps = p.Steps[s.steps[0]:s.steps[1]:s.steps[1]]
	p.Skipped = nil
	for _, x := range f.Header.Plan.Skipped {
		if m := string(x.Mode); m == s.Baseline || m == s.Elsewhere ||
			slices.ContainsFunc(s.Levers, func(l Lever) bool {
				return l.Mode == x.Mode
			}) {
			p.Skipped = append(p.Skipped, x)
		}
	}
	out.Visits = slices.DeleteFunc(out.Visits, func(v Visit) bool {
		return v.Round < s.from || v.Round >= until
	})
	out.Changes = slices.DeleteFunc(out.Changes, func(c Change) bool { return c.Round >= until })
	return out
}

// Keep returns the file with only some cells of its plan, by their index, and only what is about
// these: its steps, visits and changes have the new indexes. The file itself is not changed.
func (f *File) Keep(kept func(cell int) bool) *File {
	out, plan := *f, f.Header.Plan
	p := &out.Header.Plan
	p.Cells, p.Steps, out.Visits, out.Changes = nil, nil, nil, nil
	index := map[int]int{} // new index, by that in the plan
	for i, c := range plan.Cells {
		if kept(i) {
			index[i] = len(p.Cells)
			p.Cells = append(p.Cells, c)
		}
	}
	renumbered := func(cells []int) (out []int) {
		for _, i := range cells {
			if to, ok := index[i]; ok {
				out = append(out, to)
			}
		}
		return out
	}
	first := plan.own()
	for _, s := range plan.Steps {
		added := s.Cells
		s.Cells = nil
		for i, c := range added {
			if _, ok := index[first+i]; ok {
				s.Cells = append(s.Cells, c)
			}
		}
		first += len(added)
		s.Active = renumbered(s.Active)
		p.Steps = append(p.Steps, s)
	}
	for _, v := range f.Visits {
		if i, ok := index[v.Cell]; ok {
			v.Cell = i
			out.Visits = append(out.Visits, v)
		}
	}
	for _, c := range f.Changes {
		all := c.Cells
		if c.Cells = renumbered(all); len(c.Cells) > 0 || len(all) == 0 {
			out.Changes = append(out.Changes, c)
		}
	}
	return &out
}
