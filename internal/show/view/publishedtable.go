package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/published"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// publishedLayouts keep measured figures and verdicts at 60 columns.
var publishedLayouts = []document.Layout{
	{}, {Tight: true}, {Below: true}, {Below: true, Tight: true},
	{Short: true, Below: true, Tight: true},
	{Short: true, Lean: true, Below: true}, {Short: true, Lean: true, Below: true, Tight: true}}

func publishedTables(s published.Result, measured bool) []document.Section {
	var groups [][2]string
	for _, r := range s.Rows {
		if key := [2]string{r.What(), r.Placing()}; r.Metric != published.AsPrinted &&
			!slices.Contains(groups, key) {
			groups = append(groups, key)
		}
	}
	var out []document.Section
	for _, key := range groups {
		var rows []int
		for i, r := range s.Rows {
			if r.Metric != published.AsPrinted && r.What() == key[0] && r.Placing() == key[1] {
				rows = append(rows, i)
			}
		}
		title := printable.Capital(key[0])
		if len(groups) > 1 && key[1] != "" {
			title += ", " + key[1]
		}
		out = append(out, document.Section{Title: document.Plainly(title), Level: 1,
			Blocks: []document.Block{publishedTable(s, rows, measured)}})
	}
	return out
}

// publishedGrid returns the table of a study that prints a line for each metric and a column for
// each mode in each place, as it prints it, or nil. With measured, this machine's figures follow.
func publishedGrid(s published.Result, measured bool) []document.Section {
	t := document.Table{Level: 1, Layouts: onlyGaps, Columns: []document.Column{{}}}
	columnOf := func(r published.Line) [2]string { // its head
		return [2]string{r.Placing(), cmp.Or(r.StudyMode, r.Mode)}
	}
	var columns [][2]string
	var lines []published.Line
	for _, r := range s.Rows {
		if r.Placing() == "" {
			return nil
		}
		if key := columnOf(r); !slices.Contains(columns, key) {
			columns = append(columns, key)
			c := document.Column{Head: key, Right: true, Span: 1}
			if last := len(columns) - 2; last >= 0 && columns[last][0] == key[0] {
				first := slices.IndexFunc(columns, func(k [2]string) bool { return k[0] == key[0] })
				t.Columns[1+first].Span++
				c.Head[0], c.Span = "", 0
			}
			t.Columns = append(t.Columns, c)
		}
		if !slices.ContainsFunc(lines, func(l published.Line) bool { return l.Metric == r.Metric }) {
			lines = append(lines, r)
		}
	}
	for _, l := range lines {
		what, _, _ := strings.Cut(l.Shape, ",")
		theirs := document.Texts(strings.TrimPrefix(what, "qperf ") + ", " + l.In().Name)
		here := document.Texts("  here")
		for _, key := range columns {
			i := slices.IndexFunc(s.Rows, func(r published.Line) bool {
				return r.Metric == l.Metric && columnOf(r) == key
			})
			cells := []document.Cell{{}, {}}
			if i >= 0 {
				r := s.Rows[i]
				cells = []document.Cell{printedCell(r), hereCell(r.Here, r.In().By)}
				// The tables below have the intervals.
				cells[1].Text, _, _ = strings.Cut(cells[1].Text, " ")
			}
			theirs, here = append(theirs, cells[0]), append(here, cells[1])
		}
		t.Rows = append(t.Rows, document.Row{Cells: theirs})
		if measured {
			t.Rows = append(t.Rows, document.Row{Cells: here})
		}
	}
	return []document.Section{{Title: document.Plainly("Its table"), Level: 1,
		Blocks: []document.Block{t}}}
}

