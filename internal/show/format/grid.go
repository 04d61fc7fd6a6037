package format

import (
	"cmp"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

type grid struct {
	document.Table // with the kept columns only
	gap            int
	texts          [][]string // by row and column
	below          [][]string // by row, of one line
	widths         []int
	plotted        bool           // there is a plot, not drawn yet
	kept           []int          // indexes
	rows           []document.Row // with all columns
}

func lay(t document.Table, l document.Layout) grid {
	g := grid{Table: t, gap: 2, below: make([][]string, len(t.Rows)),
		plotted: t.Plot != nil && !l.Bare, rows: t.Rows}
	if l.Tight {
		g.gap = 1
	}
	var shown []int
	for i, c := range t.Columns {
		switch {
		case l.Lean && c.Spare:
		case l.Below && c.Below:
			for n, r := range t.Rows {
				if text := cmp.Or(r.Cells[i].Under, r.Cells[i].Text); text != "" {
					g.below[n] = append(g.below[n], text)
				}
			}
		case l.Terse && c.Quiet != "" && !slices.ContainsFunc(t.Rows, func(r document.Row) bool {
			return r.Cells[i].Text != c.Quiet
		}):
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
		if c.Span > 1 {
			c.Span = g.shown(i+c.Span) - g.shown(i)
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
		g.widths[i] = linesWidth(c.Head[1])
		if c.Span < 2 {
			g.widths[i] = max(g.widths[i], width(c.Head[0]))
		}
		for _, row := range g.texts {
			g.widths[i] = max(g.widths[i], linesWidth(row[i]))
		}
	}
	g.widen()
}

// widen widens columns for their heads. A head above several columns widens the last of them.
func (g *grid) widen() {
	for i, c := range g.Columns {
		next := min(i+c.Span, len(g.Columns))
		if c.Span < 2 {
			continue
		}
		w := g.widths[i]
		for k := i + 1; k < next; k++ {
			w += g.gapBefore(k) + g.widths[k]
		}
		g.widths[next-1] += max(0, width(c.Head[0])-w)
	}
}

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
	return n + g.moved()
}

// moved returns by how many columns texts wider than their columns move the end of a row.
func (g *grid) moved() (most int) {
	for _, row := range g.texts {
		n := 0
		for i, text := range row {
			n += max(0, linesWidth(text)-g.widths[i])
		}
		most = max(most, n)
	}
	return most
}

// shown returns the position of the column, or of the next one that is kept.
func (g *grid) shown(column int) int {
	i, _ := slices.BinarySearch(g.kept, column)
	return i
}

// fit returns the first layout in which all tables fit. If none does, it returns the last one and
// false.
func (p *printer) fit(tables []document.Table, layouts []document.Layout) (l document.Layout,
	ok bool) {
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

func (p *printer) grid(g grid) {
	g.draw(p.width)
	p.heads(g)
	for n, r := range g.Rows {
		p.above(g.Table, r)
		p.marks = append(p.marks, Mark{p.section, n, p.lines})
		if len(g.below[n]) == 0 || strings.Join(g.texts[n], "") != "" {
			p.row(g, g.texts[n], r)
		}
		p.underRow(g, n)
	}
}

func (p *printer) above(t document.Table, r document.Row) {
	if len(r.Above) > 0 {
		p.wrapped(spaces(t.Level), p.text(r.Above))
	}
}

// underRow prints the columns that the layout puts below row n, and the row's note.
func (p *printer) underRow(g grid, n int) {
	for _, text := range []string{strings.Join(g.below[n], "  "), g.Rows[n].Note} {
		if text != "" {
			p.paragraph(document.Paragraph{Text: document.Plainly(text), Level: g.Level + 1,
				Style: document.Faint})
		}
	}
}

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
	p.row(g, texts, document.Row{Style: document.Faint})
}

func (p *printer) upperHeads(g grid) {
	var b strings.Builder
	b.WriteString(spaces(g.Level))
	for i := 0; i < len(g.Columns); {
		c, w, next := g.Columns[i], g.widths[i], i+1
		for ; next < min(i+c.Span, len(g.Columns)); next++ {
			w += g.gapBefore(next) + g.widths[next]
		}
		if next < len(g.Columns) {
			w += g.gapBefore(next)
		}
		switch {
		case c.Span > 1:
			b.WriteString(align(c.Head[0], w, false))
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

func (p *printer) row(g grid, texts []string, r document.Row) {
	cells := make([][]string, len(texts))
	lines := 1
	for i, text := range texts {
		cells[i] = strings.Split(text, "\n")
		lines = max(lines, len(cells[i]))
	}
	for n := range lines {
		var b strings.Builder
		b.WriteString(spaces(g.Level))
		for i, c := range g.Columns {
			text := ""
			if n < len(cells[i]) {
				text = cells[i][n]
			}
			if len(r.Cells) > 0 {
				text = p.styled(r.Cells[i].Style, text)
			}
			b.WriteString(strings.Repeat(" ", g.gapBefore(i)) + align(text, g.widths[i], c.Right))
		}
		p.line(p.styled(r.Style, strings.TrimRight(b.String(), " ")))
	}
}

func align(s string, w int, right bool) string {
	space := strings.Repeat(" ", max(0, w-width(s)))
	if right {
		return space + s
	}
	return s + space
}

// shortName cuts out the middle of a long name, because names of nodes differ at either end.
func shortName(name string, most int) string {
	r := []rune(name)
	if len(r) <= most {
		return name
	}
	head := most / 2
	return string(r[:head]) + "…" + string(r[len(r)-(most-head-1):])
}
