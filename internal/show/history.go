package show

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/trend"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// History is the document of the runs that are kept.
func History(l trend.List) document.Document {
	d := document.Document{Kind: document.AHistory, Value: l}
	if l.Total == 0 {
		d.Sections = []document.Section{{Blocks: []document.Block{
			paragraph(0, "No run is kept in "+l.Dir+" yet: every run that measured something will be.", document.Words)}}}
		return d
	}
	what := texts("", "ratios to the baseline")
	what.Cut = document.CutEnd
	t := document.Table{Columns: []document.Column{texts("", "run"), texts("", "when (UTC)"), texts("", "what"), texts("", "loads"), what},
		Layouts: []document.Layout{{}, {Tight: true}}}
	for _, e := range l.Runs {
		t.Rows = append(t.Rows, document.Row{Cells: document.Texts(e.Name(), minute(e.Started), pastStudy(e), strings.Join(e.Loads, " "), pastRows(e))})
	}
	said := fmt.Sprintf("%s in %s", plural(l.Total, "run"), l.Dir)
	if l.Total > len(l.Runs) {
		said = fmt.Sprintf("The newest %d of %s in %s", len(l.Runs), plural(l.Total, "run"), l.Dir)
	}
	d.Sections = []document.Section{{Blocks: []document.Block{t}}, {Blocks: []document.Block{
		paragraph(0, said+". toll history show 1 reports the newest; toll diff @2 @1 compares two; toll history trend draws them.", document.Words)}}}
	return d
}

func minute(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") }

func pastStudy(e trend.Entry) string {
	switch {
	case e.Error != "":
		return "?"
	case e.Study == "":
		return "compare"
	}
	return e.Study
}

// pastRows are a run's ratios in a line, by load.
func pastRows(e trend.Entry) string {
	if e.Error != "" {
		return e.Error
	}
	var out []string
	load := ""
	for _, r := range e.Rows {
		text := fmt.Sprintf("%s %.2f", r.Label, r.Median)
		if r.Load != load && len(e.Loads) > 1 {
			text = r.Load + ": " + text
		}
		load = r.Load
		out = append(out, text)
	}
	if len(out) == 0 {
		return strings.Join(e.Modes, ", ")
	}
	return strings.Join(out, ", ")
}

// Trends is the document of ratios over runs.
func Trends(t *trend.Trends) document.Document {
	d := document.Document{Kind: document.AHistory, Value: t}
	if len(t.Lines) == 0 {
		d.Sections = []document.Section{{Blocks: []document.Block{paragraph(0, "No run in "+t.Dir+" has such a ratio.", document.Words)}}}
		return d
	}
	for _, l := range t.Lines {
		title := fmt.Sprintf("%s from %s, %s: %s", l.Label, placeWords(l.From), l.Load, metricWord(l.Metric))
		better := "lower is better"
		if l.Higher {
			better = "higher is better"
		}
		d.Sections = append(d.Sections, document.Section{Title: document.Strongly(title), Blocks: []document.Block{
			paragraph(1, fmt.Sprintf("ratio to %s, %s; %s", l.Baseline, better, l.Work), document.Words), trendTable(l)}})
	}
	d.Sections = append(d.Sections, document.Section{Blocks: []document.Block{faint("●: the ratio; ─: its 95 % interval; ┊: the baseline. "+
		"Ratios of different runs are comparable as long as kernel, machine and load are the same: toll diff @2 @1 says what differs, and judges it.", document.Words)}})
	return d
}

// trendColumns is how many columns a trend's picture has.
const trendColumns = 24

// trendTable has a row for each run, with the interval on a scale that all rows share.
func trendTable(l trend.Trend) document.Table {
	low, high := 1.0, 1.0 // the baseline is on the scale
	for _, p := range l.Points {
		low, high = min(low, p.Low), max(high, p.High)
	}
	picture := document.Column{Head: [2]string{"", scaleHead(low, high)}, Width: trendColumns}
	t := document.Table{Level: 1, Columns: []document.Column{texts("", "run"), texts("", "when (UTC)"), picture, texts("", "ratio"), texts("", "verdict")},
		Layouts: []document.Layout{{}, {Tight: true}}}
	for _, p := range l.Points {
		lower, upper := p.Low, p.High
		row := document.Row{Cells: document.Texts(fmt.Sprintf("@%d", p.Run), minute(p.Started), drawnPoint(p, low, high)), Style: styleOf(p.Verdict)}
		text := fmt.Sprintf("%.2f (%.2f–%.2f)", p.Median, p.Low, p.High)
		if p.N < 2 {
			text = fmt.Sprintf("%.2f (?)", p.Median)
		}
		row.Cells = append(row.Cells, document.Cell{Text: text, Number: &document.Number{Value: p.Median, Low: &lower, High: &upper, Unit: "ratio", Verdict: string(p.Verdict)}},
			document.Cell{Text: string(p.Verdict)})
		if len(p.Changed) > 0 {
			row.Above = document.Text{{Text: strings.Join(p.Changed, ", "), Style: document.Faint}}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// scaleHead are the ends of a scale above its columns.
func scaleHead(low, high float64) string {
	a, b := fmt.Sprintf("%.2f", low), fmt.Sprintf("%.2f", high)
	return a + strings.Repeat(" ", max(1, trendColumns-len(a)-len(b))) + b
}

// drawnPoint draws a point's interval on a scale.
func drawnPoint(p trend.Point, low, high float64) string {
	at := func(x float64) int {
		if !(high > low) {
			return 0
		}
		k := int(math.Round((trendColumns - 1) * (min(max(x, low), high) - low) / (high - low)))
		return min(max(k, 0), trendColumns-1) // of a scale as wide as floats go
	}
	out := []rune(strings.Repeat(" ", trendColumns))
	out[at(1)] = '┊'
	for k := at(p.Low); p.N > 1 && k <= at(p.High); k++ {
		out[k] = '─'
	}
	out[at(p.Median)] = '●'
	return strings.TrimRight(string(out), " ")
}
