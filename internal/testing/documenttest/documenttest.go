// Package documenttest compares a document with a text that a format wrote, and reports what a
// reader of the text would miss. It is for tests only.
package documenttest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// Lines returns a line for each title, paragraph, point of a list, table head, row and step, with
// tabs between cells. It leaves out plots, which formats may leave out.
func Lines(d document.Document) []string { return lines(d, false, false) }

func lines(d document.Document, short, terminal bool) []string {
	var out []string
	for _, s := range d.Sections {
		if len(s.Title) > 0 {
			out = append(out, s.Title.String())
		}
		for _, b := range s.Blocks {
			switch b := b.(type) {
			case document.Paragraph:
				out = append(out, b.Text.String())
			case document.List:
				out = append(out, b.Items...)
			case document.Command:
				out = append(out, b.Line)
			case document.Table:
				if !terminal {
					b.Plot = nil
				}
				out = append(out, tableLines(b, short, terminal)...)
			case document.Route:
				out = append(out, routeLines(b)...)
			default:
				panic(fmt.Sprintf("no form for %T", b))
			}
		}
	}
	return out
}

// On a terminal, a head has two lines.
func tableLines(t document.Table, short, terminal bool) []string {
	var heads []string
	for _, c := range t.Columns {
		if short && c.ShortHead != "" {
			c.Head[1] = c.ShortHead
		}
		if terminal {
			heads = append(heads, c.Head[0], c.Head[1])
		} else {
			heads = append(heads, c.Title())
		}
	}
	out := []string{strings.Join(append(heads, axisLabels(t.Plot)...), "\t")}
	for _, r := range t.Rows {
		if len(r.Above) > 0 {
			out = append(out, r.Above.String())
		}
		var cells, under []string
		for _, c := range r.Cells {
			if short && c.Under != "" { // only a terminal prints it
				under = append(under, c.Under)
			}
			if short && c.Short != "" {
				c.Text = c.Short
			}
			cells = append(cells, c.Text+c.Mark)
		}
		out = append(out, strings.Join(append(cells, under...), "\t"))
		if r.Note != "" {
			out = append(out, r.Note)
		}
	}
	if t.Instead != "" {
		out = append(out, t.Instead)
	}
	return out
}

func axisLabels(p *document.Plot) []string {
	if p == nil {
		return nil
	}
	const widest = 100
	var out []string
	for w := p.Least; w <= widest; w++ {
		_, texts := p.Axis(w).Labels(p.Scale)
		for _, text := range texts {
			if !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	return out
}

func routeLines(r document.Route) []string {
	var out []string
	for _, s := range r.Steps {
		out = append(out, s.Kind+"\t"+s.Text.String())
		for _, c := range s.Counters {
			out = append(out, fmt.Sprintf("%s\t%d\t%d\t+%d", c.What, c.Before, c.After,
				c.After-c.Before))
		}
	}
	if r.Ends != "" {
		out = append(out, r.Ends)
	}
	return out
}

// Missing returns those lines of text whose words are not all in one line of the document. The
// lines of text may be broken and its words cut.
func Missing(d document.Document, text string) []string {
	var have [][]string
	for _, l := range append(lines(d, false, true), lines(d, true, true)...) {
		have = append(have, strings.Fields(l))
	}
	var out []string
	for l := range strings.Lines(text) {
		l = withoutHead(d, l)
		words := slices.DeleteFunc(strings.Fields(l), drawn)
		if !slices.ContainsFunc(have, func(line []string) bool { return within(words, line) }) {
			out = append(out, strings.TrimSpace(l))
		}
	}
	return out
}

func withoutHead(d document.Document, line string) string {
	for t := range tables(d) {
		for _, c := range t.Columns {
			if text, ok := strings.CutPrefix(strings.TrimSpace(line)+" ", c.Title()+": "); ok &&
				c.Title() != "" {
				return text
			}
		}
	}
	return line
}

func drawn(word string) bool {
	return slices.Contains([]string{"╳", "→", "\\"}, word) || strings.Trim(word, "│┼─━●·") == ""
}

// within reports whether the line has all the words, each as often as words has it.
func within(words, line []string) bool {
	left := slices.Clone(line)
	for _, w := range words {
		i := slices.IndexFunc(left, func(l string) bool { return same(w, l) })
		if i < 0 {
			return false
		}
		left = slices.Delete(left, i, i+1)
	}
	return true
}

func same(word, of string) bool {
	head, tail, cut := strings.Cut(word, "…")
	return word == of || cut && strings.HasPrefix(of, head) && strings.HasSuffix(of, tail)
}

// Unnumbered returns the figures whose cell has no Number.
func Unnumbered(d document.Document) []string {
	var out []string
	for t := range tables(d) {
		for _, r := range t.Rows {
			for i, c := range r.Cells {
				if i > 0 && t.Columns[i].Right && c.Number == nil &&
					strings.ContainsAny(c.Text, "0123456789") {
					out = append(out, r.Cells[0].Text+", "+t.Columns[i].Title()+": "+c.Text)
				}
			}
		}
	}
	return out
}

// Unpercented returns the ratios without % or × in the cell or the column's head.
func Unpercented(d document.Document) []string {
	var out []string
	for t := range tables(d) {
		for _, r := range t.Rows {
			for i, c := range r.Cells {
				ratio := c.Number != nil && c.Number.Unit == analysis.RatioUnit
				if ratio && strings.ContainsAny(c.Text, "0123456789") &&
					!strings.ContainsAny(c.Text+t.Head(i).Title(), "%×") {
					out = append(out, r.Cells[0].Text+", "+t.Columns[i].Title()+": "+c.Text)
				}
			}
		}
	}
	return out
}

func tables(d document.Document) func(yield func(document.Table) bool) {
	return func(yield func(document.Table) bool) {
		for _, s := range d.Sections {
			for _, b := range s.Blocks {
				if t, ok := b.(document.Table); ok && !yield(t) {
					return
				}
			}
		}
	}
}

// Unnoticed removes each cell in turn. It returns the cells after whose removal the document still
// has every line of text. It skips cells whose content is also shown elsewhere.
func Unnoticed(d document.Document, text string) []string {
	var out []string
	for t := range tables(d) {
		for n, r := range t.Rows {
			label := r.Cells[0].Text
			for i := range r.Cells {
				was := r.Cells[i]
				if was.Text == "" || t.Columns[i].Spare ||
					t.Columns[i].Once && n > 0 && was.Text == t.Rows[n-1].Cells[i].Text {
					continue
				}
				r.Cells[i] = document.Cell{}
				if len(Missing(d, text)) == 0 {
					out = append(out, label+", "+t.Columns[i].Title()+": "+was.Text)
				}
				r.Cells[i] = was
			}
		}
	}
	return out
}
