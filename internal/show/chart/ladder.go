package chart

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/ladder"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// falls is a waterfall chart: most bars begin where another ends.
type falls struct {
	Axis string `json:"axis"`
	Rows []fall `json:"rows"`
}

type fall struct {
	Label   string   `json:"label"`
	Below   *int     `json:"below,omitempty"` // index of the row at whose end it begins
	From    float64  `json:"from"`
	To      float64  `json:"to"`
	Low     *float64 `json:"low,omitempty"`
	High    *float64 `json:"high,omitempty"`
	Varies  bool     `json:"varies,omitempty"` // Low and High are a range
	Verdict string   `json:"verdict"`
	Text    string   `json:"text"`
}

var priced = []struct{ metric, load, title string }{
	{workload.LatencyP50, workload.RR, "Median latency, part by part"},
	{workload.CPUPerTrip, workload.RR, "CPU time per round trip, part by part"},
	{workload.Throughput, workload.Bulk, "Throughput, part by part"},
	{workload.CPUPerByte, workload.Bulk, "CPU time per byte, part by part"},
	{workload.LatencyP50, workload.Stream, "Median token delay, part by part"},
	{workload.CPUPerToken, workload.Stream, "CPU time per token, part by part"},
}

// Ladder returns the charts of a ladder: the price of each part, and the modes' own figures.
func Ladder(l *ladder.Report) []document.ChartGroup {
	r := l.Base()
	var out []document.ChartGroup
	for rest := l.Steps; len(rest) > 0; {
		n := slices.IndexFunc(rest, func(s ladder.Step) bool {
			return s.Way() != rest[0].Way() || s.On != rest[0].On
		})
		if n < 0 {
			n = len(rest)
		}
		var all charts
		for _, p := range priced {
			all.add(fallChart(r, rest[:n], p.metric, p.load, p.title))
		}
		out = all.under("The ladder from "+rest[0].Way()+", on "+rest[0].On, out)
		for _, s := range rest[:n] {
			out = append(out, traceGroups(r, s.Trace)...)
		}
		rest = rest[n:]
	}
	return append(out, groups(r, false, figureCharts)...)
}

// fallChart draws the prices of a ladder's parts. The first bar is the bottom rung's own figure.
// Each other bar begins at the end of the bar below. ok is false without a price.
func fallChart(r *analysis.Report, steps []ladder.Step,
	metric, load, title string) (c document.Chart, ok bool) {
	var own []float64
	unit := ""
	for _, s := range steps {
		if m, has := metricOf(r, s, load, metric); has {
			own, unit = append(own, m.Median), m.Unit
		}
	}
	to := scaleFor(unit, largest(own...))
	if unit == "s" { // the unit in which prices are printed
		to = scale{1e6, "µs"}
	}
	spec, at := falls{Axis: to.unit}, map[string]int{}
	head := "price, " + to.unit
	var rows [][]string
	for _, s := range steps {
		m, has := metricOf(r, s, load, metric)
		price, isPriced := s.Prices[ladder.PriceName(load, metric)]
		below, stands := at[s.Below]
		switch {
		case !has:
			continue
		case s.Below == "":
			spec.Rows = append(spec.Rows, fall{Label: s.Label, To: fourDigits(m.Median * to.by),
				Text: to.text(m.Median)})
		case isPriced && stands:
			spec.Rows = append(spec.Rows, priceBar(s, price, spec.Rows[below].To, below, to))
			ok = true
			if price.Unit == analysis.RatioUnit {
				head = "ratio to that"
			}
		default:
			continue
		}
		at[s.Label] = len(spec.Rows) - 1
		row := spec.Rows[len(spec.Rows)-1]
		rows = append(rows, []string{row.Label, s.Below, row.Text, row.Verdict, to.text(m.Median)})
	}
	return document.Chart{Kind: "waterfall", Title: title, Spec: spec,
		Table: tableOf(rows, "mode or part", "on top of", head, "verdict",
			"median of its own"),
		How: "The first bar is the bottom rung's own figure. Each other bar begins where the rung below it ends and is as long as " +
			"the price of its part, with the 95 % interval as a line. Pale: nothing measurable, unclear or, with the range as a line, varying."}, ok
}

func priceBar(s ladder.Step, p analysis.Price, from float64, below int, to scale) fall {
	end := func(x float64) float64 { return fourDigits(from + x*to.by) }
	if p.Unit == analysis.RatioUnit {
		end = func(x float64) float64 { return fourDigits(from * x) }
	}
	out := fall{Label: s.Label + ": " + s.Part, Below: &below, From: from, To: end(p.Median),
		Verdict: string(p.Verdict), Text: p.String(), Varies: p.Varies}
	if p.N > 1 {
		out.Low, out.High = ends(end(p.Low), end(p.High))
	}
	return out
}

// metricOf returns a metric of a step; ok is false if the step does not have it.
func metricOf(r *analysis.Report, s ladder.Step, load, metric string) (m analysis.Metric, ok bool) {
	i := slices.IndexFunc(r.Cells, func(c analysis.Cell) bool { return s.Has(c) && c.Load == load })
	if i < 0 {
		return m, false
	}
	m, ok = r.Cells[i].Metrics[metric]
	return m, ok
}
