package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/trend"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

func noRuns(l trend.List) []document.Section {
	return []document.Section{{Blocks: []document.Block{paragraph(
		0, "There are no runs in "+l.Dir+" yet: toll keeps every run that measures something.")}}}
}

// History shows the kept runs.
func History(l trend.List) document.Document {
	d := document.Document{Kind: document.AHistory, JSON: l}
	if l.Total == 0 {
		d.Sections = noRuns(l)
		return d
	}
	command, what := texts("", "command"), texts("", "ratios")
	const leastCommand, leastRatios = 26, 12 // columns
	command.Cut, command.Least = document.CutEnd, leastCommand
	what.Cut, what.Least = document.CutEnd, leastRatios
	t := document.Table{Columns: []document.Column{
		texts("", "run"), texts("", "when (UTC)"), command, what},
		Layouts: []document.Layout{{Short: true}, {Short: true, Tight: true}}}
	for _, e := range l.Runs {
		cells := append(document.Texts(e.Name(), minute(e.Started), pastCommand(e)), pastRows(e))
		t.Rows = append(t.Rows, document.Row{Cells: cells})
	}
	where := fmt.Sprintf("%s in %s (%s)", units.Plural(l.Total, "run"), l.Dir, megabytes(l.Size))
	said := where
	if l.Total > len(l.Runs) {
		said = fmt.Sprintf("The newest %d of %s", len(l.Runs), where)
	}
	d.Sections = []document.Section{{Blocks: []document.Block{t}}, {Blocks: []document.Block{
		paragraph(0,
			said+"; ratios are to its baseline. toll history show 1 reports the newest; toll diff compares it with the last one like it, "+
				"toll diff @3 @2 any two; toll history trend draws them.")}}}
	return d
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

func minute(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") }

func pastCommand(e trend.Entry) string {
	if e.Error != "" {
		return "?"
	}
	return e.CommandLine()
}

// mostRatios is the width in columns of the ratios next to the command line.
const mostRatios = 36

// pastRows returns a run's ratios by load in one line; the short text has only the first.
func pastRows(e trend.Entry) document.Cell {
	if e.Error != "" {
		return document.Cell{Text: e.Error}
	}
	if e.Swept != "" { // a ratio at each point would say little in a line
		return document.Cell{Text: e.Swept + ": " + strings.Join(e.Modes, ", ")}
	}
	var out []string
	load := ""
	for _, r := range e.Rows {
		if r.Pin != e.Rows[0].Pin { // one CPU placement's ratios are enough
			continue
		}
		text := r.Label + " " + analysis.Percent(r.Median)
		if r.Varies {
			text = r.Label + " varies"
		}
		if r.Load != load && len(e.Loads) > 1 {
			text = r.Load + ": " + text
		}
		load = r.Load
		out = append(out, text)
	}
	if len(out) == 0 {
		return document.Cell{Text: strings.Join(e.Modes, ", ")}
	}
	text := strings.Join(out, ", ")
	return document.Cell{Text: text, Short: ansi.Truncate(text, mostRatios, "…")}
}

const mostDrawn = 4

// Trends shows ratios over the kept runs: of all modes, or of those named. Up to mostDrawn trends,
// or all with details, are drawn run by run.
func Trends(l trend.List, names []string, details bool) document.Document {
	t := trend.Of(l, names)
	d := document.Document{Kind: document.AHistory, JSON: t}
	if l.Total == 0 {
		d.Sections = noRuns(l)
		return d
	}
	if len(t.Lines) == 0 {
		d.Sections = []document.Section{{Blocks: []document.Block{
			paragraph(0, "No run in "+t.Dir+" has a matching ratio.")}}}
		return d
	}
	if len(t.Lines) > mostDrawn && !details {
		d.Sections = trendRows(t.Lines)
		return d
	}
	for _, l := range t.Lines {
		pins := pinsOf(t.Lines, func(l trend.Trend) string { return l.Pin })
		title := fmt.Sprintf("%s from %s%s, %s: %s", l.Label, placeWords(l.From),
			trendOn(l, t.Lines),
			l.Load+pinned(l.Pin, pins), metricWord(l.Metric))
		better := "lower is better"
		if l.Higher {
			better = "higher is better"
		}
		d.Add(section(document.Strongly(title), paragraph(1, fmt.Sprintf("ratio to %s, %s; %s",
			l.Baseline, better, l.Work)), trendTable(l)))
	}
	d.Add(section(nil, faint("●: the ratio; ─: its 95 % interval; │: the baseline. "+
		"Ratios of different runs are comparable as long as kernel, machine and load are the same: toll diff says what differs, and judges it.")))
	return d
}

func trendTable(l trend.Trend) document.Table {
	const ratio = 2
	t := document.Table{Level: 1, Columns: []document.Column{
		texts("", "run"), texts("", "when (UTC)"), texts("", "ratio"), texts("", "verdict")},
		Layouts: []document.Layout{{}, {Tight: true}, {Bare: true}, {Bare: true, Tight: true}}}
	for _, p := range l.Points {
		row := document.Row{Cells: document.Texts(fmt.Sprintf("@%d", p.Run), minute(p.Started)),
			Style: styleOf(p.Verdict)}
		row.Cells = append(row.Cells, trendRatio(p), document.Cell{Text: p.Ratio().Word()})
		if len(p.Changed) > 0 {
			row.Above = document.Text{{Text: strings.Join(p.Changed, ", "), Style: document.Faint}}
		}
		t.Rows = append(t.Rows, row)
	}
	t.Plot = &document.Plot{Column: ratio, Before: ratio, Baseline: 1, Scale: 1, Least: leastPlot}
	t.Plot.Show(t.Rows)
	return t
}
