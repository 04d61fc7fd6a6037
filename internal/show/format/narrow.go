package format

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

func (p *printer) table(t document.Table) {
	l, fits := p.shared[t.Fit]
	if !fits && t.Split != document.SplitEven && t.Split != document.SplitFull {
		l, fits = p.fit([]document.Table{t}, t.Layouts)
	}
	switch {
	case fits, t.Split == document.Whole && t.Instead == "":
		p.fitted(t, l)
	case t.Split == document.SplitEven:
		p.splitEven(t)
	case t.Split == document.SplitFull:
		p.splitFull(t)
	case t.Instead != "":
		p.wrapped(spaces(t.Level), t.Instead)
	default:
		p.parts([]document.Table{part(t, 1, t.At), part(t, t.At, len(t.Columns))},
			document.Layout{})
	}
}

// fitted prints a table. If it is too wide, fitted cuts texts, or else breaks them into lines, or
// else prints equal parts of at least three columns, or a block for each row.
func (p *printer) fitted(t document.Table, l document.Layout) {
	if g, ok := p.squeezed(t, l); ok {
		p.grid(g)
		return
	}
	l.Bare = true
	spacious := l
	spacious.Tight = false
	const least = 2 // columns next to the first
	for n := 2; ; n++ {
		parts, each := equalParts(t, l, n)
		if each < least {
			p.blocks(lay(t, l))
			return
		}
		for _, l := range []document.Layout{spacious, l} {
			if !slices.ContainsFunc(parts, func(t document.Table) bool {
				_, ok := p.squeezed(t, l)
				return !ok
			}) {
				p.parts(parts, l)
				return
			}
		}
	}
}

// equalParts splits a table into n parts. each is the largest number of columns in a part, without
// the first column.
func equalParts(t document.Table, l document.Layout, n int) (parts []document.Table, each int) {
	kept := lay(t, l).kept
	if len(kept) < 2 {
		return nil, 0
	}
	others := kept[1:]
	each = (len(others) + n - 1) / n
	from := 1
	for i := each; i < len(others); i += each {
		parts = append(parts, part(t, from, others[i]))
		from = others[i]
	}
	return append(parts, part(t, from, len(t.Columns))), each
}

// squeezed lays a table out. ok is false if it is still too wide after cutting and breaking texts.
func (p *printer) squeezed(t document.Table, l document.Layout) (g grid, ok bool) {
	g = lay(t, l)
	if g.width() <= p.width {
		return g, true
	}
	g.cut(p.width)
	if g.width() <= p.width {
		return g, true
	}
	l.Bare = true
	t.Columns = slices.Clone(t.Columns)
	for i := range t.Columns {
		t.Columns[i].Width = 0
	}
	g = lay(t, l)
	return g, g.wrap(p.width)
}

func (p *printer) parts(parts []document.Table, l document.Layout) {
	for i, t := range parts {
		if i > 0 {
			p.line("")
		}
		p.fitted(t, l)
	}
}

// part returns a table of the first column and those in [from, to). Only the first part has the
// rows' notes.
func part(t document.Table, from, to int) document.Table {
	columns := append(t.Columns[:1:1], t.Columns[from:to]...)
	for i, c := range t.Columns {
		end := min(i+c.Span, to)
		if c.Span < 2 || end <= from {
			continue
		}
		at := max(i, from)
		if at < end {
			columns[1+at-from].Head[0], columns[1+at-from].Span = c.Head[0], end-at
		}
	}
	rows := slices.Clone(t.Rows)
	for i, r := range rows {
		rows[i].Cells = append(r.Cells[:1:1], r.Cells[from:to]...)
		if from > 1 {
			rows[i].Note = ""
		}
	}
	t.Columns, t.Rows, t.Plot = columns, rows, nil
	return t
}

func (p *printer) splitEven(t document.Table) {
	var parts []document.Table
	var l document.Layout
	for n, fits := len(t.Columns)-1, false; !fits; n = (n + 1) / 2 {
		parts = nil
		for from := 1; from < len(t.Columns); from += n {
			parts = append(parts, part(t, from, min(from+n, len(t.Columns))))
		}
		l, fits = p.fit(parts, t.Layouts)
		fits = fits || n <= 1
	}
	p.parts(parts, l)
}

