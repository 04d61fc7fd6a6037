package live

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Line returns a line of less than columns with the time left, and a page of the ratios so far or
// else the next step.
func Line(p Progress, all []analysis.Standing, page, columns int) string {
	columns-- // a full line would wrap
	line := timeLeft(p, columns)
	if pages := pagesOf(standingsOf(all), columns-ansi.StringWidth(line)); len(pages) > 0 {
		return line + pages[page%len(pages)]
	}
	return ansi.Truncate(line+p.Next, columns, "…")
}

func timeLeft(p Progress, columns int) string {
	const cells, roomy = 10, 60
	left := fmt.Sprintf("%.0f s left · ", max(0, p.Total-p.Elapsed))
	if columns < roomy {
		return left
	}
	done := 0
	if p.Total > 0 {
		done = min(cells, int(cells*p.Elapsed/p.Total))
	}
	return fmt.Sprintf("[%s%s] %s", strings.Repeat("█", done), strings.Repeat("░", cells-done),
		left)
}

// Beat returns a line of a log with the time passed, and a page of the ratios so far or else the
// next step.
func Beat(p Progress, all []analysis.Standing, page int) string {
	const columns = 100
	line := fmt.Sprintf("toll: %.0f of %.0f s, ", p.Elapsed, max(p.Elapsed, p.Total))
	if pages := pagesOf(standingsOf(all), columns-len(line)); len(pages) > 0 {
		return line + pages[page%len(pages)]
	}
	return line + p.Next
}

type standing struct {
	cell  sample.Cell
	label string // distinguishes the cell within its group
	ratio analysis.Ratio
	lower bool // a lower ratio is better
}

// String returns the standing as a short text.
func (s standing) String() string {
	const percent = 100
	switch r := s.ratio; {
	case r.Varies:
		return s.label + " varies, " + r.String()
	case r.Low < r.High:
		return fmt.Sprintf("%s %.0f ±%.0f %%", s.label, percent*r.Median, percent*r.HalfWidth())
	}
	return s.label + " " + s.ratio.String()
}

// pagesOf returns lines of at most columns. Each shows one group, best mode first, and the groups
// take turns.
func pagesOf(all []standing, columns int) []string {
	var out []string
	groups := rankings(all)
	for more := true; more; {
		more = false
		for i, g := range groups {
			if len(g) == 0 {
				continue
			}
			line, n := pageOf(headOf(all, g[0].cell), g, columns)
			groups[i], more = g[n:], true
			if ansi.StringWidth(line) <= columns {
				out = append(out, line)
			}
		}
	}
	return out
}

func headOf(all []standing, c sample.Cell) string {
	head := c.LoadName()
	if several(all, func(s standing) string { return string(s.cell.From) }) {
		head += " from " + string(c.From)
	}
	if several(all, func(s standing) string { return s.cell.On }) {
		head += " on " + c.On
	}
	if several(all, func(s standing) string { return s.cell.Pin }) {
		head += ", " + analysis.PinWords(c.Pin)
	}
	return head + ": "
}

// pageOf returns a line with as many of a group's first standings as fit, at least one, and their
// number.
func pageOf(head string, g []standing, columns int) (line string, n int) {
	line = head + g[0].String()
	for n = 1; n < len(g); n++ {
		longer := line + " · " + g[n].String()
		if ansi.StringWidth(longer) > columns {
			break
		}
		line = longer
	}
	return line, n
}

// rankings groups standings that have the same baseline, best first.
func rankings(all []standing) [][]standing {
	out := analysis.Grouped(all, func(s standing) sample.Cell {
		return sample.Cell{From: s.cell.From, Load: s.cell.Load, Point: s.cell.Point,
			On: s.cell.On, Pin: s.cell.Pin}
	})
	for _, g := range out {
		slices.SortStableFunc(g, func(a, b standing) int {
			if a.lower {
				a, b = b, a
			}
			return cmp.Compare(b.ratio.Median, a.ratio.Median)
		})
	}
	return out
}

func several(all []standing, of func(standing) string) bool {
	return slices.ContainsFunc(all, func(s standing) bool { return of(s) != of(all[0]) })
}

func standingsOf(all []analysis.Standing) []standing {
	var out []standing
	for _, s := range all {
		label := s.Label
		if s.Cell.Shape.Crowd() {
			label = analysis.RowName(s.Cell)
		}
		out = append(out, standing{s.Cell, label, s.Ratio, !s.Higher})
	}
	return out
}
