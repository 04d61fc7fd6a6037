package page

import (
	"cmp"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

func tableOf(t document.Table) markup {
	label := cmp.Or(t.Instead, "Table")
	var heads []string // of the cells of a table without lines of heads
	if onlyWords(t) {
		for i := range t.Columns {
			heads = append(heads, t.Head(i).Title())
		}
	}
	return put(`<div class="wide%s" role="group" tabindex="0" aria-label="%s"><table>`,
		when(heads != nil, " words"), label) + "\n" +
		optional("<caption>%s</caption>\n", t.Instead) +
		when(t.Headed(), headOf(t)) + "<tbody>\n" +
		each(t.Rows, func(r document.Row) markup { return rowOf(t, r, heads) }) +
		"</tbody>\n</table></div>"
}

// onlyWords reports whether a table has several columns and no numbers to compare down them. On
// narrow screens its rows become blocks.
func onlyWords(t document.Table) bool {
	return len(t.Columns) > 1 && !slices.ContainsFunc(t.Columns, func(c document.Column) bool {
		return c.Right
	}) && !slices.ContainsFunc(t.Rows, func(r document.Row) bool {
		return slices.ContainsFunc(r.Cells, func(c document.Cell) bool { return c.Number != nil })
	})
}

func headOf(t document.Table) markup {
	t.Columns = slices.Clone(t.Columns)
	for i, c := range t.Columns {
		if strings.HasSuffix(c.Head[0], "-") { // a word, which needs no second line
			t.Columns[i].Head = [2]string{"", c.Title()}
		}
	}
	spans := spansOf(t)
	var over markup
	if spans != nil {
		over = "<tr>" + each(spans, spanOf) + "</tr>"
	}
	return "<thead>" + over + "<tr>" + each(t.Columns, func(c document.Column) markup {
		text := c.Title()
		if spans != nil {
			text = c.Head[1]
		}
		return put(`<th scope="col"%s>%s</th>`, when(c.Right, ` class="right"`), text)
	}) + "</tr></thead>\n"
}

type span struct {
	Text    string
	Columns int
}

func spanOf(s span) markup {
	if s.Columns > 1 {
		return put(`<th scope="colgroup" colspan="%v">%s</th>`, s.Columns, s.Text)
	}
	return put(`<th scope="col">%s</th>`, s.Text)
}

// spansOf returns the first line of heads, or nil if none of them spans several columns.
func spansOf(t document.Table) []span {
	var out []span
	several := false
	for i := 0; i < len(t.Columns); {
		s := span{t.Columns[i].Head[0], min(max(1, t.Columns[i].Span), len(t.Columns)-i)}
		out, several = append(out, s), several || s.Columns > 1
		i += s.Columns
	}
	if !several {
		return nil
	}
	return out
}

func rowOf(t document.Table, r document.Row, heads []string) markup {
	columns := len(t.Columns)
	var cells markup
	for i, c := range r.Cells {
		head := ""
		if i < len(heads) {
			head = heads[i]
		}
		cells += cellOf(t, i, c, head)
	}
	return when(len(r.Above) > 0, put("<tr class=\"above\"><th scope=\"rowgroup\" colspan=\"%v\">"+
		"%s</th></tr>\n", columns, textOf(r.Above))) +
		put("<tr%s>%s</tr>\n", classOf(r.Style), cells) +
		when(r.Note != "", put("<tr class=\"below\"><td colspan=\"%v\">%s</td></tr>\n", columns,
			nobreak(r.Note)))
}

// mostExact is the largest number of cells of a table that shows exact values. Larger tables have
// them only in the page's data.
const mostExact = 1000

func cellOf(t document.Table, column int, c document.Cell, head string) markup {
	if column == 0 {
		return put(`<th scope="row">%s%s</th>`, nobreak(c.Text), c.Mark)
	}
	class := classes[c.Style]
	if column < len(t.Columns) && t.Columns[column].Right {
		class = strings.TrimSpace("right " + class)
	}
	text := nobreak(cmp.Or(c.Drawn, c.Text))
	if c.Number != nil && c.Drawn == "" && len(t.Rows)*len(t.Columns) <= mostExact {
		text = put(`<data value="%v">%s</data>`, c.Number.Value, text)
	}
	return put(`<td%s%s>%s%s</td>`, optional(` class="%s"`, class),
		optional(` data-head="%s"`, head), text, c.Mark)
}

func routeOf(r document.Route) markup {
	return "<ol class=\"route\">\n" + each(r.Steps, stepOf) + "</ol>" +
		optional(`<p class="bad">%s</p>`, r.Ends)
}

func stepOf(s document.RoutePoint) markup {
	counters := each(s.Counters, func(c document.Counter) markup {
		return put(`<div><dt>%s</dt><dd>%v <span aria-hidden="true">→</span> %v <b>+%v</b></dd></div>`,
			c.What, c.Before, c.After, c.After-c.Before)
	})
	return put(`<li><strong>%s</strong> <span>%s</span>`, s.Kind, textOf(s.Text)) +
		when(counters != "", "\n<dl>"+counters+"</dl>") + "</li>\n"
}

func pathOf(p document.Path) markup {
	return put("<h3>%s</h3>\n<ol class=\"route\">\n<li><strong>client</strong>", p.Name) +
		optional(` <span>dials %s</span>`, p.Dial) + "</li>\n" + each(p.Hops, hopOf) +
		"<li><strong>server</strong></li>\n</ol>\n" + guardsOf(p.Guards)
}

func hopOf(h document.Hop) markup {
	return put(`<li><strong>%s</strong> <span>%s <span class="faint">(%s)</span></span>`+
		"\n<dl>%s</dl></li>\n", h.Kind, h.Name, h.Where, each(h.Counts, func(c document.Count) markup {
		return put(`<div><dt>%s</dt><dd title="%s">%s</dd></div>`, c.What, c.Exact, c.Text)
	}))
}

func guardsOf(all []document.Hop) markup {
	if len(all) == 0 {
		return ""
	}
	text := markup(`<p class="faint">Beside the path, where it must not pass: `)
	for i, g := range all {
		text += when(i > 0, "; ") + put("%s %s (%s)", g.Kind, g.Name, g.Where) +
			each(g.Counts, func(c document.Count) markup { return put(" %s %s", c.What, c.Text) })
	}
	return text + ".</p>\n"
}