// publishedTable returns the table of a study's rows, the baseline first.
func publishedTable(s published.Result, rows []int, measured bool) document.Table {
	unit := s.Rows[rows[0]].In()
	base := baseOf(s, rows)
	ratio := document.Column{Head: [2]string{"ratio", ""}, Below: true}
	if base >= 0 {
		ratio.Head[1] = "to " + s.Rows[base].Mode
	}
	t := document.Table{Level: 1, Layouts: publishedLayouts,
		Columns: []document.Column{{Head: [2]string{"", "mode"}, Cut: document.CutMiddle,
			Least: leastPhrase}, figures(unit.Name, "theirs")}}
	if measured {
		t.Columns = append(t.Columns, texts(unit.Name, "here"), ratio, document.Column{Below: true},
			figures("CPU", "idle"), figures("proxy", "CPU"))
		t.Columns[5].Spare, t.Columns[6].Spare = true, true
	} else {
		t.Columns = append(t.Columns, ratio)
	}
	slices.SortStableFunc(rows, func(a, b int) int { return first(a == base) - first(b == base) })
	for _, i := range rows {
		r := s.Rows[i]
		for k, x := range ratioCells(s, i, base, measured) {
			cells := []document.Cell{{Text: rowName(r), Short: shortName(s, rows, i)}, printedCell(r)}
			here := hereCell(r.Here, unit.By)
			if k > 0 {
				cells, here, r.Here = make([]document.Cell, 2), document.Cell{}, nil
			}
			if measured {
				cells = append(append(append(cells, here), x...), cpuCells(r.Here)...)
			} else {
				cells = append(cells, x...)
			}
			t.Rows = append(t.Rows, document.Row{Cells: cells})
		}
	}
	return t.WithoutEmpty()
}

// shortName returns a row's mode, with its place if another row of the table has the same mode
// from another one.
func shortName(s published.Result, rows []int, i int) string {
	r := s.Rows[i]
	for _, k := range rows {
		if s.Rows[k].Mode == r.Mode && rowName(s.Rows[k]) != rowName(r) {
			return rowName(r)
		}
	}
	return r.Mode
}

func first(is bool) int {
	if is {
		return 0
	}
	return 1
}

// baseOf returns the index of the row to compare others with, or -1.
func baseOf(s published.Result, rows []int) int {
	for _, i := range rows {
		for _, x := range s.Rows[i].Ratios {
			return x.To
		}
	}
	return -1
}

// ratioCells returns the cells of each of a row's ratios. A row without ratios has empty cells, and
// the baseline has 1.
func ratioCells(s published.Result, row, base int, measured bool) [][]document.Cell {
	var out [][]document.Cell
	for _, x := range s.Rows[row].Ratios {
		to := " to " + s.Rows[x.To].Mode
		cells := comparedCells(x, to, measured)
		cells[0].Under = "ratio" + to + ": " + strings.TrimSuffix(cells[0].Text, to)
		if x.To == base {
			cells[0].Text = strings.TrimSuffix(cells[0].Text, to)
		}
		out = append(out, cells)
	}
	if len(out) > 0 {
		return out
	}
	blank := make([]document.Cell, 1)
	if row == base {
		blank[0] = numberCell("baseline", 1, analysis.RatioUnit)
	}
	if measured {
		blank = append(blank, document.Cell{})
	}
	return [][]document.Cell{blank}
}

// comparedCells returns a cell with both ratios and their base. With measured, a second cell has
// the verdict.
func comparedCells(x published.Ratio, to string, measured bool) []document.Cell {
	text := analysis.Percent(x.Published)
	if !measured {
		return []document.Cell{numberCell(text+to, x.Published, analysis.RatioUnit)}
	}
	cell := numberCell(text+" → -"+to, x.Published, analysis.RatioUnit)
	if m := x.Measured; m != nil {
		cell = ratioCell(text+" → "+m.String()+to, *m)
	}
	return []document.Cell{cell, {Text: string(x.Verdict), Style: publishedStyle(x.Verdict)}}
}

func publishedStyle(v published.Verdict) document.Style {
	switch v {
	case published.Holds:
		return document.Good
	case published.Gone, published.Reversed, published.Emerged:
		return document.Bad
	case published.Unclear:
		return document.Doubtful
	}
	return document.Plain
}

