// Package view makes documents of reports, with a view for each study. Its only arithmetic is to
// scale base units for print.
package view

import (
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// view says how a study's cells are laid out. Fields that are nil or empty are as in a comparison.
type view struct {
	study   string
	columns func(r *analysis.Report, load string) []column
	title   func(r *analysis.Report, cells []analysis.Cell) string
	// above returns the text above a row; nil: no text.
	above   func(cells []analysis.Cell, i int) document.Text
	layouts []document.Layout // tried in this order
	single  bool              // there is no second table of a load's other figures
	// notes explain the columns; legend explains how figures are made from visits.
	notes  string
	legend func(r *analysis.Report) string
	hides  string // code of a warning about figures that the tables do not show
	// brief and briefTitle make the tables of a summary; detailed names what only the details show.
	brief      func(r *analysis.Report, cells []analysis.Cell) []column
	briefTitle func(r *analysis.Report, cells []analysis.Cell) document.Text
	detailed   string
	briefNotes string // explain the columns
}

// withPaths are the layouts of tables whose rows have a path; onlyGaps are those of other tables.
var (
	withPaths = []document.Layout{{}, {Short: true}, {Short: true, Tight: true}, {Short: true, Tight: true, Terse: true},
		{Below: true}, {Below: true, Tight: true}, {Below: true, Tight: true, Terse: true}}
	onlyGaps = []document.Layout{{}, {Tight: true}}
)

// views lists the studies' views; the first is for comparisons.
var views = []view{
	{columns: comparisonColumns, title: comparisonTitle, layouts: withPaths, legend: ratioLegend,
		brief: briefColumns, briefTitle: briefTitle, detailed: "CPU, percentiles, paths"},
	scaleView, sweepView, ladderView, adviseView, endpointsView,
}

func viewOf(r *analysis.Report) view {
	usual := views[0]
	i := slices.IndexFunc(views, func(v view) bool { return v.study == r.Study })
	v := views[max(0, i)]
	if v.columns == nil {
		v.columns = usual.columns
	}
	if v.title == nil {
		v.title = usual.title
	}
	if v.layouts == nil {
		v.layouts = usual.layouts
	}
	if v.legend == nil {
		v.legend = usual.legend
	}
	if v.brief == nil {
		v.brief = usual.brief
	}
	if v.briefTitle == nil {
		v.briefTitle = usual.briefTitle
	}
	if v.detailed == "" {
		v.detailed = usual.detailed
	}
	return v
}

func comparisonColumns(r *analysis.Report, load string) []column {
	return columnsWith(r, load, []column{modeColumn, pathColumn}, "to "+r.Plan.Baseline)
}

func comparisonTitle(r *analysis.Report, cells []analysis.Cell) string {
	c := cells[0]
	l := loadOf(r, c.Load)
	return fmt.Sprintf("%s %s container%s, %s", printable.Capital(placeWords(c.From)), arrow(l), sayOn(r, c.On), describeLoad(r, c.Load)) + r.Plan.SayPin(c.Pin)
}

// placeWords names a placement within a sentence.
func placeWords(from string) string { return mode.Placement(from).Words() }

// arrow shows the direction of a load's payload.
func arrow(l sample.Load) string {
	switch o := workload.BulkOf(l); {
	case o.Bidir:
		return "↔"
	case o.Reverse:
		return "←"
	}
	return "→"
}
