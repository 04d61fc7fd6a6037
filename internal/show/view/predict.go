package view

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/predict"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/chart"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/numbers"
	"github.com/bridgetoll/bridgetoll/internal/show/sentence"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// Prediction shows a prediction with its arithmetic.
func Prediction(r *predict.Prediction) document.Document {
	sentence.Fill(r)
	d := document.Document{Kind: document.APrediction, JSON: r, Figures: numbers.Prediction(r),
		Page: func() document.Page { return chart.Prediction(r) }}
	if r.Answer != nil {
		d.Add(answerSection(r.Answer))
	}
	said := section(nil, plainFacts(strings.Join(machineFacts(r.Environment), document.Facts)))
	if !r.Started.IsZero() {
		said.Add(paragraph(0, fmt.Sprintf("From the run of %s (UTC): %s", minute(r.Started),
			printable.Line(sample.CommandLine(r.Command)))))
	}
	said.Add(paragraph(0, workloadWords(r.Workload)))
	d.Add(said)
	for rows := r.Rows; len(rows) > 0; {
		n := slices.IndexFunc(rows, func(x predict.Row) bool {
			return x.From != rows[0].From || x.On != rows[0].On
		})
		if n < 0 {
			n = len(rows)
		}
		d.Sections = append(d.Sections, document.Section{
			Title: document.Strongly(printable.Capital(placeWords(rows[0].From)) + " → " +
				servedAt(rows[:n], func(x predict.Row) mode.Target { return mode.Target(x.To) })),
			Blocks: predicted(r, rows[:n])})
		rows = rows[n:]
	}
	items := formulas(r)
	for _, x := range r.Rows {
		if text := arithmetic(r.Workload, x); text != "" && x.Label == r.Baseline {
			items = append(items, fmt.Sprintf("%s from %s: %s", x.Label, placeWords(x.From), text))
		}
	}
	if slices.ContainsFunc(r.Rows, func(x predict.Row) bool { return x.Label != r.Baseline }) {
		items = append(items, "the other modes: "+r.Baseline+"'s, and what each has over it")
	}
	items = append(items, predictionKey(r))
	d.Add(list(document.Notes, "Arithmetic", append(items, r.Notes...)))
	return d
}

// predictionKey explains what the tables and the arithmetic of a prediction have.
func predictionKey(r *predict.Prediction) string {
	text := "Computed per round, differences per slice where the file has slices. ≈: each figure here " +
		"is a median of the rounds."
	if r.Workload.QPS > 0 {
		text += " CPU time of the queries is that of the whole machine, for both ends of a connection."
	}
	if r.Workload.Tokens > 0 {
		text += " CPU time of tokens is the client's, server's and proxy's."
	}
	has := func(v stats.Verdict) bool {
		return slices.ContainsFunc(r.Rows, func(x predict.Row) bool {
			for _, p := range x.Over {
				if p.Verdict == v {
					return true
				}
			}
			return false
		})
	}
	if has(stats.Nothing) {
		text += " ≤: nothing measurable, at most this much."
	}
	if slices.ContainsFunc(r.Rows, predict.Row.FewRounds) {
		text += " ±?: too few rounds for an interval."
	}
	if has(stats.Unclear) {
		text += " ?: unclear; measure longer, or on a quieter machine."
	}
	return text
}

func workloadWords(w predict.Workload) string {
	text := fmt.Sprintf("Predicted for pages of %s, with replies of %s", units.Plural(w.Queries, "query"),
		units.Plural(int(w.Bytes), "byte"))
	if w.QPS > 0 {
		text += fmt.Sprintf(", at %g queries per second", w.QPS)
	}
	if w.Tokens > 0 {
		text += fmt.Sprintf(", and %g streamed tokens per second", w.Tokens)
	}
	return text
}

type forecast struct {
	document.Column
	cell func(predict.Row) document.Cell
}

func predicted(r *predict.Prediction, rows []predict.Row) []document.Block {
	over := func(name, unit string, level func(predict.Row) *predict.Quantity) forecast {
		return forecast{texts("over "+r.Baseline, unit), func(x predict.Row) document.Cell {
			if price, ok := x.Over[name]; ok {
				return priceCell(overText(price, level(x).Median), price)
			}
			return document.Cell{}
		}}
	}
	page := func(x predict.Row) *predict.Quantity { return x.Page }
	cpu := func(x predict.Row) *predict.Quantity { return x.CPU }
	tokens := func(x predict.Row) *predict.Quantity { return x.StreamCPU }
	share := func(head string, of func(predict.Row) *predict.Quantity) forecast {
		return forecast{texts(head, "% of a core"), func(x predict.Row) document.Cell {
			return quantity(of(x), percent)
		}}
	}
	queries := []forecast{
		{texts("page", "ms"), func(x predict.Row) document.Cell { return quantity(x.Page, milli) }},
		over(predict.Page, "µs", page),
	}
	if r.Workload.QPS > 0 {
		queries = append(queries, share("CPU", cpu), over(predict.CPU, "%", cpu))
	}
	out := []document.Block{forecasts(queries, rows, predict.Page)}
	if r.Workload.Tokens > 0 {
		out = append(out, forecasts([]forecast{
			share("tokens' CPU", tokens),
			over(predict.StreamCPU, "%", tokens)}, rows, predict.StreamCPU))
	}
	return out
}

