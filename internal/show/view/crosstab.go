package view

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/published"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// crosstabs returns a crosstab for each table of a study, with a line for each shape and a column
// for each mode. details adds the ratios along the lines and down the columns.
func crosstabs(s published.Result, measured, details bool) []document.Section {
	var out []document.Section
	rows := s.Rows
	for len(rows) > 0 {
		table := rows[0].Table
		n := 0
		for n < len(rows) && rows[n].Table == table {
			n++
		}
		t := newCrosstab(rows[:n])
		title := document.Strongly(printable.Capital(table))
		what := "; ratio to " + t.modes[0]
		if measured {
			what = "; theirs → here"
		}
		add := func(title document.Text, t document.Table) {
			out = append(out, document.Section{Title: title, Level: 1, Blocks: []document.Block{t}})
		}
		add(title.Then(what, document.Plain), t.table(func(r published.Line) document.Cell {
			return crowdFigure(r, s.Rows, measured)
		}, measured))
		if details && measured {
			add(document.Plainly("The same; ratio to "+t.modes[0]),
				t.table(func(r published.Line) document.Cell {
					return crossCell(r, s.Rows, along, true)
				}, true))
		}
		if details {
			add(document.Plainly("The same; each column's ratio to its first line"),
				t.table(func(r published.Line) document.Cell {
					return crossCell(r, s.Rows, down, measured)
				}, measured))
		}
		rows = rows[n:]
	}
	return append(out, apartRatios(s, measured)...)
}

type crossing int

const (
	along crossing = iota // to the first column of the line
	down                  // to the first line of the column
	apart                 // between other lines of a column
)

func crossingOf(r published.Line, x published.Ratio, rows []published.Line) crossing {
	switch {
	case x.Smallest:
		return down
	case rows[x.To].Label == r.Label:
		return along
	}
	return apart
}

func apartRatios(s published.Result, measured bool) []document.Section {
	t := document.Table{Level: 1, Layouts: onlyGaps,
		Columns: []document.Column{texts("", "mode"), texts("", "ratio")}}
	if measured {
		t.Columns = append(t.Columns, texts("", ""))
	}
	what := ""
	for _, r := range s.Rows {
		for _, x := range r.Ratios {
			if crossingOf(r, x, s.Rows) == apart {
				what = fmt.Sprintf("Ratio of %s to %s, theirs", r.Label, s.Rows[x.To].Label)
				t.Rows = append(t.Rows, document.Row{
					Cells: append(document.Texts(r.Mode), comparedCells(x, "", measured)...)})
			}
		}
	}
	if what == "" {
		return nil
	}
	if measured {
		what += " → here"
	}
	return []document.Section{{Title: document.Plainly(what), Level: 1,
		Blocks: []document.Block{t}}}
}

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
		add(&t.modes, r.Mode)
		t.rows[[2]string{r.Label, r.Mode}] = r
	}
	return t
}

func (t crosstab) table(cell func(published.Line) document.Cell, measured bool) document.Table {
	out := document.Table{Level: 1, Split: document.SplitFull,
		Columns: []document.Column{{Right: true}}}
	for _, name := range t.modes {
		out.Columns = append(out.Columns, document.Column{
			Head: [2]string{"", name}, Right: !measured})
	}
	for _, l := range t.labels {
		cells := document.Texts(l)
		for _, name := range t.modes {
			cells = append(cells, cell(t.rows[[2]string{l, name}]))
		}
		out.Rows = append(out.Rows, document.Row{Cells: cells})
	}
	return out
}

// crowdFigure returns the published figure, followed by this machine's or, if nothing is measured,
// by the published ratio.
func crowdFigure(r published.Line, rows []published.Line, measured bool) document.Cell {
	if measured {
		if r.Here == nil {
			return numberCell(r.Printed+" → -", r.Value, shortUnit(r.Unit))
		}
		c := hereCell(r.Here, r.In().By)
		c.Text = r.Printed + " → " + c.Text
		return c
	}
	for _, x := range r.Ratios {
		if crossingOf(r, x, rows) == along {
			return numberCell(r.Printed+"  "+analysis.Percent(x.Published), x.Published,
				analysis.RatioUnit)
		}
	}
	return numberCell(r.Printed, r.Value, shortUnit(r.Unit))
}

func crossCell(r published.Line, rows []published.Line, way crossing, measured bool) document.Cell {
	for _, x := range r.Ratios {
		if crossingOf(r, x, rows) != way {
			continue
		}
		text := analysis.Percent(x.Published)
		switch {
		case measured && x.Measured == nil:
			return numberCell(text+" → -", x.Published, analysis.RatioUnit)
		case measured:
			text = fmt.Sprintf("%s → %s %s", text, x.Measured, x.Verdict)
			c := ratioCell(text, *x.Measured)
			c.Number.Verdict = string(x.Verdict)
			return c
		}
		return numberCell(text, x.Published, analysis.RatioUnit)
	}
	if r.Value > 0 {
		return numberCell("100 %", 1, analysis.RatioUnit)
	}
	return nothing
}
