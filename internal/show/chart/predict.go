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
	type place struct{ from, on, pin string }
	var places []place
	by := map[place][]predict.Row{}
	for _, x := range p.Rows {
		at := place{x.From, x.On, x.Pin}
		if by[at] == nil {
			places = append(places, at)
		}
		by[at] = append(by[at], x)
	}
	for _, at := range places {
		g := document.ChartGroup{Title: "From " + mode.Placement(at.from).Words() + ", on " + at.on}
		if at.pin != "" {
			g.Title += ", on " + analysis.PinWords(at.pin)
		}
		for _, q := range predictions {
			if c, ok := predictionChart(p, by[at], q.name, q.title, q.of); ok {
				g.Charts = append(g.Charts, c)
			}
		}
		if len(g.Charts) > 0 {
			out.Groups = append(out.Groups, g)
		}
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
			row.Verdict, row.Text = string(price.Verdict), price.In(price.String())
		}
		if !x.Baseline && price.N > 1 {
			low, high := 1+price.Low/base.Median, 1+price.High/base.Median
			row.Low, row.High = &low, &high
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
