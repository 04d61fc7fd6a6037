package analysis

import (
	"fmt"
	"slices"
)

// onLab is the backend that others are held against.
const onLab = "lab"

// builtBy are the backends that built the cells, in the cells' order.
func builtBy(cells []Cell) []string {
	var out []string
	for _, c := range cells {
		if !slices.Contains(out, c.On) {
			out = append(out, c.On)
		}
	}
	return out
}

// sayOn begins a finding about one backend's cells, where there are others.
func sayOn(cells []Cell, on string) string {
	if len(builtBy(cells)) < 2 {
		return ""
	}
	return "On " + on + ": "
}

// againstLab holds each cell that another backend built against the lab's same
// cell: how true the lab's model is here.
func (j *judged) againstLab() []string {
	var say sayings
	for i, s := range j.series {
		model := s.cell
		model.On = onLab
		b := slices.IndexFunc(j.series, func(o *series) bool { return o.cell == model })
		if s.cell.On == onLab || s.cell.Control || b < 0 || j.failed(i) || j.failed(b) {
			continue
		}
		if x := j.against(i, b, Primary(s.load), "the lab"); x.N > 0 {
			say.add(s.cell, fmt.Sprintf("%s on %s, from %s", label(s.cell), s.cell.On, s.cell.From), words(s.load, x))
		}
	}
	return say.out
}
