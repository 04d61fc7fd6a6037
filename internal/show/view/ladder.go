package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/ladder"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/chart"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/heads"
	"github.com/bridgetoll/bridgetoll/internal/show/numbers"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

func ladderView(v *view) {
	v.title, v.command = "What each part of a container's network costs", "toll ladder"
	v.sections, v.parts = of(ladderSections), of(ladderParts)
	v.figures, v.charts = of(numbers.Ladder), of(chart.Ladder)
	v.legend, v.detailed = ladderLegend, "CPU, paths"
	v.hides = "thin-tail" // the tables show no tails
	v.overview, v.key = of(ladderOverview), of(ladderKey)
}

// ladderOverview returns a table for each place of the client. The loads are columns, and each row
// has what its part costs.
func ladderOverview(report *ladder.Report) (out []document.Section) {
	r := report.Base()
	for _, side := range sides(report.Steps) {
		out = append(out, stepsAcross(r, side))
	}
	return out
}

func stepsAcross(r *analysis.Report, steps []ladder.Step) document.Section {
	t := document.Table{Level: 1, Layouts: onlyGaps, Columns: []document.Column{texts("", "mode")}}
	for i := range steps {
		t.Rows = append(t.Rows, document.Row{Cells: document.Texts(steps[i].Label),
			Note: stepNote(steps, i, true)})
	}
	var loads []string
	for _, l := range r.Plan.Loads {
		if !measured(r, steps, l) {
			continue
		}
		if len(loads) == 1 {
			t.Split, t.At = document.SplitInTwo, len(t.Columns)
		}
		w := workload.Of(l)
		loads = append(loads, w.Words(l))
		unit, by := fitting(r, l.Kind, w.Primary)
		adds := addsUnit(l)
		head := "adds"
		switch {
		case adds == "":
			head = "% of mode before"
		case adds != unit:
			head = "adds, " + adds
		}
		level := figures(w.Noun, unit)
		level.Span = 2
		t.Columns = append(t.Columns, level, texts("", head))
		levels := levelsOf(r, steps, l)
		for i, s := range steps {
			price := document.Cell{}
			if p, ok := priceOf(s, l); ok {
				before := 1.0 // a ratio's
				if p.Unit != analysis.RatioUnit {
					before = levels[s.Below]
				}
				price = markedPrice(p, adds, before)
			} else if s.Below != "" {
				price = nothing
			}
			t.Rows[i].Cells = append(t.Rows[i].Cells, levelOf(r, s, l, by, levels), price)
		}
	}
	return section(document.Strongly("From "+steps[0].Way()+sayOn(r, steps[0].On)).
		Then(", "+strings.Join(loads, "; "), document.Faint), t)
}

func measured(r *analysis.Report, steps []ladder.Step, l sample.Load) bool {
	return slices.ContainsFunc(steps, func(s ladder.Step) bool {
		_, ok := cellOf(r, s, l.Kind)
		return ok
	})
}

// levelsOf returns the levels of the steps by their labels: that of the step below and the price,
// so that they agree, or else the step's own figure.
func levelsOf(r *analysis.Report, steps []ladder.Step, l sample.Load) map[string]float64 {
	out := map[string]float64{}
	for _, s := range steps {
		c, ok := cellOf(r, s, l.Kind)
		if !ok {
			continue
		}
		out[s.Label] = c.Metrics[workload.Of(l).Primary].Median
		below, stands := out[s.Below]
		switch p, priced := priceOf(s, l); {
		case !stands || !priced || p.Varies || p.LimitedBy != "":
		case p.Unit == analysis.RatioUnit:
			out[s.Label] = below * p.Median
		default:
			out[s.Label] = max(0, below+p.Median)
		}
	}
	return out
}

func levelOf(r *analysis.Report, s ladder.Step, l sample.Load, by float64,
	levels map[string]float64) document.Cell {
	c, ok := cellOf(r, s, l.Kind)
	if !ok {
		return nothing
	}
	primary := workload.Of(l).Primary
	m, raw := c.Metrics[primary], scaled(primary, by)(c)
	if level := levels[s.Label]; level != m.Median && c.Varies == nil {
		return numberCell(units.Digits(level*by), level, m.Unit)
	}
	return raw
}

func priceOf(s ladder.Step, l sample.Load) (p analysis.Price, ok bool) {
	p, ok = s.Prices[ladder.PriceName(l.Kind, workload.Of(l).Primary)]
	return p, ok
}

// addsUnit returns the unit of what a part adds under a load, or "" if its price is a ratio.
func addsUnit(l sample.Load) string {
	adds := heads.Of(l).Adds
	if adds == "" && workload.MetricOf(workload.Of(l).Primary, l).Unit == "s" {
		return "µs"
	}
	return adds
}

// markedPrice returns a price with a mark of its verdict, alone if the interval tells nothing about
// a figure as large as level.
func markedPrice(p analysis.Price, unit string, level float64) document.Cell {
	if p.LimitedBy != "" {
		return document.Cell{Text: p.LimitedBy + " full", Style: styleOf(p.Verdict)}
	}
	cell := pricedCell(p, unit)
	half := stats.Summary{Median: p.Median, Low: p.Low, High: p.High}.HalfWidth()
	if level > 0 && p.N > 1 && tellsNothing(p.Verdict, p.Varies, half, level) {
		cell.Text = ""
	}
	cell.Text, cell.Style = strings.TrimSpace(cell.Text+" "+p.Mark()), styleOf(p.Verdict)
	return cell
}

// ladderKey explains the marks of a ladder's tables.
func ladderKey(report *ladder.Report) string {
	var marks []string
	for _, s := range report.Steps {
		for _, l := range report.Plan.Loads {
			if p, ok := priceOf(s, l); ok && p.LimitedBy == "" {
				marks = append(marks, markOf(p.Ratio()))
			}
		}
	}
	return printable.Capital(strings.Join(marksInWords(marks, "nothing measurable"), "; "))
}

// stepNote returns what a step adds to the one below it. With traced it says where in the kernel
// that is spent, if this was traced.
func stepNote(steps []ladder.Step, i int, traced bool) string {
	s := steps[i]
	if s.Below == "" {
		return ""
	}
	note := "+ " + s.Part
	if i == 0 || steps[i-1].Label != s.Below { // the ladder branches
		note = s.Below + " " + note
	}
	if traced && s.Trace != nil {
		note += ". " + tracedNote(*s.Trace)
	}
	return note
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
	metric, adds := w.Primary, addsUnit(l)
	unit, by := fitting(r, l.Kind, metric)
	head := texts("adds", adds)
	if adds == "" {
		head = texts("% of the", "mode before")
	}
	t := document.Table{Level: 1, Layouts: onlyGaps,
		Columns: []document.Column{texts("", "mode"), figures("", unit), head,
			texts("", "verdict")}}
	levels := levelsOf(r, steps, l)
	for i, s := range steps {
		level := levelOf(r, s, l, by, levels)
		row := document.Row{Cells: []document.Cell{{Text: s.Label}, level, {}, {}}}
		if parts {
			row.Note = stepNote(steps, i, l.Kind == workload.RR)
		}
		if s.Below != "" {
			row.Cells[2], row.Cells[3] = nothing, nothing
		}
		if p, ok := priceOf(s, l); ok {
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
	cell := priceCell(p.Even(unit), p)
	if cell.Number.Varies = p.Varies; p.N < 2 { // a single round has no interval
		cell.Number.Low, cell.Number.High = nil, nil
	}
	return cell
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
