package show

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/published"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// publishedTables lays a study out as it did: a line for each shape, a column
// for each mode.
func publishedTables(s published.Result, measured bool) []document.Section {
	var out []document.Section
	for len(s.Rows) > 0 {
		table := s.Rows[0].Table
		n := 0
		for n < len(s.Rows) && s.Rows[n].Table == table {
			n++
		}
		t := newCrosstab(s.Rows[:n])
		out = append(out,
			document.Section{Title: document.Strongly(printable.Capital(table)).Then("; ratio to "+t.modes[0], document.Plain), Level: 1,
				Blocks: []document.Block{t.table(false, measured)}},
			document.Section{Title: document.Plainly("The same; each column's ratio to its first line"), Level: 1,
				Blocks: []document.Block{t.table(true, measured)}})
		s.Rows = s.Rows[n:]
	}
	return out
}

// crosstab is a table's rows by label and mode.
type crosstab struct {
	labels, modes []string
	rows          map[[2]string]published.Line
}

func newCrosstab(rows []published.Line) crosstab {
	t := crosstab{rows: map[[2]string]published.Line{}}
	seen := map[string]bool{}
	add := func(list *[]string, s string) {
		if !seen[s] {
			seen[s] = true
			*list = append(*list, s)
		}
	}
	for _, r := range rows {
		add(&t.labels, r.Label)
		add(&t.modes, r.Column())
		t.rows[[2]string{r.Label, r.Column()}] = r
	}
	return t
}

// table has the ratios to the first column, or to the smallest shape.
func (t crosstab) table(smallest, measured bool) document.Table {
	out := document.Table{Level: 1, Split: document.SplitFull, Columns: []document.Column{{Right: true}}}
	for _, name := range t.modes {
		out.Columns = append(out.Columns, document.Column{Head: [2]string{"", name}, Right: !measured})
	}
	for _, l := range t.labels {
		cells := document.Texts(l)
		for _, name := range t.modes {
			cells = append(cells, crossCell(t.rows[[2]string{l, name}], smallest, measured))
		}
		out.Rows = append(out.Rows, document.Row{Cells: cells})
	}
	return out
}

// crossCell is a cell of a crosstab: what was published, its ratio, and the
// measured one.
func crossCell(r published.Line, smallest, measured bool) document.Cell {
	for _, x := range r.Ratios {
		if x.Smallest != smallest {
			continue
		}
		text := ratioText(x.Published)
		switch {
		case measured && x.Measured == nil:
			return own(text+"→-", x.Published, analysis.RatioUnit)
		case measured:
			text = fmt.Sprintf("%s→%s±%s %s", text, ratioText(x.Measured.Median), ratioText(x.Measured.HalfWidth()), x.Verdict)
			c := ratioCell(text, *x.Measured)
			c.Number.Verdict = string(x.Verdict)
			return c
		case !smallest:
			text = r.Printed + "  " + text
		}
		return own(text, x.Published, analysis.RatioUnit)
	}
	switch {
	case smallest && r.Value > 0:
		return own("1", 1, analysis.RatioUnit)
	case smallest:
		return nothing
	}
	return own(r.Printed, r.Value, shortUnit(r.Unit))
}
