package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/ladder"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/chart"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/heads"
	"github.com/bridgetoll/bridgetoll/internal/show/numbers"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

func ladderView(v *view) {
	v.title, v.command = "What each part of a container's network costs", "toll ladder"
	v.sections, v.parts = of(ladderSections), of(ladderParts)
	v.figures, v.charts = of(numbers.Ladder), of(chart.Ladder)
	v.legend, v.detailed = ladderLegend, "CPU, paths"
	v.hides = "thin-tail" // the tables show no tails
}

func sides(steps []ladder.Step) [][]ladder.Step {
	var out [][]ladder.Step
	for i, s := range steps {
		if i == 0 || s.Way() != steps[i-1].Way() || s.On != steps[i-1].On {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], s)
	}
	return out
}

// briefStep returns the table of a load; parts says what each step adds below its row.
func briefStep(r *analysis.Report, steps []ladder.Step, l sample.Load, parts bool) document.Section {
	w, s := workload.Of(l), steps[0]
	metric := w.Primary
	unit, by := fitting(r, l.Kind, metric)
	adds := heads.Of(l).Adds
	if m := workload.MetricOf(metric, l); adds == "" && m.Unit == "s" {
		adds = "µs"
	}
	head := texts("adds", adds)
	if adds == "" {
		head = texts("% of the", "mode before")
	}
	t := document.Table{Level: 1, Layouts: onlyGaps,
		Columns: []document.Column{texts("", "mode"), figures("", unit), head,
			texts("", "verdict")}}
	for i, s := range steps {
		row := document.Row{Cells: []document.Cell{{Text: s.Label}, nothing, {}, {}}}
		if c, ok := cellOf(r, s, l.Kind); ok {
			row.Cells[1] = scaled(metric, by)(c)
		}
		if s.Below != "" && parts {
			row.Note = "+ " + s.Part
			if i == 0 || steps[i-1].Label != s.Below { // the ladder branches
				row.Note = s.Below + " " + row.Note
			}
			if l.Kind == workload.RR && s.Trace != nil {
				row.Note += ". " + tracedNote(*s.Trace)
			}
		}
		if s.Below != "" {
			row.Cells[2], row.Cells[3] = nothing, nothing
		}
		if p, ok := s.Prices[ladder.PriceName(l.Kind, metric)]; ok {
			row.Style = styleOf(p.Verdict)
			row.Cells[2], row.Cells[3] = pricedCell(p, adds), document.Cell{Text: p.Word()}
			if p.LimitedBy != "" {
				row.Cells[2] = nothing
				row.Cells[3].Text = p.LimitedBy + " full"
			}
		}
		t.Rows = append(t.Rows, row)
	}
	title := document.Strongly(printable.Capital(w.Noun)+" from "+s.Way()+sayOn(r, s.On)).
		Then(", "+w.Words(l)+", "+direction(workload.MetricOf(metric, l)), document.Faint)
	return section(title, t)
}

func pricedCell(p analysis.Price, unit string) document.Cell {
	if p.Unit != analysis.RatioUnit {
		return priceCell(p.Even(unit), p)
	}
	x := analysis.Ratio{Median: p.Median, Low: p.Low, High: p.High, N: p.N, Verdict: p.Verdict,
		Varies: p.Varies}
	return inPercent(x, true)
}

func ladderLegend(r *analysis.Report) string {
	taken := "taken round by round and then summarized"
	if words := slicesInWords(r); len(words) > 0 {
		taken = "of the median and the throughput taken from " + strings.Join(words, ", ") +
			", each slice against the other mode's neighbouring one; of CPU time likewise, with what others spent in the windows"
	}
	return "A price is what the part after + costs over the mode before it, " + taken + ": " +
		"prices need not add up. ≤: nothing measurable, at most this much. ?: unclear; run longer, or on a quieter machine. " +
		"Without ±: the first row's own figure."
}

// stepColumn shows a price, or the mode's own figure. The bottom step has no price and shows its
// figure.
type stepColumn struct {
	column
	load  string
	price string // a metric; "": no price
}

