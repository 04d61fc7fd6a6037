// Package view makes documents of reports. Its only arithmetic is to scale base units for print.
package view

import (
	"fmt"
	"iter"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/chart"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/numbers"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

type view struct {
	title, command string // of a page; command makes such runs
	// below the answer of the whole report
	sections func(r judge.Report) []document.Section
	// nil: the sections of parts above a summary's answer
	summary func(r judge.Report) []document.Section
	parts   func(r judge.Report) []Part
	figures func(r judge.Report) iter.Seq[document.Figure]
	charts  func(r judge.Report) []document.ChartGroup

	columns   func(r *analysis.Report, load string) []column
	cellTitle func(r *analysis.Report, cells []analysis.Cell) string
	above     func(cells []analysis.Cell, i int) document.Text
	layouts   []document.Layout // tried in this order
	single    bool              // no second table of a load's other figures
	kinds     bool              // a table of the CPUs' time by kind
	// notes explain the columns; legend explains how figures are made from visits.
	notes  string
	legend func(r *analysis.Report) string
	hides  string // code of a warning about figures that the tables do not show
	pins   bool   // CPU placements may be columns of one table
	// overview returns the tables of a summary that has one for each place, and one line about the
	// run, and key explains them; nil: the summary has the parts' tables.
	overview func(r judge.Report) []document.Section
	key      func(r judge.Report) string
	// detailed names what only the details show.
	brief      func(r *analysis.Report, cells []analysis.Cell) []column
	briefTitle func(r *analysis.Report, cells []analysis.Cell) document.Text
	detailed   string
	briefNotes string // explain the columns
	// added is the column of what a cell adds to the baseline; ok: there is one.
	added  func(r *analysis.Report, cells []analysis.Cell) (col column, ok bool)
	proven func(r *analysis.Report) string // how far the results' bytes were counted
}

// viewOf returns the view of a run's study. Each study changes the view of a comparison, which is
// also the view of an unknown study.
func viewOf(r *analysis.Report) view {
	v := view{title: "What container network modes cost", command: "toll compare",
		sections:  cellSections,
		parts:     cellParts,
		figures:   onBase(numbers.Cells),
		charts:    onBase(chart.Cells),
		columns:   comparisonColumns,
		cellTitle: comparisonTitle,
		layouts:   withPaths,
		legend:    ratioLegend,
		above:     func([]analysis.Cell, int) document.Text { return nil },
		pins:      r.Study == sample.StudyCompare,
		kinds:     r.Study == sample.StudyCompare,
		brief:     briefColumns, briefTitle: briefTitle, detailed: "CPU, percentiles, paths",
		added: addedColumn, proven: analysis.Witnessed}
	change := map[sample.Study]func(*view){
		sample.StudyScale: scaleView, sample.StudySweep: sweepView, sample.StudyLadder: ladderView,
		sample.StudyAdvise: adviseView, sample.StudyTrace: traceView,
		sample.StudyEndpoints: endpointsView,
		sample.StudyMesh:      meshView,
	}[r.Study]
	if r.Study == sample.StudyCompare {
		v.overview, v.key = onBase(overview), onBase(key)
	}
	if change != nil {
		change(&v)
	}
	if r.Study == sample.StudyTrace && len(r.Cells) > 0 && r.Cells[0].Load == workload.Request {
		tracedRoutesView(&v, r)
	}
	if r.Study == sample.StudyEndpoints && len(r.Plan.Loads) > 0 {
		v.command = askedBy(r.Plan.Loads[0])
	}
	return v
}

func onBase[T any](f func(*analysis.Report) T) func(judge.Report) T {
	return func(r judge.Report) T { return f(r.Base()) }
}

func of[R judge.Report, T any](f func(R) T) func(judge.Report) T {
	return func(r judge.Report) T { return f(r.(R)) }
}

// withPaths are the layouts of tables whose rows have a path, narrower those of tables with short
// texts or spare columns, onlyGaps those of other tables.
var (
	withPaths = []document.Layout{{}, {Short: true}, {Short: true, Tight: true},
		{Short: true, Tight: true, Terse: true},
		{Below: true}, {Below: true, Tight: true}, {Below: true, Tight: true, Terse: true}}
	narrower = []document.Layout{{}, {Tight: true}, {Tight: true, Short: true},
		{Tight: true, Short: true, Lean: true}}
	onlyGaps = []document.Layout{{}, {Tight: true}}
)

func comparisonColumns(r *analysis.Report, load string) []column {
	return columnsWith(r, load, []column{modeColumn, pathColumn}, "to "+r.Plan.Baseline)
}

func comparisonTitle(r *analysis.Report, cells []analysis.Cell) string {
	c := cells[0]
	l := r.Plan.Loads.Of(c.Load)
	return fmt.Sprintf("%s %s %s%s, %s", printable.Capital(placeWords(c.From)), arrow(l),
		servedAt(cells, targetOf), sayOn(r, c.On), describeLoad(r, c.Load)) + r.Plan.SayPin(c.Pin)
}

func targetOf(c analysis.Cell) mode.Target { return c.To }

func servedAt[C any](cells []C, to func(C) mode.Target) string {
	outside := func(c C) bool { return to(c).Outside() }
	inside := func(c C) bool { return !outside(c) }
	switch {
	case !slices.ContainsFunc(cells, outside):
		return "container"
	case slices.ContainsFunc(cells, inside):
		return "container and outside"
	}
	return "outside"
}

func placeWords[P ~string](from P) string { return mode.Placement(from).Words() }

func arrow(l sample.Load) string {
	switch o := workload.BulkOf(l); {
	case o.Bidir:
		return "↔"
	case o.Reverse:
		return "←"
	}
	return "→"
}

// headed returns a function that returns a page with a heading, and the command that shows the
// same.
func headed(title, command string) func() document.Page {
	return func() document.Page { return document.Page{Title: title, Command: command} }
}
