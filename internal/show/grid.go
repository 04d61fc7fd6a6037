package show

import (
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// grid is a table as a layout has it, in texts.
type grid struct {
	document.Table // without the columns that the layout leaves out
	gap            int
	texts          [][]string // by row and column
	below          [][]string // by row
	widths         []int
	plotted        bool           // it has a plot, which is not drawn yet
	kept           []int          // the columns that the layout keeps
	rows           []document.Row // with all columns
}

// lay puts a table into a layout.
func lay(t document.Table, l document.Layout) grid {
	g := grid{Table: t, gap: 2, below: make([][]string, len(t.Rows)), plotted: t.Plot != nil && !l.Bare, rows: t.Rows}
	if l.Tight {
		g.gap = 1
	}
	var shown []int
	for i, c := range t.Columns {
		switch {
		case l.Lean && c.Spare:
		case l.Below && c.Below:
			for n, r := range t.Rows {
				if text := r.Cells[i].Text; text != "" {
					g.below[n] = append(g.below[n], text)
				}
			}
		case l.Terse && c.Quiet != "" && !slices.ContainsFunc(t.Rows, func(r document.Row) bool { return r.Cells[i].Text != c.Quiet }):
		default:
			shown = append(shown, i)
		}
	}
	g.kept = shown
	g.Columns, g.Rows = nil, slices.Clone(t.Rows)
	for _, i := range shown {
		c := t.Columns[i]
		if l.Short && c.ShortHead != "" {
			c.Head[1] = c.ShortHead
		}
		g.Columns = append(g.Columns, c)
	}
	for n, r := range t.Rows {
		g.Rows[n].Cells = nil
		var texts []string
		for _, i := range shown {
			g.Rows[n].Cells = append(g.Rows[n].Cells, r.Cells[i])
			text := cellText(t.Columns[i], r.Cells[i], l.Short)
			if t.Columns[i].Once && n > 0 && r.Cells[i].Text == t.Rows[n-1].Cells[i].Text {
				text = ""
			}
			texts = append(texts, text)
		}
		g.texts = append(g.texts, texts)
	}
	g.measure()
	return g
}

func cellText(col document.Column, c document.Cell, short bool) string {
	text := c.Text
	if short && c.Short != "" {
		text = c.Short
	}
	switch {
	case !col.Marked || text == "":
		return text
	case c.Mark == "":
		return text + " "
	}
	return text + c.Mark
}

func (g *grid) measure() {
	g.widths = make([]int, len(g.Columns))
	for i, c := range g.Columns {
		if c.Width > 0 {
			g.widths[i] = c.Width
			continue
		}
		g.widths[i] = width(c.Head[1])
		if c.Span < 2 {
			g.widths[i] = max(g.widths[i], width(c.Head[0]))
		}
		for _, row := range g.texts {
			g.widths[i] = max(g.widths[i], width(row[i]))
		}
	}
}

// gapBefore is the space before a column.
func (g *grid) gapBefore(i int) int {
	switch {
	case i == 0:
		return 0
	case g.Columns[i].Gap > 0:
		return g.Columns[i].Gap
	}
	return g.gap
}

func (g *grid) width() int {
	n := indent * g.Level
	for i, w := range g.widths {
		n += g.gapBefore(i) + w
	}
	if g.plotted {
		n += g.gap + g.Plot.Least
	}
	return n
}

// shown is where a column stands in the layout, or the next one that does.
func (g *grid) shown(column int) int {
	i, _ := slices.BinarySearch(g.kept, column)
	return i
}

// fit is the first layout in which all tables fit; the last if there is none.
func (p *printer) fit(tables []document.Table, layouts []document.Layout) (l document.Layout, ok bool) {
	if len(layouts) == 0 {
		layouts = document.Wide()
	}
	tooWide := func(t document.Table) bool {
		g := lay(t, l)
		return g.width() > p.width
	}
	for _, l = range layouts {
		if !slices.ContainsFunc(tables, tooWide) {
			return l, true
		}
	}
	return l, false
}

// table prints a table in the layout that fits, or else in parts, or cut.
func (p *printer) table(t document.Table) {
	if l, ok := p.shared[t.Fit]; ok {
		g := lay(t, l)
		g.cut(g.width() - p.width)
		p.grid(g)
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
	g := lay(t, l)
	switch {
	case ok:
	case t.Instead != "":
		p.wrapped(spaces(t.Level), t.Instead, document.Words)
		return
	case t.Split == document.SplitInTwo:
		second := part(t, t.At, len(t.Columns))
		for i := range second.Rows {
			second.Rows[i].Note = ""
		}
		p.grid(lay(part(t, 1, t.At), document.Layout{}))
		p.line("")
		p.grid(lay(second, document.Layout{}))
		return
	default:
		g.cut(g.width() - p.width)
	}
	p.grid(g)
}

// part is a table of the first column and those of a range.
func part(t document.Table, from, to int) document.Table {
	rows := slices.Clone(t.Rows)
	for i, r := range rows {
		rows[i].Cells = append(r.Cells[:1:1], r.Cells[from:to]...)
	}
	t.Columns, t.Rows = append(t.Columns[:1:1], t.Columns[from:to]...), rows
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
		for i, x := range parts {
			if i > 0 {
				p.line("")
			}
			p.grid(lay(x, l))
		}
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
		p.grid(lay(part(t, from, to), document.Layout{}))
		from = to
	}
}

// cut takes so many columns from the texts that may be cut.
func (g *grid) cut(over int) {
	for i, c := range g.Columns {
		if c.Cut == document.NoCut || over <= 0 {
			continue
		}
		most := max(c.Least, g.widths[i]-over)
		for _, row := range g.texts {
			if c.Cut == document.CutMiddle {
				row[i] = shortName(row[i], most)
			} else {
				row[i] = shorten(row[i], most)
			}
		}
		over -= max(0, g.widths[i]-most)
	}
	g.measure()
}

// grid prints heads and rows.
func (p *printer) grid(g grid) {
	g.draw(p.width)
	p.heads(g)
	for n, r := range g.Rows {
		if len(r.Above) > 0 {
			p.line(spaces(g.Level) + p.text(r.Above))
		}
		texts := slices.Clone(g.texts[n])
		for i, c := range r.Cells {
			texts[i] = p.styled(c.Style, texts[i])
		}
		p.marks = append(p.marks, Mark{p.section, n, p.lines})
		p.row(g, texts, r.Style)
		for _, text := range g.below[n] {
			p.line(spaces(g.Level+1) + p.styled(document.Faint, text))
		}
		if r.Note != "" {
			p.paragraph(document.Paragraph{Text: document.Plainly(r.Note), Level: g.Level + 1, Break: document.Words, Style: document.Faint})
		}
	}
}

// heads prints the lines above a table: two, or one if all of the upper one is empty.
func (p *printer) heads(g grid) {
	if !g.Headed() {
		return
	}
	if slices.ContainsFunc(g.Columns, func(c document.Column) bool { return c.Head[0] != "" }) {
		p.upperHeads(g)
	}
	texts := make([]string, len(g.Columns))
	for i, c := range g.Columns {
		texts[i] = c.Head[1]
	}
	p.row(g, texts, document.Faint)
}

// upperHeads prints the upper line; a head above several columns is as wide as they are.
func (p *printer) upperHeads(g grid) {
	var b strings.Builder
	b.WriteString(spaces(g.Level))
	for i := 0; i < len(g.Columns); {
		c, w, next := g.Columns[i], g.widths[i], i+1
		for ; next < i+c.Span; next++ {
			w += g.gapBefore(next) + g.widths[next]
		}
		if next < len(g.Columns) {
			w += g.gapBefore(next)
		}
		switch {
		case c.Span > 1:
			b.WriteString(align(shorten(c.Head[0], w-1), w, false))
		case next < len(g.Columns):
			own := g.widths[i]
			b.WriteString(align(c.Head[0], own, c.Right) + strings.Repeat(" ", w-own))
		default:
			b.WriteString(align(c.Head[0], w, c.Right))
		}
		i = next
	}
	p.line(p.styled(document.Faint, strings.TrimRight(b.String(), " ")))
}

// row prints one line of a table.
func (p *printer) row(g grid, texts []string, style document.Style) {
	var b strings.Builder
	b.WriteString(spaces(g.Level))
	for i, c := range g.Columns {
		b.WriteString(strings.Repeat(" ", g.gapBefore(i)) + align(texts[i], g.widths[i], c.Right))
	}
	p.line(p.styled(style, strings.TrimRight(b.String(), " ")))
}

func align(s string, w int, right bool) string {
	space := strings.Repeat(" ", max(0, w-width(s)))
	if right {
		return space + s
	}
	return s + space
}

// shorten cuts s to at most n columns.
func shorten(s string, n int) string {
	if width(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:max(0, n-1)]) + "…"
}

// shortName takes the middle out of a name that is longer than most columns:
// names of nodes differ at either end.
func shortName(name string, most int) string {
	r := []rune(name)
	if len(r) <= most {
		return name
	}
	head := most / 2
	return string(r[:head]) + "…" + string(r[len(r)-(most-head-1):])
}
