package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/heads"
	"github.com/bridgetoll/bridgetoll/internal/show/sentence"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

const routeLegend = "Ratios and differences are taken round by round and then summarized: they need not be those of two rows. " +
	"≤: nothing measurable, at most this much. ?: unclear."

var (
	routeColumn   = column{texts("", "route"), textOf(analysis.Cell.Label)}
	addressColumn = column{document.Column{Head: [2]string{"", "address"}, Below: true},
		textOf(func(c analysis.Cell) string { return orDash(c.Dial) })}
)

func endpointsView(v *view) {
	v.title = "What each route to an endpoint costs"
	v.columns, v.cellTitle = routeColumns, routeTitle
	v.legend = func(*analysis.Report) string { return routeLegend }
	v.brief, v.briefTitle, v.detailed = briefRoutes, briefRouteTitle, "percentiles, connections, suspects"
	v.added, v.proven = routeAdded, uncounted
}

// askedBy returns the command that measures a load of endpoints. Its arguments are not kept: they
// may have passwords.
func askedBy(l sample.Load) string {
	switch l.Kind {
	case workload.Chat, workload.Batch:
		return "toll stream"
	case workload.SQL:
		return "toll sql"
	}
	return "toll run"
}

// uncounted returns a sentence on routes whose bytes are not counted, or "" if the packets of each
// were captured.
func uncounted(r *analysis.Report) string {
	if slices.ContainsFunc(r.Cells, func(c analysis.Cell) bool { return !c.Proven() }) {
		return sentence.Uncounted
	}
	return ""
}

// routeAdded returns the column with what a route adds. ok is false unless the loads' primary
// metric is a time.
func routeAdded(r *analysis.Report, cells []analysis.Cell) (col column, ok bool) {
	c := cells[0]
	if workload.MetricOf(c.Primary, r.Plan.Loads.Of(c.Load)).Unit != "s" {
		return col, false
	}
	unit, _ := fitting(r, c.Load, c.Primary)
	if unit == "s" {
		unit = "ms"
	}
	return column{texts(addedHead, unit), added(c.Primary)}, true
}

func briefRoutes(r *analysis.Report, cells []analysis.Cell) []column {
	name, address := routeColumn, addressColumn
	name.Cut, name.Least = document.CutMiddle, leastPhrase
	address.Below, address.Spare = false, true
	first := []column{name, address}
	all := briefFigures(r, cells, first, briefBaseline(r))
	if cells[0].Load == workload.Chat { // it is below a table of tokens
		all[len(all)-1].Head[0] = "response" // the verdict is about the response
	}
	if len(cells) > 1 {
		return all
	}
	return slices.DeleteFunc(all, func(c column) bool {
		return c.Head[0] == percentHead || c.Head[0] == addedHead || c.Head[1] == "verdict"
	})
}

// tokenTable returns a table that shows how tokens arrived. ok is false for loads without tokens.
func tokenTable(r *analysis.Report, cells []analysis.Cell) (t document.Table, ok bool) {
	if cells[0].Load != workload.Chat {
		return t, false
	}
	name := routeColumn
	name.Cut, name.Least = document.CutMiddle, leastPhrase
	cols := append([]column{name}, loadColumns(r, workload.Chat, heads.ChatProof)...)
	t = tableOf(cols, cells, onlyGaps)
	for i := range t.Rows {
		t.Rows[i].Style = document.Plain // the verdict is about the response
	}
	return t, true
}

func briefBaseline(r *analysis.Report) string {
	const longest = 12
	if ansi.StringWidth(r.Plan.Baseline) > longest {
		return "baseline"
	}
	return r.Plan.Baseline
}

func briefRouteTitle(r *analysis.Report, cells []analysis.Cell) document.Text {
	c := cells[0]
	noun := r.NounOf(c)
	if c.Load == workload.Chat {
		noun = "tokens and " + noun
	}
	return document.Strongly(printable.Capital(noun)+" from "+clients(cells)+" to "+served(c)).
		Then(", "+describeLoad(r, c.Load)+", "+direction(
			workload.MetricOf(c.Primary, r.Plan.Loads.Of(c.Load))), document.Faint)
}

func routeColumns(r *analysis.Report, load string) []column {
	return columnsWith(r, load, []column{routeColumn, addressColumn}, toBaseline(r))
}

func routeTitle(r *analysis.Report, cells []analysis.Cell) string {
	return fmt.Sprintf("From %s → %s, %s", clients(cells), served(cells[0]),
		describeLoad(r, cells[0].Load))
}

// toBaseline returns "to NAME", or "to the baseline" if the name is wider than any ratio.
func toBaseline(r *analysis.Report) string {
	const longest = 20
	if ansi.StringWidth(r.Plan.Baseline) > longest {
		return "to the baseline"
	}
	return "to " + r.Plan.Baseline
}

const addsHead = "adds "

// worthShowing leaves out what a route adds if there is only one route.
func worthShowing(cols []column, cells []analysis.Cell) []column {
	if len(cells) > 1 {
		return cols
	}
	return slices.DeleteFunc(slices.Clone(cols), func(c column) bool {
		return strings.HasPrefix(c.Head[0], addsHead)
	})
}

// withoutQuiet leaves out columns of rare events that occurred in no cell.
func withoutQuiet(cols []column, cells []analysis.Cell) []column {
	return slices.DeleteFunc(slices.Clone(cols), func(c column) bool {
		return c.Quiet != "" && !slices.ContainsFunc(cells, func(x analysis.Cell) bool {
			text := c.cell(x).Text
			return text != "0" && text != nothing.Text
		})
	})
}

func added(metric string) func(analysis.Cell) document.Cell {
	return adds(metric, analysis.Price.Milliseconds)
}

func adds(metric string, show func(analysis.Price) string) func(analysis.Cell) document.Cell {
	return func(c analysis.Cell) document.Cell {
		p := c.Metrics[metric].Price
		switch {
		case c.Baseline:
			return numberCell("0", 0, c.Metrics[metric].Unit)
		case p == nil:
			return nothing
		}
		return priceCell(show(*p), *p)
	}
}

func clients(cells []analysis.Cell) string {
	var places []string
	for _, c := range cells {
		place := cmp.Or(c.Facts["from"], "here")
		if about := c.Facts["peer"]; about != "" {
			name, _, _ := strings.Cut(about, ", ")
			place = "peer " + name
		}
		if !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	return printable.List(places)
}

func served(c analysis.Cell) string {
	if c.Load == workload.Exec {
		return "the server"
	}
	return cmp.Or(c.Facts["model"], c.Facts["server"], "endpoint")
}
