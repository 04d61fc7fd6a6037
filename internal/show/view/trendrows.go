package view

import (
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/trend"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

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
			Columns: []document.Column{texts("", "mode"), texts("", "newest ratio"),
				figures("", "change, %"), texts("", "runs"), texts("", "verdict")},
			Layouts: narrower}
		t.Columns[0].Cut, t.Columns[0].Least, t.Columns[3].Spare = document.CutMiddle, leastPhrase,
			true
		for _, l := range of[title] {
			t.Rows = append(t.Rows, trendRow(l))
		}
		out = append(out, section(document.Strongly(title), t))
	}
	legend := "change: against the run before, not judged; runs: a bar for each, the oldest first, of the row's own range. " +
		"toll history trend MODE draws a mode's runs with their intervals, --details those of all; toll diff judges what differs."
	if n := len(slices.DeleteFunc(slices.Clone(lines), several)); n > 0 && n < len(lines) {
		legend = fmt.Sprintf("%s of one run only %s not shown. ", units.Plural(n, "ratio"), units.Agree(n, "is", "are")) +
			legend
	}
	return append(out, section(nil, faint(legend)))
}

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
	if !slices.ContainsFunc(all, func(other trend.Trend) bool { return other.On != l.On }) {
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
	text := analysis.Percent(p.Median) + " (?)"
	if p.N > 1 {
		lower, upper := p.Low, p.High
		n.Low, n.High = &lower, &upper
		text = p.Ratio().String()
	}
	return document.Cell{Text: text, Number: &n}
}
