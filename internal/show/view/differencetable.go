package view

import (
	"fmt"
	"math"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/difference"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

func ratioChanges(cells []difference.Cell) document.Table {
	return changesOf(cells, func(difference.Cell, string, stats.Verdict) bool { return true })
}

// decisiveChanges returns the changes of the figures that decide the modes' verdicts, and of others
// that became better or worse.
func decisiveChanges(cells []difference.Cell) document.Table {
	return changesOf(cells, func(c difference.Cell, metric string, v stats.Verdict) bool {
		return metric == c.Primary || v == stats.Better || v == stats.Worse
	})
}

func changesOf(cells []difference.Cell,
	shown func(difference.Cell, string, stats.Verdict) bool) document.Table {
	t := changeTable(texts("", "verdict"))
	eachMetric(cells, func(c difference.Cell, metric string, m difference.Metric) {
		x := m.Ratio
		if x == nil || !shown(c, metric, x.Verdict) {
			return
		}
		row := changeRow(c, metricWord(metric),
			figureCell(x.Old.Brief(), x.Old, analysis.RatioUnit),
			figureCell(x.New.Brief(), x.New, analysis.RatioUnit), *x)
		word := string(x.Verdict)
		if x.Varies() {
			row.Cells[len(row.Cells)-1], word = nothing, analysis.Varying
		}
		row.Cells = append(row.Cells, document.Cell{Text: word})
		row.Style = styleOf(x.Verdict)
		t.Rows = append(t.Rows, row)
	})
	return t
}

func valueChanges(cells []difference.Cell) document.Table {
	t := changeTable()
	eachMetric(cells, func(c difference.Cell, metric string, m difference.Metric) {
		x := m.Value
		if x == nil {
			return
		}
		by, unit := legible(m.Unit, math.Max(x.Old.Median, x.New.Median))
		t.Rows = append(t.Rows, changeRow(c, metricWord(metric)+", "+unit,
			figureCell(units.Digits(by*x.Old.Median), x.Old, m.Unit),
			figureCell(units.Digits(by*x.New.Median), x.New, m.Unit), *x))
	})
	return t
}

func changeTable(more ...document.Column) document.Table {
	mode := texts("", "mode")
	mode.Once, mode.Cut = true, document.CutMiddle
	return document.Table{Level: 1, Layouts: narrower,
		Columns: append([]document.Column{mode, texts("", "figure"), figures("", "old"),
			figures("", "new"),
			{Head: [2]string{"", "change, % (95 %)"}, ShortHead: "change, %"}}, more...)}
}

func eachMetric(cells []difference.Cell, f func(difference.Cell, string, difference.Metric)) {
	for _, c := range cells {
		for _, metric := range difference.Metrics(c) {
			f(c, metric, c.Metrics[metric])
		}
	}
}

func changeRow(c difference.Cell, what string, old, now document.Cell,
	x difference.Change) document.Row {
	low, high := x.Low, x.High
	change := document.Cell{Text: changeText(x), Short: signedPercent(x.Median, 1),
		Number: &document.Number{Value: x.Median,
			Low: &low, High: &high, Unit: analysis.RatioUnit, Verdict: string(x.Verdict)}}
	if !x.HasInterval() {
		change.Short = change.Text
	}
	return document.Row{Cells: []document.Cell{{Text: c.Label}, {Text: what}, old, now, change}}
}

func figureCell(text string, f analysis.Judgement, unit string) document.Cell {
	low, high := f.Low, f.High
	return document.Cell{Text: text, Number: &document.Number{
		Value: f.Median, Low: &low, High: &high, Unit: unit, Varies: f.Varies}}
}

// changeText returns the increase in per cent, such as "-2.1 (-3.0 to -1.2)". It omits the interval
// if there are few rounds, because that would be too wide, or if it tells nothing.
func changeText(x difference.Change) string {
	const wide = 0.1
	half := stats.Summary{Median: x.Median, Low: x.Low, High: x.High}.HalfWidth()
	if !x.HasInterval() || tellsNothing(x.Verdict, false, half, x.Median) {
		return signedPercent(x.Median, 0) + " " + doubtMark
	}
	decimals := 1
	if x.High-x.Low > wide {
		decimals = 0
	}
	return fmt.Sprintf("%s (%s to %s)", signedPercent(x.Median, decimals),
		signedPercent(x.Low, decimals), signedPercent(x.High, decimals))
}

func signedPercent(ratio float64, decimals int) string {
	shift := math.Pow10(decimals)
	x := math.Round(percent*(ratio-1)*shift)/shift + 0 // 0, not -0
	return fmt.Sprintf("%+.*f", decimals, x)
}

func metricWord(metric string) string {
	switch {
	case metric == workload.LatencyP50:
		return "p50"
	case metric == workload.LatencyP99:
		return "p99"
	case strings.HasPrefix(metric, "cpu_per_"):
		return "CPU time"
	}
	return strings.ReplaceAll(metric, "_", " ")
}

// legible returns the unit for figures of about x, and the factor that converts to it.
func legible(unit string, x float64) (by float64, name string) {
	const fewMilliseconds = 10e-3
	switch {
	case unit == "bit/s":
		return giga, "Gbit/s"
	case unit == "s" && x >= fewMilliseconds:
		return milli, "ms"
	case unit == "s":
		return micro, "µs"
	case unit == "s/B":
		return perGB, "s/GB"
	}
	return 1, unit
}
