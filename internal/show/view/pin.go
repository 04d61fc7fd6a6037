package view

import (
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// pinned returns text such as ", on one CPU", or "" if all rows have the same placement.
func pinned(pin string, all []string) string {
	if pin == "" || !slices.ContainsFunc(all, func(other string) bool { return other != pin }) {
		return ""
	}
	return ", on " + analysis.PinWords(pin)
}

func pinsOf[T any](rows []T, of func(T) string) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = of(r)
	}
	return out
}

func sideBySide(r *analysis.Report) bool { return r.Plan.ManyPins() && viewOf(r).pins }

// tableGroups returns the rows of each table: first the rows of the first CPU placement, then the
// rows that have a result only in another one.
func tableGroups(r *analysis.Report) [][]analysis.Cell {
	all := groups(r.Cells)
	if !sideBySide(r) {
		return all
	}
	var out [][]analysis.Cell
	for _, g := range all {
		k := slices.IndexFunc(out, func(o []analysis.Cell) bool {
			first := g[0]
			first.Pin = o[0].Pin
			return sameGroup(first, o[0])
		})
		if k < 0 {
			out = append(out, g)
			continue
		}
		for _, c := range g {
			if _, ok := r.WithPin(c, out[k][0].Pin); !ok {
				out[k] = append(out[k], c)
			}
		}
	}
	return out
}

func onPin(r *analysis.Report, pin string,
	of func(analysis.Cell) document.Cell) func(analysis.Cell) document.Cell {
	return func(c analysis.Cell) document.Cell {
		if c, ok := r.WithPin(c, pin); ok {
			return of(c)
		}
		return nothing
	}
}

// pinColumns returns first, and the columns for added time, ratio and figure of each CPU placement.
// Each has its own verdict, so marks take the place of a column of verdicts.
func pinColumns(r *analysis.Report, cells []analysis.Cell, first []column,
	baseline string) []column {
	c := cells[0]
	unit, scale := fitting(r, c.Load, c.Primary)
	added, hasAdded := briefAdded(r, cells)
	out := first
	for _, p := range r.Plan.Pins {
		at := len(out)
		share := percentCell(c.Primary, !hasAdded)
		if hasAdded {
			out = append(out, column{texts("", "added "+added.Head[1]),
				onPin(r, p.Name, marked(added.cell))})
		} else {
			share = marked(share)
		}
		out = append(out, column{document.Column{
			Head: [2]string{"", percentHead + " " + baseline}, Spare: hasAdded},
			onPin(r, p.Name, share)},
			column{document.Column{Head: [2]string{"", unit}, Right: true},
				onPin(r, p.Name, shown(c.Primary, scale))})
		out[at].Head[0] = analysis.PinWords(p.Name) // covers the next columns too
	}
	return out
}

// marked adds the mark of the verdict.
func marked(of func(analysis.Cell) document.Cell) func(analysis.Cell) document.Cell {
	return func(c analysis.Cell) document.Cell {
		cell := of(c)
		if x := c.Metrics[c.Primary].Ratio; x != nil && !c.Baseline {
			cell.Text = strings.TrimSpace(cell.Text + " " + x.Mark())
			cell.Style = styleOf(x.Verdict)
		}
		return cell
	}
}
