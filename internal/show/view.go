package show

import (
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// view is how a study's cells are laid out. What is nil or empty is as in a comparison.
type view struct {
	study   string
	columns func(r *analysis.Report, load string) []column
	title   func(r *analysis.Report, cells []analysis.Cell) string
	// above is what stands above a row; nil: nothing.
	above   func(cells []analysis.Cell, i int) document.Text
	layouts []document.Layout // that are tried
	single  bool              // without a second table of what else a load has
	// notes are said of the columns, legend of how figures are made of visits.
	notes  string
	legend func(r *analysis.Report) string
	hides  string // the code of a warning about what the tables do not show
}

// withPaths are the layouts of tables whose rows have a path, onlyGaps those of others.
var (
	withPaths = []document.Layout{{}, {Short: true}, {Short: true, Tight: true}, {Short: true, Tight: true, Terse: true},
		{Below: true}, {Below: true, Tight: true}, {Below: true, Tight: true, Terse: true}}
	onlyGaps = []document.Layout{{}, {Tight: true}}
)

// views are those of the studies; the first is of a comparison.
var views = []view{
	{columns: comparisonColumns, title: comparisonTitle, layouts: withPaths, legend: ratioLegend},
	scaleView, ladderView, endpointsView,
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
	return v
}

func comparisonColumns(r *analysis.Report, load string) []column {
	return columnsWith(r, load, []column{modeColumn, pathColumn}, "to "+r.Plan.Baseline)
}

func comparisonTitle(r *analysis.Report, cells []analysis.Cell) string {
	c := cells[0]
	return fmt.Sprintf("%s %s container%s, %s", c.From, arrow(loadOf(r, c.Load)), sayOn(r, c.On), describeLoad(r, c.Load))
}

// arrow is where a load's payload goes.
func arrow(l sample.Load) string {
	switch o := workload.BulkOf(l); {
	case o.Bidir:
		return "↔"
	case o.Reverse:
		return "←"
	}
	return "→"
}
