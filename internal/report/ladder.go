package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/analysis"
)

// ladderLegend says how to read a ladder.
const ladderLegend = "A price is what the part after + costs over the mode before it, taken round by round and then summarized: " +
	"prices need not add up. ≤: nothing measurable, and at most so much. ?: unclear; run longer, or on a quieter machine, " +
	"to know. Without ±: the first row's own."

// stepColumn is a column of a ladder's table: of a number of the mode's own, or
// of a price, which at the bottom is the mode's own number.
type stepColumn struct {
	column
	load  string // that it is about
	price string // the metric; "": no price
}

// stepColumns are those of the loads that were planned.
func stepColumns(r *analysis.Report) []stepColumn {
	number := func(load, head, unit string, text func(analysis.Cell) string) stepColumn {
		return stepColumn{column{[2]string{head, unit}, true, text}, load, ""}
	}
	price := func(load, metric, head, unit string, text func(analysis.Cell) string) stepColumn {
		return stepColumn{column{[2]string{head, unit}, false, text}, load, metric}
	}
	none := func(analysis.Cell) string { return "" }
	all := []stepColumn{
		number("rr", "p50", "µs", merged(analysis.LatencyP50)),
		price("rr", analysis.LatencyP50, "p50 price", "µs", none),
		price("rr", analysis.CPUPerTrip, "CPU price", "µs/trip", scaled(analysis.CPUPerTrip, micro)),
		number("bulk", "", "Gbit/s", scaled(analysis.Throughput, giga)),
		price("bulk", analysis.Throughput, "Gbit/s", "ratio", none),
		price("bulk", analysis.CPUPerByte, "CPU price", "s/GB", scaled(analysis.CPUPerByte, perGB)),
	}
	return slices.DeleteFunc(all, func(c stepColumn) bool { return loadOf(r, c.load).Window == 0 })
}

// ladder prints a table for each placement and backend.
func (p *printer) ladder(r *analysis.Report) {
	p.layout = layouts[0]
	for steps := r.Steps; len(steps) > 0; {
		n := slices.IndexFunc(steps, func(s analysis.Step) bool { return s.From != steps[0].From || s.On != steps[0].On })
		if n < 0 {
			n = len(steps)
		}
		p.steps(r, steps[:n])
		steps = steps[n:]
	}
}

func (p *printer) steps(r *analysis.Report, steps []analysis.Step) {
	var loads []string
	for _, l := range r.Plan.Loads {
		loads = append(loads, describeLoad(r, l.Kind))
	}
	p.line("")
	p.line(p.bold(fmt.Sprintf("%s → container%s: %s", steps[0].From, sayOn(r, steps[0].On), strings.Join(loads, "; "))))
	all := stepColumns(r)
	second := slices.IndexFunc(all, func(c stepColumn) bool { return c.load != all[0].load })
	for _, p.gap = range []int{2, 1} {
		if second < 0 || p.stepsWidth(r, steps, all) <= p.width {
			p.stepTable(r, steps, all, p.part)
			return
		}
	}
	// Side by side the loads are too wide: the second one is below the first.
	p.gap = 2
	p.stepTable(r, steps, all[:second], p.part)
	p.line("")
	p.stepTable(r, steps, all[second:], nil)
}

// stepGrid is the rows' texts, and the columns with that of the modes.
func (p *printer) stepGrid(r *analysis.Report, steps []analysis.Step, special []stepColumn) (cols []column, texts [][]string) {
	cols = []column{modeColumn}
	for _, c := range special {
		cols = append(cols, c.column)
	}
	for _, s := range steps {
		row := []string{s.Label}
		for _, c := range special {
			row = append(row, p.stepText(r, s, c))
		}
		texts = append(texts, row)
	}
	return cols, texts
}

func (p *printer) stepsWidth(r *analysis.Report, steps []analysis.Step, special []stepColumn) int {
	return p.tableWidth(measure(p.stepGrid(r, steps, special)))
}

// stepTable prints the rows; after each it calls after, unless that is nil.
func (p *printer) stepTable(r *analysis.Report, steps []analysis.Step, special []stepColumn, after func(*analysis.Report, analysis.Step)) {
	cols, texts := p.stepGrid(r, steps, special)
	widths := measure(cols, texts)
	p.heads(cols, widths)
	for i, s := range steps {
		p.row(cols, widths, texts[i], func(text string) string { return text })
		if after != nil {
			after(r, s)
		}
	}
}

// stepText is what a step has in a column.
func (p *printer) stepText(r *analysis.Report, s analysis.Step, col stepColumn) string {
	if col.price != "" && s.Below != "" {
		price, ok := s.Prices[col.price]
		if !ok {
			return "-"
		}
		return p.verdict(price.Verdict)(price.String())
	}
	c, ok := cellOf(r, s, col.load)
	if !ok {
		return "-"
	}
	return col.text(c)
}

// part prints the path, and what the step is made of.
func (p *printer) part(r *analysis.Report, s analysis.Step) {
	text := ""
	if i := slices.IndexFunc(r.Cells, s.Has); i >= 0 {
		text = pathColumn.text(r.Cells[i])
	}
	if s.Below != "" {
		text += " = " + s.Below + " + " + s.Part
	}
	p.faint(strings.Repeat(" ", 2*indent), text)
}

// cellOf is the step's cell under a load.
func cellOf(r *analysis.Report, s analysis.Step, load string) (c analysis.Cell, ok bool) {
	i := slices.IndexFunc(r.Cells, func(c analysis.Cell) bool { return s.Has(c) && c.Load == load })
	if i < 0 {
		return c, false
	}
	return r.Cells[i], true
}
