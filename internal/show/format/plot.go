package format

import (
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

const mostPlot = 41 // columns: wider plots do not show more

// draw draws the plot as a column, in the space that the other texts of a line leave free.
func (g *grid) draw(line int) {
	if !g.plotted {
		return
	}
	g.plotted = false
	p := g.Plot
	columns := min(mostPlot, line-g.width()-g.gap)

	axis := p.Axis(columns)
	at := g.shown(p.Before)
	var texts []string
	for _, r := range g.rows {
		texts = append(texts, drawn(*p, axis, r.Cells[p.Column].Number, columns))
	}
	g.Columns = slices.Insert(slices.Clone(g.Columns), at,
		document.Column{Head: [2]string{"", axisText(*p, axis, columns)}, Width: columns})
	g.widths = slices.Insert(g.widths, at, columns)
	for n := range g.texts {
		g.texts[n] = slices.Insert(g.texts[n], at, texts[n])
		g.Rows[n].Cells = slices.Insert(slices.Clone(g.Rows[n].Cells), at, document.Cell{})
	}
}

// drawn returns the plot of a number. "│" marks the baseline, dots mark the range that counts as
// the same.
func drawn(p document.Plot, axis document.Axis, n *document.Number, columns int) string {
	out := []rune(strings.Repeat(" ", columns))
	at := func(x float64) int { return axis.At(x, columns) }
	for i := at(p.Baseline - p.Same); i <= at(p.Baseline+p.Same); i++ {
		out[i] = '·'
	}
	base := at(p.Baseline)
	out[base] = '│'
	if n == nil {
		return string(out)
	}
	if n.Low != nil && n.High != nil {
		for i := at(*n.Low); i <= at(*n.High); i++ {
			out[i] = '─'
			if i == base {
				out[i] = '┼'
			}
		}
	}
	if !p.Bars {
		if !n.Varies {
			out[at(n.Value)] = '●'
		}
		return string(out)
	}
	for i := min(at(n.Value), base); i <= max(at(n.Value), base); i++ {
		if i != base {
			out[i] = '━'
		}
	}
	return string(out)
}

func axisText(p document.Plot, axis document.Axis, columns int) string {
	out := []rune(strings.Repeat(" ", columns))
	values, texts := axis.Labels(p.Scale)
	free := 0
	for i, x := range values {
		label := []rune(texts[i])
		from := min(max(0, axis.At(x, columns)-len(label)/2), columns-len(label))
		if from < free {
			continue
		}
		copy(out[from:], label)
		free = from + len(label) + 1
	}
	return string(out)
}
