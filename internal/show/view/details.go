package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// Details shows one row of a judged run, with its rounds.
func Details(r judge.Report, row PartRow) document.Document {
	base := r.Base()
	d := reportDocument(r)
	if t := row.Trace; t != nil {
		d.Add(segmentTable(*t, row.Segments)...)
	}
	for _, c := range row.Cells {
		d.Add(cellHead(base, c), strip(base, c), percentiles(base, c), hopTable(c), parties(c),
			cpuTable(c), cardSection(cardsOf(base, c)), doubts(c))
	}
	return d
}

func cellHead(r *analysis.Report, c analysis.Cell) document.Section {
	l := r.LoadAt(c)
	w := workload.Of(l)
	title := document.Strongly(c.Name())
	if phrase := c.Phrase(); phrase != c.Name() {
		title = title.Then(document.Facts+phrase, document.Plain)
	}
	s := document.Section{Title: title}
	s.Add(paragraph(1, printable.Capital(w.Noun)+" from "+placeWords(c.From)+sayOn(
		r, c.On)+", "+w.Words(l)+r.Plan.SayPin(c.Pin)))
	unit, scale := fitting(r, c.Load, c.Primary)
	m := c.Metrics[c.Primary]
	facts := []string{units.Digits(m.Median*scale) + " " + unit}
	if v := c.Varies; v != nil {
		facts[0] = analysis.Span(v.Low*scale, v.High*scale) + " " + unit
	} else if m.Low < m.High {
		facts[0] += fmt.Sprintf(" (%s–%s)", units.Digits(m.Low*scale), units.Digits(m.High*scale))
	}
	style := document.Plain
	switch x := m.Ratio; {
	case c.Baseline:
		facts = append(facts, "the baseline")
	case x != nil:
		facts = append(facts, x.String()+" of "+x.To, x.Word())
		style = styleOf(x.Verdict)
	}
	if p := m.Price; p != nil && !c.Baseline {
		facts = append(facts, "adds "+p.Amount())
	}
	if c.LimitedBy != "" {
		by := limitedBy(c)
		if c.FillsLink() {
			by = c.Link()
		}
		facts = append(facts, "limited by "+by)
	}
	if c.Dial != "" {
		facts = append(facts, "dials "+c.Dial)
	}
	s.Add(document.Paragraph{Level: 1, Text: document.Plainly(strings.Join(facts, document.Facts)),
		Break: document.Facts, Style: style})
	var more []string
	if text := c.TogetherWords(); text != "" {
		more = append(more, text)
	}
	if text := segmentsText(c.Segments); text != "" {
		more = append(more, text)
	}
	if x := c.Capacity; x != nil {
		more = append(more, fmt.Sprintf("%.0f %% of what %s carries: %s", percent*x.Share,
			x.Words(), x.Sum()))
	}
	if len(more) > 0 {
		s.Add(document.Paragraph{Level: 1, Text: document.Plainly(
			strings.Join(more, document.Facts)), Break: document.Facts, Style: document.Faint})
	}
	return s
}

var bars = []rune("▁▂▃▄▅▆▇█")

const (
	mostBars = 56 // columns
	// leastDrawn is the largest share of the highest round at which bars begin, so that rounds that
	// hardly differ do not look like all and nothing.
	leastDrawn = 0.9
)

// strip draws the cell's and the baseline's rounds on the same scale.
func strip(r *analysis.Report, c analysis.Cell) (s document.Section) {
	own := c.Metrics[c.Primary]
	if len(own.Rounds) < 2 {
		return s
	}
	unit, scale := fitting(r, c.Load, c.Primary)
	low, high := slices.Min(own.Rounds), slices.Max(own.Rounds)
	rows := []analysis.Cell{c}
	if b := slices.IndexFunc(r.Cells, func(x analysis.Cell) bool {
		return x.Baseline && sameGroup(x, c) && x.Shape == c.Shape && x.Point == c.Point
	}); b >= 0 && !c.Baseline {
		if of := r.Cells[b].Metrics[c.Primary]; len(of.Rounds) > 1 {
			rows = append(rows, r.Cells[b])
			low, high = min(low, slices.Min(of.Rounds)), max(high, slices.Max(of.Rounds))
		}
	}
	s = document.Section{Title: document.Strongly("Round by round").
		Then(fmt.Sprintf(", %s to %s %s", units.Digits(low*scale), units.Digits(high*scale), unit),
			document.Faint)}
	t := document.Table{Level: 1, Columns: make([]document.Column, 2)}
	for _, x := range rows {
		m := x.Metrics[c.Primary]
		t.Rows = append(t.Rows, document.Row{
			Cells: document.Texts(x.Name(), drawnRounds(m.Rounds, m.At, low, high))})
	}
	s.Add(t)
	return s
}

