package analysis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/sample"
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
	var out []string
	said := map[sample.Cell]int{} // cell without its load -> index in out
	for i, s := range j.series {
		model := s.cell
		model.On = onLab
		b := slices.IndexFunc(j.series, func(o *series) bool { return o.cell == model })
		if s.cell.On == onLab || s.cell.Control || b < 0 || j.failed(i) || j.failed(b) {
			continue
		}
		x := j.against(i, b, Primary(s.load), "the lab")
		if x.N == 0 {
			continue
		}
		text := words(s.load, x)
		cell := s.cell
		cell.Load = ""
		if at, ok := said[cell]; ok {
			out[at] = strings.TrimSuffix(out[at], ".") + " and " + text + "."
			continue
		}
		said[cell] = len(out)
		out = append(out, fmt.Sprintf("%s on %s, from %s: %s.", label(s.cell), s.cell.On, s.cell.From, text))
	}
	return out
}
