package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/trend"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/heads"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

func noRuns(l trend.List) []document.Section {
	return []document.Section{{Blocks: []document.Block{paragraph(
		0, "There are no runs in "+l.Dir+" yet: toll keeps every run that measures something.")}}}
}

// History shows the kept runs.
func History(l trend.List) document.Document {
	d := document.Document{Kind: document.AHistory, JSON: l,
		Page: headed("The history", "toll history")}
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
	d := document.Document{Kind: document.AHistory, JSON: t,
		Page: headed("A ratio over the runs of the history", "toll history trend")}
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
	var points []trend.Point
	for _, l := range t.Lines {
		points = append(points, l.Points...)
	}
	d.Add(section(nil, faint(explainDoubts(points)+
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

// trendRows returns a row for each trend, with the newest ratio, its difference from the run
// before, and a bar for each run. Trends with a single run are only counted, unless all are.
func trendRows(lines []trend.Trend) (out []document.Section) {
	several := func(l trend.Trend) bool { return len(l.Points) > 1 }
	shown := slices.Clone(lines)
	if slices.ContainsFunc(lines, several) {
		shown = slices.DeleteFunc(shown, func(l trend.Trend) bool { return !several(l) })
	}
	var titles []string
	of := map[string][]trend.Trend{}
	for _, l := range shown {
		title := trendTitle(l, lines)
		if of[title] == nil {
			titles = append(titles, title)
		}
		of[title] = append(of[title], l)
	}
	for _, title := range titles {
		t := document.Table{Level: 1, Fit: "trends",
			Columns: []document.Column{texts("", heads.Row(of[title][0].On)), texts("", "newest ratio"),
				figures("", "change, %"), texts("", "runs"), texts("", "verdict")},
			Layouts: narrower}
		t.Columns[0].Cut, t.Columns[0].Least, t.Columns[3].Spare = document.CutMiddle, leastPhrase,
			true
		for _, l := range of[title] {
			t.Rows = append(t.Rows, trendRow(l))
		}
		out = append(out, section(document.Strongly(title), t.WithoutEmpty()))
	}
	var newest []trend.Point
	for _, l := range shown {
		newest = append(newest, l.Points[len(l.Points)-1])
	}
	legend := explainDoubts(newest) + "change: against the run before, not judged; runs: a bar for each, the oldest first, of the row's own range. " +
		"toll history trend MODE draws a mode's runs with their intervals, --details those of all; toll diff judges what differs."
	if n := len(slices.DeleteFunc(slices.Clone(lines), several)); n > 0 && n < len(lines) {
		legend = fmt.Sprintf("%s of one run only %s not shown. ", units.Plural(n, "ratio"), units.Agree(n, "is", "are")) +
			legend
	}
	return append(out, section(nil, faint(legend)))
}

// explainDoubts explains the mark of ratios without an interval, if there are any.
func explainDoubts(points []trend.Point) string {
	if !slices.ContainsFunc(points, doubtful) {
		return ""
	}
	return doubtKey + ". "
}

// doubtful reports whether a ratio has no interval, or one that tells nothing.
func doubtful(p trend.Point) bool {
	return p.N <= 1 || tellsNothing(p.Verdict, p.Varies, p.Ratio().HalfWidth(), p.Median)
}

const (
	doubtMark = "(?)"
	doubtKey  = doubtMark + ": no interval, or one that tells nothing"
)

func trendTitle(l trend.Trend, all []trend.Trend) string {
	better := "lower is better"
	if l.Higher {
		better = "higher is better"
	}
	pin := pinned(l.Pin, pinsOf(all, func(l trend.Trend) string { return l.Pin }))
	return fmt.Sprintf("From %s%s, %s: %s, ratio to %s, %s", placeWords(l.From), trendOn(l, all),
		l.Work+pin, metricWord(l.Metric), l.Baseline, better)
}

func trendOn(l trend.Trend, all []trend.Trend) string {
	if l.On == sample.OnEndpoint || !slices.ContainsFunc(all, func(other trend.Trend) bool {
		return other.On != l.On
	}) {
		return ""
	}
	return " on " + l.On
}

func trendRow(l trend.Trend) document.Row {
	last := len(l.Points) - 1
	now := l.Points[last]
	change, bar := document.Cell{}, ""
	if last > 0 && !now.Varies && !l.Points[last-1].Varies {
		x := now.Median / l.Points[last-1].Median
		change = document.Cell{Text: signedPercent(x, 1),
			Number: &document.Number{Value: x, Unit: analysis.RatioUnit}}
		const most = 20
		var medians []float64
		for _, p := range l.Points[max(0, last+1-most):] {
			medians = append(medians, p.Median)
		}
		bar = drawnRounds(medians, nil, slices.Min(medians), slices.Max(medians))
	}
	return document.Row{Cells: []document.Cell{
		{Text: l.Label}, trendRatio(now), change, {Text: bar}, {Text: now.Ratio().Word()}},
		Style: styleOf(now.Verdict)}
}

func trendRatio(p trend.Point) document.Cell {
	n := document.Number{Value: p.Median, Unit: analysis.RatioUnit, Verdict: string(p.Verdict),
		Varies: p.Varies}
	text := analysis.Percent(p.Median) + " " + doubtMark
	if p.N > 1 {
		lower, upper := p.Low, p.High
		n.Low, n.High = &lower, &upper
	}
	if !doubtful(p) {
		text = p.Ratio().String()
	}
	return document.Cell{Text: text, Number: &n}
}