// drawnRounds draws the rounds as a line of text. A dot is a round without a value. If there are
// many, every second round is drawn, or every third and so on.
func drawnRounds(values []float64, at []int, low, high float64) string {
	last := len(values) - 1
	if at != nil && len(at) == len(values) {
		last = at[len(at)-1]
	}
	low = min(low, leastDrawn*high)
	every := 1 + last/mostBars
	out := []rune(strings.Repeat("·", 1+last/every))
	for i, x := range values {
		round := i
		if at != nil && i < len(at) {
			round = at[i]
		}
		if round%every != 0 || round < 0 || round/every >= len(out) {
			continue
		}
		level := len(bars) / 2
		if high > low {
			level = int((x - low) / (high - low) * float64(len(bars)-1))
		}
		out[round/every] = bars[min(max(0, level), len(bars)-1)]
	}
	return string(out)
}

var tellingPercentiles = []float64{1, 25, 50, 75, 90, 95, 99, 99.9, 99.99}

func percentiles(r *analysis.Report, c analysis.Cell) (s document.Section) {
	if len(c.Latencies) == 0 {
		return s
	}
	var of analysis.Cell
	t := document.Table{Level: 1, Columns: []document.Column{
		figures("", "percentile"), figures("", "µs")}}
	b := slices.IndexFunc(r.Cells, func(x analysis.Cell) bool {
		return x.Baseline && sameGroup(x, c) && x.Shape == c.Shape && x.Point == c.Point
	})
	if b >= 0 && !c.Baseline {
		of = r.Cells[b]
		t.Columns = append(t.Columns, figures("", r.Cells[b].Name()))
	}
	for _, p := range tellingPercentiles {
		x, ok := c.LatencyAt(p)
		if !ok {
			continue
		}
		row := document.Texts(fmt.Sprintf("%g", p), units.Digits(x*micro))
		if len(t.Columns) > 2 {
			text := "-"
			if x, ok := of.LatencyAt(p); ok {
				text = units.Digits(x * micro)
			}
			row = append(row, document.Cell{Text: text})
		}
		t.Rows = append(t.Rows, document.Row{Cells: row})
	}
	s = section(document.Strongly("Latency"), t)
	text := "The median is that of the rounds; the other percentiles are of all rounds together."
	if l := r.LoadAt(c); l.Slice > 0 {
		text = fmt.Sprintf(
			"The median is of slices; the other percentiles are of the windows of %g ms.",
			milli*l.Window)
	}
	s.Add(document.Paragraph{Level: 1, Text: document.Plainly(text), Style: document.Faint})
	return s
}

func hopTable(c analysis.Cell) (s document.Section) {
	if len(c.Counted) == 0 {
		return s
	}
	t := document.Table{Level: 1, Layouts: onlyGaps, Columns: []document.Column{texts("", "hop"),
		{Head: [2]string{"", "device"}, Cut: document.CutMiddle, Least: leastPhrase},
		{Head: [2]string{"", "where"}, Cut: document.CutEnd, Least: leastPhrase},
		figures("bytes", "→"), figures("packets", "→"), figures("bytes", "←"),
		figures("packets", "←")}}
	for _, h := range c.Counted {
		kind, row := h.Kind, document.Row{}
		if h.Guard {
			kind, row.Style = "not "+kind, document.Faint
		}
		row.Cells = document.Texts(kind, h.Name, h.Where, humane(h.ForwardBytes),
			humane(h.ForwardPackets), humane(h.BackwardBytes), humane(h.BackwardPackets))
		if h.ForwardBytes+h.BackwardBytes == 0 && h.Hits > 0 {
			row.Cells[4].Text = humane(h.Hits)
		}
		t.Rows = append(t.Rows, row)
	}
	text := document.Text{
		{
			Text: "Witnessed: every hop counted the bytes of the load; what begins with \"not\" must stay quiet.", Style: document.Good}}
	if !c.Witnessed {
		text = document.Text{{Text: "Not witnessed.", Style: document.Bad}}
	}
	return section(document.Strongly("Path").Then(", all good visits together", document.Faint),
		t, document.Paragraph{Level: 1, Text: text})
}

func humane(n uint64) string {
	const thousand = 1000
	x := float64(n)
	for _, prefix := range []string{"", " k", " M", " G", " T"} {
		switch {
		case x < thousand && prefix == "":
			return fmt.Sprint(n)
		case x < thousand || prefix == " T":
			return units.Digits(x) + prefix
		}
		x /= thousand
	}
	return ""
}

