package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/analysis"
)

// Prediction writes a prediction as text, with its arithmetic.
func Prediction(w io.Writer, r *analysis.Prediction, o Options) error {
	if o.Width == 0 {
		o.Width = DefaultWidth
	}
	p := newPrinter(o)
	p.wrapped("", strings.Join(machineFacts(r.Environment), " · "), " · ")
	p.wrapped("", workloadWords(r.Workload), ", ")
	for rows := r.Rows; len(rows) > 0; {
		n := slices.IndexFunc(rows, func(x analysis.Predicted) bool { return x.From != rows[0].From || x.On != rows[0].On })
		if n < 0 {
			n = len(rows)
		}
		p.line("")
		p.line(p.bold(rows[0].From + " → container"))
		p.predicted(r, rows[:n])
		rows = rows[n:]
	}
	p.line("")
	p.line(p.bold("Arithmetic"))
	for _, f := range formulas(r) {
		p.item(f)
	}
	for _, x := range r.Rows {
		if text := arithmetic(r.Workload, x); text != "" {
			p.item(fmt.Sprintf("%s from %s: %s", x.Label, x.From, text))
		}
	}
	p.item("It is done round by round, and then summarized; medians are shown here. CPU time is that of the whole machine, for both ends of a " +
		"connection. ≤: no difference that can be measured, and at most so much. ?: unclear; measure longer to know.")
	for _, n := range r.Notes {
		p.item(n)
	}
	if _, err := io.WriteString(w, p.b.String()); err != nil {
		return fmt.Errorf("write prediction: %w", err)
	}
	return nil
}

func workloadWords(w analysis.Workload) string {
	text := fmt.Sprintf("Predicted for pages of %s, with replies of %s", plural(w.Queries, "query"), plural(int(w.Bytes), "byte"))
	if w.QPS > 0 {
		text += fmt.Sprintf(", at %g queries a second", w.QPS)
	}
	if w.Tokens > 0 {
		text += fmt.Sprintf(", and %g streamed tokens a second", w.Tokens)
	}
	return text
}

// forecast is one column of a prediction.
type forecast struct {
	head [2]string
	text func(analysis.Predicted) string
}

// predicted prints the rows of one placement: what queries cost, and below what
// streamed tokens do.
func (p *printer) predicted(r *analysis.Prediction, rows []analysis.Predicted) {
	over := func(name, unit string) forecast {
		return forecast{[2]string{"over " + r.Baseline, unit}, func(x analysis.Predicted) string {
			if price, ok := x.Over[name]; ok {
				return price.String()
			}
			return ""
		}}
	}
	share := func(head string, of func(analysis.Predicted) *analysis.Quantity) forecast {
		return forecast{[2]string{head, "% of a core"}, func(x analysis.Predicted) string { return quantity(of(x), percent) }}
	}
	queries := []forecast{
		{[2]string{"page", "ms"}, func(x analysis.Predicted) string { return quantity(x.Page, milli) }},
		over(analysis.PredictedPage, "µs"),
	}
	if r.Workload.QPS > 0 {
		queries = append(queries, share("CPU", func(x analysis.Predicted) *analysis.Quantity { return x.CPU }), over(analysis.PredictedCPU, "%"))
	}
	p.forecasts(queries, rows, analysis.PredictedPage)
	if r.Workload.Tokens > 0 {
		p.line("")
		p.forecasts([]forecast{share("tokens' CPU", func(x analysis.Predicted) *analysis.Quantity { return x.StreamCPU }),
			over(analysis.PredictedStreamCPU, "%")}, rows, analysis.PredictedStreamCPU)
	}
}

// forecasts prints one table, whose rows have the colour of one verdict.
func (p *printer) forecasts(fields []forecast, rows []analysis.Predicted, verdict string) {
	cols := []column{modeColumn}
	for _, f := range fields {
		cols = append(cols, column{head: f.head})
	}
	var texts [][]string
	for _, x := range rows {
		row := []string{x.Label}
		for _, f := range fields {
			row = append(row, f.text(x))
		}
		texts = append(texts, row)
	}
	widths := measure(cols, texts)
	p.heads(cols, widths)
	for i, x := range rows {
		p.row(cols, widths, texts[i], p.verdict(x.Over[verdict].Verdict))
	}
}

const percent = 1e2 // a share to %

// quantity is a number with its interval.
func quantity(q *analysis.Quantity, by float64) string {
	switch {
	case q == nil:
		return "-"
	case q.N < 2:
		return digits(by*q.Median) + " ±?"
	}
	return fmt.Sprintf("%s -%.2f +%.2f", digits(by*q.Median), by*(q.Median-q.Low), by*(q.High-q.Median))
}

// formulas are the arithmetic in words.
func formulas(r *analysis.Prediction) []string {
	w := r.Workload
	bytes, perByte := "", ""
	if len(r.Rows) > 0 && r.Rows[0].Extra > 0 {
		bytes = fmt.Sprintf(" + %.0f B / throughput of bulk", r.Rows[0].Extra)
		perByte = fmt.Sprintf(" + %.0f B × CPU time a byte of bulk", r.Rows[0].Extra)
	}
	out := []string{fmt.Sprintf("page = %d × (median round trip of rr%s)", w.Queries, bytes)}
	if w.QPS > 0 {
		out = append(out, fmt.Sprintf("CPU = %g/s × (CPU time a round trip of rr%s)", w.QPS, perByte))
	}
	if w.Tokens > 0 {
		out = append(out, fmt.Sprintf("tokens' CPU = %g/s × CPU time a token of stream", w.Tokens))
	}
	return out
}

// arithmetic is a row's own, with its medians.
func arithmetic(w analysis.Workload, x analysis.Predicted) string {
	var parts []string
	trip, hasTrip := x.Costs[analysis.LatencyP50]
	rate := x.Costs[analysis.Throughput]
	if hasTrip && x.Page != nil {
		bytes := ""
		if x.Extra > 0 && rate > 0 {
			bytes = fmt.Sprintf(" + %.0f B / %s Gbit/s", x.Extra, digits(rate*giga))
		}
		parts = append(parts, fmt.Sprintf("page = %d × (%s µs%s) = %s ms", w.Queries, digits(trip*micro), bytes, digits(x.Page.Median*milli)))
	}
	if cpu, ok := x.Costs[analysis.CPUPerTrip]; ok && x.CPU != nil {
		bytes := ""
		if b := x.Costs[analysis.CPUPerByte]; x.Extra > 0 && b > 0 {
			bytes = fmt.Sprintf(" + %.0f B × %s s/GB", x.Extra, digits(b*perGB))
		}
		parts = append(parts, fmt.Sprintf("CPU = %g/s × (%s µs%s) = %s %%", w.QPS, digits(cpu*micro), bytes, digits(x.CPU.Median*percent)))
	}
	if token, ok := x.Costs["stream_"+analysis.CPUPerTrip]; ok && x.StreamCPU != nil {
		parts = append(parts, fmt.Sprintf("tokens' CPU = %g/s × %s µs = %s %%", w.Tokens, digits(token*micro), digits(x.StreamCPU.Median*percent)))
	}
	return strings.Join(parts, "; ")
}