func stepColumns(r *analysis.Report) []stepColumn {
	number := func(load, head, unit string, cell func(analysis.Cell) document.Cell) stepColumn {
		return stepColumn{column{figures(head, unit), cell}, load, ""}
	}
	price := func(load, metric, head, unit string,
		cell func(analysis.Cell) document.Cell) stepColumn {
		return stepColumn{column{texts(head, unit), cell}, load, metric}
	}
	none := func(analysis.Cell) document.Cell { return document.Cell{} }
	all := []stepColumn{
		number(workload.RR, "p50", "µs", scaled(workload.LatencyP50, micro)),
		price(workload.RR, workload.LatencyP50, "p50 price", "µs", none),
		price(workload.RR, workload.CPUPerTrip, "CPU price", "µs/trip",
			scaled(workload.CPUPerTrip, micro)),
		number(workload.Bulk, "", "Gbit/s", scaled(workload.Throughput, giga)),
		price(workload.Bulk, workload.Throughput, "Gbit/s", "ratio", none),
		price(workload.Bulk, workload.CPUPerByte, "CPU price", "s/GB",
			scaled(workload.CPUPerByte, perGB)),
		number(workload.Stream, "delay", "p50 µs", scaled(workload.LatencyP50, micro)),
		price(workload.Stream, workload.LatencyP50, "delay price", "µs", none),
		price(workload.Stream, workload.CPUPerToken, "CPU price", "µs/token",
			scaled(workload.CPUPerToken, micro)),
	}
	return slices.DeleteFunc(all, func(c stepColumn) bool { return r.Plan.Loads.Of(c.load).Window == 0 })
}

func ladderSections(r *ladder.Report) []document.Section {
	base := r.Base()
	out := []document.Section{runHead(base)}
	for _, side := range sides(r.Steps) {
		out = append(out, stepSection(base, side))
		for _, s := range side {
			if s.Trace != nil {
				out = append(out, traceSection(base, *s.Trace)...)
			}
		}
	}
	return append(out, foot(base)...)
}

func stepSection(r *analysis.Report, steps []ladder.Step) document.Section {
	var loads []string
	for _, l := range r.Plan.Loads {
		loads = append(loads, describeLoad(r, l.Kind))
	}
	title := fmt.Sprintf("%s → %s%s: %s", printable.Capital(placeWords(steps[0].From)),
		servedAt(steps, func(s ladder.Step) mode.Target { return s.To }),
		sayOn(r, steps[0].On), strings.Join(loads, "; "))
	return section(document.Strongly(title), stepTable(r, steps))
}

func stepTable(r *analysis.Report, steps []ladder.Step) document.Table {
	all := stepColumns(r)
	t := document.Table{Level: 1, Columns: []document.Column{modeColumn.Column}}
	for _, c := range all {
		t.Columns = append(t.Columns, c.Column)
	}
	if second := slices.IndexFunc(all, func(c stepColumn) bool {
		return c.load != all[0].load
	}); second >= 0 {
		t.Layouts, t.Split, t.At = onlyGaps, document.SplitInTwo, 1+second
	}
	for _, s := range steps {
		row := document.Row{Cells: document.Texts(s.Label), Note: partNote(r, s)}
		for _, c := range all {
			row.Cells = append(row.Cells, stepCell(r, s, c))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func stepCell(r *analysis.Report, s ladder.Step, col stepColumn) document.Cell {
	if col.price != "" && s.Below != "" {
		price, ok := s.Prices[ladder.PriceName(col.load, col.price)]
		if !ok {
			return nothing
		}
		c := priceCell(price.String(), price)
		c.Style = styleOf(price.Verdict)
		return c
	}
	c, ok := cellOf(r, s, col.load)
	if !ok {
		return nothing
	}
	return col.cell(c)
}

func partNote(r *analysis.Report, s ladder.Step) string {
	text := ""
	if i := slices.IndexFunc(r.Cells, s.Has); i >= 0 {
		text = pathText(r.Cells[i])
	}
	if s.Below != "" {
		text += " = " + s.Below + " + " + s.Part
	}
	return text
}

func cellOf(r *analysis.Report, s ladder.Step, load string) (c analysis.Cell, ok bool) {
	i := slices.IndexFunc(r.Cells, func(c analysis.Cell) bool { return s.Has(c) && c.Load == load })
	if i < 0 {
		return c, false
	}
	return r.Cells[i], true
}