// printedCell marks a ratio, because its table has another unit.
func printedCell(r published.Line) document.Cell {
	if r.IsRatio() {
		return numberCell(r.Printed+" ×", r.Value, analysis.RatioUnit)
	}
	return numberCell(r.Printed, r.Value, shortUnit(r.Unit))
}

// hereCell returns this machine's figure in the study's unit.
func hereCell(h *published.Here, by float64) document.Cell {
	if h == nil {
		return nothing
	}
	return valueCell(h.Value, h.Unit, by)
}

func valueCell(v published.Value, unit string, by float64) document.Cell {
	n := document.Number{Value: v.Median, Unit: unit}
	if v.N > 1 {
		n.Low, n.High = &v.Low, &v.High
	}
	return document.Cell{Text: v.Text(by), Number: &n}
}

// cpuCells returns the idle share and docker-proxy's share of a core, in per cent.
func cpuCells(h *published.Here) []document.Cell {
	out := make([]document.Cell, 2)
	if h == nil {
		return out
	}
	for i, v := range []*published.Value{h.Idle, h.Proxy} {
		if v != nil {
			out[i] = numberCell(fmt.Sprintf("%.0f %%", percent*v.Median), v.Median, "1")
		}
	}
	return out
}

func claims(s published.Result, measured bool) []document.Section {
	if len(s.Claims) == 0 {
		return nil
	}
	t := document.Table{Level: 1, Layouts: onlyGaps,
		Columns: []document.Column{{Head: [2]string{"", "what"}, Cut: document.CutEnd,
			Least: leastPhrase}, texts("", "theirs")}}
	if measured {
		t.Columns = append(t.Columns, texts("", "here"), texts("", ""))
	}
	for _, c := range s.Claims {
		theirs := string(c.Want)
		if c.To == nil {
			theirs = fmt.Sprintf("≥ %s ms", units.Digits(c.Bound*milli))
			if c.Want == published.Less {
				theirs = strings.Replace(theirs, "≥", "<", 1)
			}
		}
		cells := document.Texts(c.Text, theirs)
		if measured {
			here := nothing
			switch {
			case c.Measured != nil:
				here = ratioCell(c.Measured.String(), *c.Measured)
			case c.Extreme != nil:
				here = numberCell(units.Digits(*c.Extreme*milli)+" ms", *c.Extreme, c.Unit)
			}
			cells = append(cells, here, document.Cell{
				Text: string(c.Verdict), Style: publishedStyle(c.Verdict)})
		}
		t.Rows = append(t.Rows, document.Row{Cells: cells})
	}
	return []document.Section{{Title: document.Plainly(
		"Stated without figures; response times as ratios to the published port's"), Level: 1,
		Blocks: []document.Block{t}}}
}

func publishedCPUs(s published.Result) []document.Section {
	var out []document.Section
	var seen []string
	for _, r := range s.Rows {
		name := rowName(r)
		if r.Label != "" {
			name += ", " + r.Label
		}
		if r.Here == nil || len(r.Here.CPUs) == 0 {
			continue
		}
		if key := name + r.Load; slices.Contains(seen, key) {
			continue
		}
		seen = append(seen, name+r.Load)
		s := document.Section{Title: document.Plainly(
			name + ", " + r.Load + ": CPU time by kind, as mpstat reports it"), Level: 1,
			Blocks: []document.Block{cpuUses(r.Here.AllCPUs, r.Here.CPUs)}}
		if p := r.Here.Proxy; p != nil {
			s.Add(proxyCore(p.Median))
		}
		out = append(out, s)
	}
	return out
}

func rowName(r published.Line) string {
	if r.Cell == nil {
		return r.Mode + ", " + r.Placement
	}
	return fmt.Sprintf("%s from %s", r.Cell.Mode, r.Cell.From)
}

// asPrinted separates a unit from a remark about it in the data.
const asPrinted = " as printed"

func shortUnit(u string) string {
	u, _, _ = strings.Cut(u, asPrinted)
	return u
}
