package analysis

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// Witnessed returns the sentence that every row was witnessed. It names the rows that were
// witnessed only in part.
func Witnessed(r *Report) string {
	said := "Every row was witnessed: its bytes were counted on each hop of its path."
	if len(r.Failed) > 0 {
		said = strings.Replace(said, "row", "row with a result", 1)
	}
	unseen := map[string][]string{} // rows, by the part of them that is not witnessed
	for _, c := range r.Cells {
		if why := c.Facts[sample.FactNotWitnessed]; why != "" &&
			!slices.Contains(unseen[why], c.Label()) {
			unseen[why] = append(unseen[why], c.Label())
		}
	}
	if len(unseen) == 0 {
		return said
	}
	said = strings.Replace(said, "on each hop of its path", "wherever toll could read counters",
		1) + " Not witnessed:"
	for i, why := range slices.Sorted(maps.Keys(unseen)) {
		if i > 0 {
			said += ";"
		}
		said += fmt.Sprintf(" of %s, %s", printable.List(unseen[why]), why)
	}
	return said + "."
}

// Placements returns where the clients of the cells are, in the cells' order.
func Placements(cells []Cell) []mode.Placement {
	return Distinct(cells, func(c Cell) mode.Placement { return c.From })
}

// Backends returns the backends that built the cells, in the cells' order.
func Backends(cells []Cell) []string {
	return Distinct(cells, func(c Cell) string { return c.On })
}

// Distinct returns the distinct results of calling of, in order.
func Distinct[E any, T comparable](all []E, of func(E) T) []T {
	var out []T
	for _, c := range all {
		if x := of(c); !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

// Grouped returns the elements with equal keys together. The groups are in the order of their first
// elements.
func Grouped[E any, K comparable](all []E, key func(E) K) (out [][]E) {
	at := map[K]int{}
	for _, x := range all {
		k := key(x)
		i, ok := at[k]
		if !ok {
			i = len(out)
			at[k], out = i, append(out, nil)
		}
		out[i] = append(out[i], x)
	}
	return out
}

// LoadAt returns a cell's load, in a sweep at its point.
func (r *Report) LoadAt(c Cell) sample.Load { return r.Plan.Loads.At(c.Cell) }
