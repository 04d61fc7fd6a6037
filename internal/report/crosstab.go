package report

import (
	"fmt"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/published"
)

// publishedTables lays a study out as it did: a line for each shape, a column
// for each mode.
func (p *printer) publishedTables(s published.Result, measured bool) {
	for len(s.Rows) > 0 {
		table := s.Rows[0].Table
		n := 0
		for n < len(s.Rows) && s.Rows[n].Table == table {
			n++
		}
		t := newCrosstab(s.Rows[:n])
		p.line("  " + p.bold(upperFirst(table)) + "; ratio to " + t.modes[0])
		p.crosstab(t, false, measured)
		p.line("")
		p.line("  The same; each column's ratio to its first line")
		p.crosstab(t, true, measured)
		if s.Rows = s.Rows[n:]; len(s.Rows) > 0 {
			p.line("")
		}
	}
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

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
		add(&t.modes, r.Mode)
		t.rows[[2]string{r.Label, r.Mode}] = r
	}
	return t
}

// crosstab prints the ratios to the first column, or to the smallest shape,
// in as many columns as fit side by side.
func (p *printer) crosstab(t crosstab, smallest, measured bool) {
	cols := make([][]string, len(t.modes))
	for m, name := range t.modes {
		cols[m] = []string{name}
		for _, l := range t.labels {
			cols[m] = append(cols[m], crossText(t.rows[[2]string{l, name}], smallest, measured))
		}
	}
	side := append([]string{""}, t.labels...)
	for len(cols) > 0 {
		n, w := 0, indent+longest(side)
		for n < len(cols) && (n == 0 || w+2+longest(cols[n]) <= p.width) {
			w += 2 + longest(cols[n])
			n++
		}
		var lines [][]string
		for i := range side {
			line := []string{side[i]}
			for _, c := range cols[:n] {
				line = append(line, c[i])
			}
			lines = append(lines, line)
		}
		p.texts(lines[0], lines[1:], []bool{true, !measured, !measured, !measured, !measured})
		cols = cols[n:]
	}
}

// crossText is a cell of a crosstab: what was published, its ratio, and the
// measured one.
func crossText(r published.Line, smallest, measured bool) string {
	for _, x := range r.Ratios {
		if x.Smallest != smallest {
			continue
		}
		text := ratioText(x.Published)
		if !measured {
			if smallest {
				return text
			}
			return r.Printed + "  " + text
		}
		if x.Measured == nil {
			return text + "→-"
		}
		return fmt.Sprintf("%s→%s±%s %s", text, ratioText(x.Measured.Median), ratioText(x.Measured.HalfWidth()), x.Verdict)
	}
	if smallest && r.Value > 0 {
		return "1"
	} else if smallest {
		return "-"
	}
	return r.Printed
}

func longest(texts []string) int {
	n := 0
	for _, t := range texts {
		n = max(n, width(t))
	}
	return n
}
