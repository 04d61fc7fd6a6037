package show

import (
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// table prints a table in the first of its layouts that fits; where none does, it is split as the table
// says, or made narrower by fitted.
func (p *printer) table(t document.Table) {
	if l, ok := p.shared[t.Fit]; ok {
		p.fitted(t, l)
		return
	}
	switch t.Split {
	case document.SplitEven:
		p.splitEven(t)
		return
	case document.SplitFull:
		p.splitFull(t)
		return
	}
	l, ok := p.fit([]document.Table{t}, t.Layouts)
	switch {
	case ok:
	case t.Instead != "":
		p.wrapped(spaces(t.Level), t.Instead, document.Words)
		return
	case t.Split == document.SplitInTwo:
		p.parts([]document.Table{part(t, 1, t.At), part(t, t.At, len(t.Columns))}, document.Layout{})
		return
	}
	p.fitted(t, l)
}

// fitted prints a table in a layout. Where it is too wide, texts are cut that may be cut, or else broken
// into lines in their cells; or else the table is split into equal parts of at least three columns, or
// each of its rows becomes a block.
func (p *printer) fitted(t document.Table, l document.Layout) {
	if g, ok := p.squeezed(t, l); ok {
		p.grid(g)
		return
	}
	l.Bare = true
	spacious := l
	spacious.Tight = false
	const least = 2 // columns beside the first
	for n := 2; ; n++ {
		parts, each := equalParts(t, l, n)
		if each < least {
			p.blocks(lay(t, l))
			return
		}
		for _, l := range []document.Layout{spacious, l} {
			if !slices.ContainsFunc(parts, func(t document.Table) bool { _, ok := p.squeezed(t, l); return !ok }) {
				p.parts(parts, l)
				return
			}
		}
	}
}

// equalParts splits the columns that a layout keeps into n tables, each with the first column, and
// returns how many others they have at most.
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

// squeezed lays a table out, with texts that are cut or broken where it is too wide otherwise.
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

// parts prints the parts of a table, with an empty line between them.
func (p *printer) parts(parts []document.Table, l document.Layout) {
	for i, t := range parts {
		if i > 0 {
			p.line("")
		}
		p.fitted(t, l)
	}
}

// part is a table of the first column and those of a range. A head above several columns stands above
// those of them that the part has, and the rows' notes are in the first part only.
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

// splitEven prints as many equal tables as it takes for none to be too wide.
func (p *printer) splitEven(t document.Table) {
	for n := len(t.Columns) - 1; ; n = (n + 1) / 2 {
		var parts []document.Table
		for from := 1; from < len(t.Columns); from += n {
			parts = append(parts, part(t, from, min(from+n, len(t.Columns))))
		}
		l, ok := p.fit(parts, t.Layouts)
		if !ok && n > 1 {
			continue
		}
		p.parts(parts, l)
		return
	}
}

// splitFull prints tables of as many columns as fit.
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

// leastCut is what a cut leaves of texts in columns that do not say it.
const leastCut = 12

// cut shortens texts that may be cut until the table has at most the given number of columns.
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
				row[i] = shorten(row[i], most)
			}
		}
		g.measure()
	}
}

// mostLines is how many lines a cell may have.
const mostLines = 4

// wrap breaks texts and heads at words until the table has at most the given number of columns, the
// widest column first. It reports whether that is enough. Figures are not broken.
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

// narrowest returns the columns that a column needs if its head, and its texts unless they are figures,
// are broken at words.
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

// inCell breaks a text at words into lines of at most the given number of columns.
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

// blocks prints each row as a block: the text of its first column, and below it a line for each of the
// others that has one, behind its head.
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
				p.wrapped(spaces(g.Level), p.styled(r.Style, text), document.Words)
			default:
				if heads[i] != "" {
					text = heads[i] + ": " + text
				}
				p.wrapped(spaces(g.Level+1), p.styled(c.Style, text), document.Words)
			}
		}
		p.underRow(g, n)
	}
}

// titles returns the heads of the columns in one line each, with what stands above several of them.
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
