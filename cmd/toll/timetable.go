package main

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// timetable describes how the cells of a sliced load take turns in an epoch.
func timetable(p sample.Plan, l sample.Load) string {
	for _, t := range plan.Turns(p, 0) {
		if !t.Epoch || p.Cells[t.Cells[0]].Load != l.Kind || p.Cells[t.Cells[0]].Point != l.Point {
			continue
		}
		const second = 1e9
		tt := plan.Epoch(p, t.Cells, plan.Pace{}, 0)
		text := fmt.Sprintf("%s: an epoch of %.1f s per round, in which the cells take turns in slices of %g ms",
			wholeKey(l), float64(tt.Length)/second, 1000*l.Slice)
		if hasControl(p, t) {
			text += fmt.Sprintf(", each near one of %s or its control", p.Baseline)
		}
		text += fmt.Sprintf("; then each has a window of %g s", l.Window)
		return text
	}
	return wholeKey(l) + ": in slices"
}

func hasControl(p sample.Plan, t plan.Turn) bool {
	return slices.ContainsFunc(t.Cells, func(i int) bool { return p.Cells[i].Control })
}

// turnTables describes the n-th turn of a round: a visit, or an epoch with its cells and the number
// of slices of each.
func turnTables(p sample.Plan, n int, t plan.Turn) []document.Block {
	turn := document.Table{Columns: append([]document.Column{{Right: true, Width: 4}}, cellColumns...)}
	turn.Columns[1].Gap = 2
	number := document.Cell{Text: strconv.Itoa(n)}
	if !t.Epoch {
		turn.Rows = []document.Row{{Cells: append([]document.Cell{number}, cellTexts(p, p.Cells[t.Cells[0]])...)}}
		return []document.Block{turn}
	}
	turn.Columns = turn.Columns[:2]
	turn.Rows = []document.Row{{Cells: []document.Cell{number, {Text: "an epoch of " + loadAndPin(p, p.Cells[t.Cells[0]])}}}}
	count := map[int]int{}
	for _, s := range plan.Epoch(p, t.Cells, plan.Pace{}, 0).Slots {
		if s.Measured() {
			count[s.Cell]++
		}
	}
	cells := document.Table{Level: 4, Layouts: []document.Layout{{Tight: true}}, Columns: append(slices.Clone(cellColumns), document.Column{Right: true})}
	for _, i := range t.Cells {
		slots := document.Cell{Text: fmt.Sprintf("%4d slices", count[i]), Number: &document.Number{Value: float64(count[i]), Unit: "slices"}}
		cells.Rows = append(cells.Rows, document.Row{Cells: append(cellTexts(p, p.Cells[i]), slots)})
	}
	return []document.Block{turn, cells}
}

// cellColumns are the columns of a cell in a plan.
var cellColumns = []document.Column{{Width: 28}, {Width: 15, Gap: 1}, {Gap: 1}}

func cellTexts(p sample.Plan, c sample.Cell) []document.Cell {
	name := nameOf(c)
	switch {
	case c.Placebo:
		name += " (placebo)"
	case c.Control:
		name += " (control)"
	}
	return document.Texts(name, "from "+c.From, loadAndPin(p, c))
}

// loadAndPin returns a cell's load and, if the plan has several, its placement on CPUs.
func loadAndPin(p sample.Plan, c sample.Cell) string {
	if len(p.Pins) < 2 {
		return loadAt(c)
	}
	return loadAt(c) + ", " + analysis.PinWords(c.Pin)
}

// loadAt returns a cell's load, in a sweep with its point.
func loadAt(c sample.Cell) string { return wholeKey(sample.Load{Kind: c.Load, Point: c.Point}) }
