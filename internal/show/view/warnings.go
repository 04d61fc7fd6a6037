package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// warnings lists the warnings. Each text appears once, with the rows to which it applies.
func warnings(r *analysis.Report) []document.Section { return warningsBut(r, viewOf(r).hides) }

func warningsBut(r *analysis.Report, hidden ...string) []document.Section {
	var texts []string
	rows, shares := map[string][]warned{}, map[string]span{}
	from := func(analysis.Cell) string { return "" }
	if len(analysis.Placements(r.Cells)) > 1 {
		from = func(c analysis.Cell) string { return " from " + placeWords(c.From) }
	}
	for _, w := range r.Warnings {
		if !slices.Contains(hidden, w.Code) {
			texts = append(texts, w.Text)
		}
	}
	for n, c := range slices.Concat(r.Cells, r.Cells) {
		for _, w := range c.Warnings {
			// what varies comes first: its row has less than others
			if early := n < len(r.Cells); early != (w.Code == analysis.Varying) ||
				slices.Contains(hidden, w.Code) {
				continue
			}
			text, share := withoutShare(w.Text)
			if _, seen := rows[text]; !seen {
				texts = append(texts, text)
				shares[text] = share
			}
			shares[text] = shares[text].with(share)
			rows[text] = append(rows[text],
				warned{c.Name(), sayOn(r, c.On) + from(c) + " " + c.Load + r.Plan.SayPin(c.Pin)})
		}
	}
	if len(texts) == 0 {
		return nil
	}
	for i, t := range texts {
		text := shares[t].text() + t
		switch n := len(rows[t]); {
		case n == 0:
		case n == len(r.Cells):
			texts[i] = "all rows: " + text
		case n > maxNamed:
			texts[i] = fmt.Sprintf("%d rows: %s", n, text)
		default:
			texts[i] = rowsOf(rows[t]) + ": " + text
		}
	}
	return []document.Section{list(document.Warnings, "Warnings", texts)}
}

// warned is a row with a warning: its name and its table.
type warned struct{ name, table string }

// rowsOf lists rows. It names a table once for neighbouring rows from it.
func rowsOf(rows []warned) string {
	var b strings.Builder
	for i, w := range rows {
		b.WriteString(w.name)
		switch {
		case i == len(rows)-1:
			b.WriteString(w.table)
		case rows[i+1].table == w.table:
			b.WriteString(", ")
		default:
			b.WriteString(w.table + "; ")
		}
	}
	return b.String()
}

// span is a range of shares in %; zero: no share.
type span struct {
	low, high int
	known     bool
}

// withoutShare cuts off a warning's leading share in whole %, which differs from row to row.
func withoutShare(text string) (rest string, s span) {
	number, rest, ok := strings.Cut(text, " % ")
	if n, err := strconv.Atoi(number); ok && err == nil {
		return "% " + rest, span{n, n, true}
	}
	return text, span{}
}

func (s span) with(o span) span { return span{min(s.low, o.low), max(s.high, o.high), s.known} }

func (s span) text() string {
	switch {
	case !s.known:
		return ""
	case s.low == s.high:
		return fmt.Sprintf("%d ", s.low)
	}
	return fmt.Sprintf("%d–%d ", s.low, s.high)
}

const maxNamed = 4