func (p *printer) splitFull(t document.Table) {
	for from := 1; from < len(t.Columns); {
		to := from + 1
		for to < len(t.Columns) {
			if g := lay(part(t, from, to+1), document.Layout{}); g.width() > p.width {
				break
			}
			to++
		}
		p.fitted(part(t, from, to), document.Layout{})
		from = to
	}
}

// leastCut is the Least of columns that do not set it.
const leastCut = 12

func (g *grid) cut(columns int) {
	for i, c := range g.Columns {
		over := g.width() - columns
		if c.Cut == document.NoCut || over <= 0 {
			continue
		}
		least := c.Least
		if least == 0 {
			least = leastCut
		}
		most := max(least, g.widths[i]-over)
		for _, row := range g.texts {
			if c.Cut == document.CutMiddle {
				row[i] = shortName(row[i], most)
			} else {
				row[i] = ansi.Truncate(row[i], most, "…")
			}
		}
		g.measure()
	}
}

const mostLines = 4

// wrap breaks texts at words, but no figures, beginning with the widest column. It reports whether
// the table fits.
func (g *grid) wrap(columns int) bool {
	for over := g.width() - columns; over > 0; over-- {
		widest := -1
		for i, w := range g.widths {
			if w > g.narrowest(i) && (widest < 0 || w > g.widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return false
		}
		g.widths[widest]--
	}
	for i := range g.Columns {
		head := &g.Columns[i].Head[1]
		*head = inCell(*head, g.widths[i])
		if strings.Count(*head, "\n") >= mostLines {
			return false
		}
		for _, row := range g.texts {
			row[i] = inCell(row[i], g.widths[i])
			if strings.Count(row[i], "\n") >= mostLines {
				return false
			}
		}
	}
	g.measure()
	return g.width() <= columns
}

// narrowest returns the least width of a column. Figures are not broken.
func (g *grid) narrowest(column int) int {
	c, least := g.Columns[column], 0
	if c.Span < 2 {
		least = width(c.Head[0])
	}
	longest := func(text string) {
		for _, x := range pieces(text, document.Words) {
			least = max(least, width(x.text))
		}
	}
	longest(c.Head[1])
	for n, row := range g.texts {
		if c.Right || g.Rows[n].Cells[column].Number != nil {
			least = max(least, width(row[column]))
		} else {
			longest(row[column])
		}
	}
	return least
}

func inCell(text string, columns int) string {
	if width(text) <= columns {
		return text
	}
	var lines []string
	line := ""
	for i, x := range pieces(text, document.Words) {
		switch {
		case i == 0:
			line = x.text
		case width(line+x.before+x.text) <= columns:
			line += x.before + x.text
		default:
			lines, line = append(lines, line), x.text
		}
	}
	return strings.Join(append(lines, line), "\n")
}

// blocks prints a block for each row: the first text, then a line for each other column that has a
// text.
func (p *printer) blocks(g grid) {
	heads := g.titles()
	for n, r := range g.Rows {
		p.above(g.Table, r)
		p.marks = append(p.marks, Mark{p.section, n, p.lines})
		for i, c := range r.Cells {
			text := strings.TrimSpace(cellText(g.Columns[i], c, false))
			switch {
			case text == "":
			case i == 0:
				p.wrapped(spaces(g.Level), p.styled(r.Style, text))
			default:
				if heads[i] != "" {
					text = heads[i] + ": " + text
				}
				p.wrapped(spaces(g.Level+1), p.styled(c.Style, text))
			}
		}
		p.underRow(g, n)
	}
}

func (g *grid) titles() []string {
	out := make([]string, len(g.Columns))
	over, until := "", 0
	for i, c := range g.Columns {
		if c.Span > 1 {
			over, until = c.Head[0], i+c.Span
		} else if i < until {
			c.Head[0] = over
		}
		out[i] = c.Title()
	}
	return out
}