// overText returns what Price.String does, in the form that a column's other intervals have, and
// "?" if the interval tells nothing about a quantity as large as level.
func overText(p analysis.Price, level float64) string {
	half := stats.Summary{Median: p.Median, Low: p.Low, High: p.High}.HalfWidth()
	if p.N < 2 { // it may be as far from 0 on the other side
		half = math.Abs(p.Median)
	}
	if tellsNothing(p.Verdict, p.Varies, half, level) {
		return "?"
	}
	if p.LimitedBy != "" || p.Verdict == stats.Nothing || p.Varies || p.N < 2 {
		return p.String()
	}
	text := p.Even("")
	if p.Verdict == stats.Unclear {
		text += " ?"
	}
	return text
}

// forecasts returns a table of predictions. Rows are styled by their verdict on the quantity named
// verdict.
func forecasts(cols []forecast, rows []predict.Row, verdict string) document.Table {
	t := document.Table{Level: 1, Columns: []document.Column{modeColumn.Column}}
	for _, c := range cols {
		t.Columns = append(t.Columns, c.Column)
	}
	for _, x := range rows {
		row := document.Row{Cells: document.Texts(x.Label), Style: styleOf(x.Over[verdict].Verdict)}
		for _, c := range cols {
			row.Cells = append(row.Cells, c.cell(x))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func quantity(q *predict.Quantity, by float64) document.Cell {
	if q == nil {
		return nothing
	}
	x := q.Shown()
	c := numberCell(units.Digits(by*x.Median)+" ±?", x.Median, q.Unit)
	if !q.FewRounds() {
		c.Text = fmt.Sprintf("%s (%s–%s)", units.Digits(by*x.Median), units.Digits(by*x.Low),
			units.Digits(by*x.High))
		c.Number.Low, c.Number.High = &x.Low, &x.High
	}
	return c
}

func formulas(r *predict.Prediction) []string {
	w := r.Workload
	bytes, perByte := "", ""
	if len(r.Rows) > 0 && r.Rows[0].Extra > 0 {
		bytes = fmt.Sprintf(" + %.0f B / throughput of bulk", r.Rows[0].Extra)
		perByte = fmt.Sprintf(" + %.0f B × CPU time per byte of bulk", r.Rows[0].Extra)
	}
	out := []string{fmt.Sprintf("page = %d × (median round trip of rr%s)", w.Queries, bytes)}
	if w.QPS > 0 {
		out = append(out, fmt.Sprintf("CPU = %g/s × (CPU time per round trip of rr%s)", w.QPS,
			perByte))
	}
	if w.Tokens > 0 {
		out = append(out, fmt.Sprintf("tokens' CPU = %g/s × CPU time per token of stream",
			w.Tokens))
	}
	return out
}

func arithmetic(w predict.Workload, x predict.Row) string {
	var parts []string
	trip, hasTrip := x.Costs[workload.LatencyP50]
	rate := x.Costs[workload.Throughput]
	if hasTrip && x.Page != nil {
		bytes := ""
		if x.Extra > 0 && rate > 0 {
			bytes = fmt.Sprintf(" + %.0f B / %s Gbit/s", x.Extra, units.Digits(rate*giga))
		}
		parts = append(parts, fmt.Sprintf("page = %d × (%s µs%s) ≈ %s ms", w.Queries,
			units.Digits(trip*micro), bytes, units.Digits(x.Page.Median*milli)))
	}
	if cpu, ok := x.Costs[workload.CPUPerTrip]; ok && x.CPU != nil {
		bytes := ""
		if b := x.Costs[workload.CPUPerByte]; x.Extra > 0 && b > 0 {
			bytes = fmt.Sprintf(" + %.0f B × %s s/GB", x.Extra, units.Digits(b*perGB))
		}
		parts = append(parts, fmt.Sprintf("CPU = %g/s × (%s µs%s) ≈ %s %%", w.QPS,
			units.Digits(cpu*micro), bytes, units.Digits(x.CPU.Median*percent)))
	}
	if token, ok := x.Costs[workload.CPUPerToken]; ok && x.StreamCPU != nil {
		parts = append(parts, fmt.Sprintf("tokens' CPU = %g/s × %s µs ≈ %s %%", w.Tokens,
			units.Digits(token*micro), units.Digits(x.StreamCPU.Median*percent)))
	}
	return strings.Join(parts, "; ")
}