func parties(c analysis.Cell) (s document.Section) {
	of := c.CPU
	sum := of.Sum()
	if !(sum > 0) {
		return s
	}
	scale, unit := float64(perGB), "s a gigabyte"
	if of.Unit == "s" {
		scale, unit = micro, "µs a round trip"
	}
	t := document.Table{Level: 1, Columns: []document.Column{
		texts("", "by"), figures("", unit), figures("", "%"), texts("", "")}}
	for _, p := range []struct {
		name string
		x    float64
	}{{"client", of.Client}, {"server", of.Server}, {"proxy", of.Proxy},
		{"the rest of the machine", of.Rest}, {"all", sum}} {
		if p.x == 0 && p.name == "proxy" {
			continue
		}
		const columns = 20
		n := min(max(0, int(p.x/sum*columns)), columns)
		t.Rows = append(t.Rows, document.Row{
			Cells: document.Texts(p.name, units.Digits(p.x*scale), fmt.Sprintf("%.0f", percent*p.x/sum),
				strings.Repeat("█", n))})
	}
	return section(document.Strongly("CPU time"), t)
}

func cpuTable(c analysis.Cell) (s document.Section) {
	if len(c.CPUs) == 0 {
		return s
	}
	s = section(document.Strongly("CPUs").Then(", in the windows", document.Faint),
		cpuUses(c.AllCPUs, c.CPUs))
	if m := c.ProxyCore; m != nil {
		s.Add(proxyCore(m.Median))
	}
	return s
}

// proxyCore returns a sentence on a proxy's share of a core.
func proxyCore(share float64) document.Block {
	return faint(fmt.Sprintf("The proxy ran for %.0f %% of a core's time.", percent*share))
}

// cpuUses returns mpstat's table: a row for all CPUs of each machine, and one for each CPU.
func cpuUses(all, each []analysis.CPUUse) document.Table {
	t := kindsTable("CPU")
	for _, u := range all {
		t.Rows = append(t.Rows, document.Row{Cells: append(
			document.Texts(strings.TrimSpace(u.Machine+" all")), kindCells(u)...)})
	}
	for _, u := range each {
		t.Rows = append(t.Rows, document.Row{Cells: append(document.Texts(
			strings.TrimSpace(fmt.Sprintf("%s %d", u.Machine, u.CPU))), kindCells(u)...)})
	}
	return t
}

// kindsTable returns an empty table with mpstat's columns. On a narrow terminal, columns without
// time are left out.
func kindsTable(head string) document.Table {
	t := document.Table{Level: 1, Layouts: []document.Layout{
		{}, {Tight: true}, {Terse: true}, {Terse: true, Tight: true}},
		Columns: []document.Column{{Head: [2]string{"", head}, Cut: document.CutMiddle,
			Least: leastPhrase}}}
	for _, kind := range analysis.CPUKinds() {
		col := figures("", "%"+kind)
		col.Quiet = "0.0"
		t.Columns = append(t.Columns, col)
	}
	return t
}

func kindCells(u analysis.CPUUse) (out []document.Cell) {
	for _, x := range u.Shares() {
		out = append(out, numberCell(fmt.Sprintf("%.1f", percent*x), x, "1"))
	}
	return out
}

// allCPUs returns a table with the use of all CPUs by each cell, and the proxy's share of a
// core. ok is false if no file counted it.
func allCPUs(cells []analysis.Cell) (t document.Table, ok bool) {
	t = kindsTable("mode")
	proxy := figures("proxy,", "% of a core")
	proxy.Quiet = "-"
	t.Columns = append(t.Columns, proxy)
	for _, c := range cells {
		for _, u := range c.AllCPUs {
			row := document.Row{Cells: append(document.Texts(
				strings.TrimSpace(c.Label()+" "+u.Machine)), kindCells(u)...)}
			core := nothing
			if m := c.ProxyCore; m != nil && u.Machine == c.AllCPUs[0].Machine {
				core = numberCell(fmt.Sprintf("%.0f", percent*m.Median), m.Median, "1")
			}
			row.Cells = append(row.Cells, core)
			t.Rows = append(t.Rows, row)
		}
	}
	return t, len(t.Rows) > 0
}

func doubts(c analysis.Cell) document.Section {
	var items []string
	for _, w := range c.Warnings {
		items = append(items, w.Text)
	}
	return list(document.Warnings, "Warnings", items)
}
