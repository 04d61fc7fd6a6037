package chart

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/predict"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

var predictions = []struct {
	name, title string
	of          func(predict.Row) *predict.Quantity
}{
	{predict.Page, "Time of a page", func(x predict.Row) *predict.Quantity { return x.Page }},
	{predict.CPU, "CPU time of the queries", func(x predict.Row) *predict.Quantity { return x.CPU }},
	{predict.StreamCPU, "CPU time of the tokens",
		func(x predict.Row) *predict.Quantity { return x.StreamCPU }},
}

// Prediction returns a chart of each predicted quantity, in groups by placement and backend.
func Prediction(p *predict.Prediction) document.Page {
	out := document.Page{Title: "What each mode would cost an application", Command: "toll predict",
		Lede: hostOf(p.Environment.Host)}
	for _, rows := range analysis.Grouped(p.Rows, func(x predict.Row) [3]string {
		return [3]string{x.From, x.On, x.Pin}
	}) {
		at := rows[0]
		title := "From " + mode.Placement(at.From).Words() + ", on " + at.On
		if at.Pin != "" {
			title += ", on " + analysis.PinWords(at.Pin)
		}
		var all charts
		for _, q := range predictions {
			all.add(predictionChart(p, rows, q.name, q.title, q.of))
		}
		out.Groups = all.under(title, out.Groups)
	}
	return out
}

// predictionChart draws the baseline's quantity and what the other modes add, relative to it. ok is
// false without a mode to compare.
func predictionChart(p *predict.Prediction, rows []predict.Row, name, title string,
	of func(predict.Row) *predict.Quantity) (c document.Chart, ok bool) {
	b := slices.IndexFunc(rows, func(x predict.Row) bool { return x.Baseline })
	if b < 0 || of(rows[b]) == nil || of(rows[b]).Median <= 0 {
		return c, false
	}
	base, one := of(rows[b]), 1.0
	to := scaleFor(base.Unit, base.Median)
	if base.Unit == "core" {
		to = scale{100, "% of a core"}
	}
	spec := intervals{Line: &one, Axis: "ratio to " + p.Baseline + ", lower is better",
		Rows: []intervalRow{}}
	var entries [][]string
	for _, x := range rows {
		price, priced := x.Over[name]
		q := of(x)
		if q == nil || !x.Baseline && !priced {
			continue
		}
		row := intervalRow{Label: x.Label, Value: 1, Text: "baseline", Figure: to.text(q.Median)}
		if !x.Baseline {
			ok = true
			row.Value = 1 + price.Median/base.Median
			row.Figure = to.text(base.Median + price.Median) // which the added time leads to
			row.Verdict, row.Text = string(price.Verdict), price.Fitting()
		}
		if !x.Baseline && price.N > 1 {
			row.Low, row.High = ends(1+price.Low/base.Median, 1+price.High/base.Median)
		}
		spec.Rows = append(spec.Rows, row)
		entries = append(entries, []string{row.Label, row.Figure, row.Text, row.Verdict})
	}
	spec.cut()
	return document.Chart{Kind: "interval", Title: title + ", against " + p.Baseline, Spec: spec,
		Table: tableOf(entries, "mode", "predicted", "adds", "verdict"),
		How: "Dot: the baseline's figure and what the mode adds, relative to the baseline's; bar: the " +
			"95 % interval." + spec.cutNote()}, ok
}

func hostOf(name string) string {
	if name == "" {
		return ""
	}
	return "on " + name
}
