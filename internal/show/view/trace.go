package view

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/chart"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/numbers"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

func traceView(v *view) {
	v.title, v.command = "Where a mode's microseconds go", "toll trace"
	v.sections, v.summary, v.parts = of(traceSections), of(traceSummary), of(traceParts)
	v.figures, v.charts = of(numbers.Trace), of(chart.Trace)
	v.notes, v.detailed = traceNotes, "every segment, CPU, paths"
	v.hides = "thin-tail" // the tables show no tails
}

// tracedRoutesView changes the view of a trace to that of requests over routes.
func tracedRoutesView(v *view, r *analysis.Report) {
	v.title = "Where the microseconds of requests go"
	v.columns, v.cellTitle, v.notes = routeColumns, tracedTitle, notesOf(r)
}

func tracedTitle(r *analysis.Report, cells []analysis.Cell) string {
	var routes []string
	for _, c := range cells {
		routes = append(routes, c.Name())
	}
	return printable.Capital(describeLoad(r, cells[0].Load)) + " from " + clients(cells) + " over " +
		printable.List(routes)
}

// notesOf returns the notes of a trace of requests over routes.
func notesOf(r *analysis.Report) string {
	switch {
	case workload.RequestOf(r.Plan.Loads.Of(workload.Request)).Client != "":
		return clientNotes
	case len(r.Cells) == 1:
		return oneRouteNotes
	}
	return routeNotes
}

const traceNotes = "What a mode adds is measured in untraced slices, and its parts in the traced " +
	"epochs between them. The first column has mid-means of traced trips, less what tracing costs; " +
	"they add up to a trip. The second column is the first plus what each part adds. ± is over epochs."

const routeNotes = "What a route adds is measured in rounds without captures, and its parts in the " +
	"rounds between them. The first column has mid-means of captured requests, less what capturing " +
	"costs; they add up to a request. The second column is the first plus what each part adds. ± is " +
	"over rounds."

const clientNotes = "How long requests take is measured in rounds with a capture at the client's " +
	"device only, and their parts in the rounds between them, less what capturing costs. The client " +
	"itself is not in them. Figures of parts are mid-means, which add up to a request. ± is over rounds."

const oneRouteNotes = "Mid-means of captured requests, less what capturing costs; they add up to a " +
	"request. The last row is the median request in rounds without captures."

func traceSummary(r *trace.Report) []document.Section {
	base := r.Base()
	var out []document.Section
	for _, p := range traceParts(r) {
		out = append(out, p.Section)
	}
	out = append(out, absent(base)...)
	if w := warnings(base); len(w) > 0 {
		out = append(out, fewest(w[0]))
	}
	last := section(nil, faint(viewOf(base).notes))
	for _, text := range base.Findings {
		last.Add(faint(text))
	}
	last.Add(faintFacts(provenance(base)))
	if where := base.Pinned(); where != "" {
		last.Add(faint(where))
	}
	return append(out, last)
}

func traceSections(r *trace.Report) []document.Section {
	base := r.Base()
	out := []document.Section{runHead(base)}
	for _, t := range r.Traces {
		out = append(out, traceSection(base, t)...)
	}
	for _, g := range groups(base.Cells) {
		out = append(out, group(base, g))
	}
	return append(out, foot(base)...)
}

func traceSection(r *analysis.Report, t trace.Trace) []document.Section {
	return append(append([]document.Section{tracePart(r, t).Section}, segmentTable(t, "")...),
		stepGroups(t))
}

// tracedNote returns in which parts of a trip a ladder's step has its price, the largest parts
// first.
func tracedNote(t trace.Trace) string {
	if t.Refused != "" {
		return "Cannot tell where: " + t.Words
	}
	rows := slices.DeleteFunc(slices.Clone(t.Rows), func(r trace.Row) bool {
		return !r.Added.Known()
	})
	slices.SortStableFunc(rows, func(a, b trace.Row) int {
		return cmp.Compare(math.Abs(b.Added.Median), math.Abs(a.Added.Median))
	})
	var parts []string
	for _, r := range rows[:min(len(rows), maxNamed)] {
		parts = append(parts, r.Name+" "+r.Added.Value())
	}
	if len(parts) == 0 {
		return "Traced: no part adds anything measurable"
	}
	return "Traced, µs: " + strings.Join(parts, "; ")
}

// traceParts returns the traces' tables, or a comparison's until an epoch was traced. It leaves out
// the control unless it was refused, because the findings describe it.
func traceParts(r *trace.Report) []Part {
	var out []Part
	for _, t := range r.Traces {
		if t.Trips > 0 && (!t.Control() || t.Refused != "") {
			out = append(out, tracePart(r.Base(), t))
		}
	}
	if len(out) == 0 {
		return cellParts(r)
	}
	return out
}

func tracePart(r *analysis.Report, t trace.Trace) Part {
	l := r.Plan.Loads.Of(t.Cell.Load)
	w := workload.Of(l)
	p := Part{Section: document.Section{Title: document.Strongly(t.Title()).
		Then(", round trips from "+placeWords(t.Cell.From)+sayOn(r, t.Cell.On)+", "+w.Words(l)+
			r.Plan.SayPin(t.Cell.Pin), document.Faint)}}
	if t.Route() {
		p.Section.Title = document.Strongly(t.Title()).Then(", "+w.Words(l), document.Faint)
	}
	s := &p.Section
	if t.Refused != "" && !t.Early { // the answer says that the run was too short
		s.Add(document.Paragraph{Level: 1, Style: document.Bad,
			Text: document.Plainly(printable.Capital(t.Words))})
	}
	table := document.Table{Level: 1, Layouts: []document.Layout{{}, {Short: true}, {Bare: true},
		{Short: true, Bare: true}, {Short: true, Bare: true, Tight: true}},
		Columns: []document.Column{texts("", "part, there and back"), labelled(t.Against),
			labelled(t.Label), figures("adds", "µs")}}
	cell, base := cellNamed(r, t, t.Label), cellNamed(r, t, t.Against)
	of := "" // the row whose segments are added
	add := func(name string, its, mine *float64, price analysis.Price, style document.Style) {
		cells := []document.Cell{{Text: name, Short: trace.WithoutDevices(name)},
			microseconds(its), microseconds(mine), nothing}
		if price.N > 0 {
			cells[3] = priceCell(price.Value(), price)
			cells[3].Style = styleOf(price.Verdict)
		}
		table.Rows = append(table.Rows, document.Row{Cells: cells, Style: style})
		row := PartRow{Name: name, Cells: []analysis.Cell{cell}, Price: price.Median,
			Verdict: string(price.Verdict), Trace: &t, Segments: of}
		if mine != nil {
			row.Value = *mine
		}
		p.Rows = append(p.Rows, row)
	}
	for _, row := range t.Rows {
		of = row.Name
		add(row.Name, row.Its, row.Mine, row.Added, document.Plain)
		for _, h := range row.Hooks {
			add("└ hook "+h.Name, h.Its, h.Mine, h.Added, document.Faint)
		}
		for _, h := range row.Divided() {
			add("└ "+h.Name, h.Its, h.Mine, h.Added, document.Faint)
		}
	}
	of = ""
	if len(t.Rows) > 0 && t.Against != "" {
		add("not attributed", nil, nil, t.Unattributed, document.Plain)
	}
	its, mine := untraced(base), untraced(cell)
	if len(t.Levels) == 2 && !t.Untraced.Varies { // what its row adds leads from one to the other
		its, mine = &t.Levels[0], &t.Levels[1]
	}
	add(t.Whole(), its, mine, t.Untraced, document.Strong)
	if t.Against == "" { // it has one column of figures
		table.Columns = slices.Delete(table.Columns[:3], 1, 2)
		for i, row := range table.Rows {
			table.Rows[i].Cells = slices.Delete(row.Cells[:3], 1, 2)
		}
	}
	table.Plot = &document.Plot{Column: len(table.Columns) - 1, Before: len(table.Columns), Scale: micro,
		Span: 1 / micro, Bars: true, Least: leastPlot}
	table.Plot.Show(table.Rows)
	s.Add(table)
	if facts := traceFacts(t); len(facts) > 0 {
		s.Add(faintFacts(strings.Join(facts, document.Facts)))
	}
	for _, f := range t.Findings {
		s.Add(found(f)...)
	}
	return p
}

// labelled heads a column with a label, whose target is in the second line.
func labelled(label string) document.Column {
	name, target, _ := strings.Cut(label, " ")
	return figures(name, strings.TrimSpace(target+" µs"))
}

func found(f trace.Finding) []document.Block {
	text := f.Text
	if f.Lever != "" {
		text += " toll advise tries it: " + f.Lever + "."
	}
	out := []document.Block{document.List{Topic: document.Findings, Items: []string{text},
		Level: 1}}
	if f.Command != "" {
		out = append(out, document.Command{Line: f.Command})
	}
	return out
}

func microseconds(x *float64) document.Cell {
	if x == nil {
		return nothing
	}
	const rounded = 9.995e-6 // to 10
	decimals := 2
	if *x >= rounded {
		decimals = 1
	}
	return numberCell(fmt.Sprintf("%.*f", decimals, *x*micro), *x, "s")
}

// cellNamed returns the judged cell, or the trace's own cell if that one has no result.
func cellNamed(r *analysis.Report, t trace.Trace, label string) analysis.Cell {
	i := slices.IndexFunc(r.Cells, func(c analysis.Cell) bool {
		return sameGroup(c, t.Cell) && c.Name() == label
	})
	if i < 0 {
		return t.Cell
	}
	return r.Cells[i]
}

func untraced(c analysis.Cell) *float64 {
	if m, ok := c.Metrics[workload.LatencyP50]; ok {
		return &m.Median
	}
	return nil
}

func traceFacts(t trace.Trace) []string {
	var facts []string
	if t.Trips > 0 {
		facts = append(facts, fmt.Sprintf("%s, %s followed", units.Plural(t.Trips, "trip"),
			tenths(t.Followed)))
	}
	if t.Cost.N > 0 {
		text := "tracing adds %s to each (%s)"
		if t.Cost.Low < 0 { // on a busy machine other work decides which rounds are slower
			text = "what tracing adds to each cannot be told (%s, %s)"
		}
		facts = append(facts, fmt.Sprintf(text, t.Cost.In(t.Cost.Value()),
			units.Plural(int(math.Round(t.Events)), "event")))
	}
	var readers []string
	for _, kind := range slices.SortedFunc(maps.Keys(t.Readers), func(a, b string) int {
		return cmp.Or(cmp.Compare(t.Readers[b], t.Readers[a]), cmp.Compare(a, b))
	}) {
		if t.Readers[kind] >= leastReaders {
			readers = append(readers, kind+" "+inPercents(t.Readers[kind]))
		}
	}
	if len(readers) > 0 {
		facts = append(facts, "readers: "+strings.Join(readers, "; "))
	}
	if len(t.Missing) > 0 {
		facts = append(facts, "this kernel lacks "+strings.Join(t.Missing, ", ")+
			", so that parts are merged")
	}
	return facts
}

const leastReaders = 0.0005 // 0.1 %

func tenths(x float64) string { return fmt.Sprintf("%.1f %%", percent*x) }

// segmentTable lists the segments of a row, or all if row is "".
func segmentTable(t trace.Trace, row string) []document.Section {
	title := "Every segment of " + t.Label + "'s round trip"
	if row != "" {
		title = "Segments of " + t.Label + "'s " + row
	}
	table := document.Table{Level: 1, Layouts: onlyGaps, Columns: []document.Column{
		texts("", "part"), texts("", "hop"),
		{Head: [2]string{"", "device"}, Cut: document.CutMiddle, Least: leastPhrase / 2},
		{Head: [2]string{"", "where"}, Cut: document.CutEnd, Least: leastPhrase / 2},
		figures("begins", "µs"), figures("mid-mean", "µs"),
		figures("p99", "µs"), figures("of trips", "%")}}
	hops := chart.Hops(t.Segments)
	reply := false
	for i, x := range t.Segments {
		if row != "" && trace.WithoutDevices(x.Row) != trace.WithoutDevices(row) {
			continue
		}
		line := document.Row{Cells: append(
			document.Texts(string(x.Part), hops[i], orDash(x.Device), orDash(x.Where)),
			microseconds(&x.At), microseconds(&x.MidMean),
			microseconds(&x.P99), numberCell(fmt.Sprintf("%.1f", percent*x.Share), x.Share, "1"))}
		if len(table.Rows) == 0 || x.Reply != reply {
			line.Above = document.Strongly(x.Direction())
		}
		reply = x.Reply
		table.Rows = append(table.Rows, line)
	}
	if len(table.Rows) == 0 {
		return nil
	}
	return []document.Section{{Title: document.Strongly(title).
		Then(", in order", document.Faint), Blocks: []document.Block{table}}}
}

// stepGroups lists how the groups of steps differ from the largest, and which steps no hop
// explains.
func stepGroups(t trace.Trace) document.Section {
	var items []string
	for i, g := range t.Groups {
		var what []string
		if i > 0 {
			first := t.Groups[0]
			what = append(what, saySteps("also ", beyond(g.Steps, first.Steps))...)
			what = append(what, saySteps("without ", beyond(first.Steps, g.Steps))...)
			if len(what) == 0 {
				what = append(what, "the same steps in another order")
			}
		}
		var odd []string
		for _, i := range g.Odd {
			odd = append(odd, g.Steps[i])
		}
		what = append(what, saySteps("no hop of the mode explains ", odd)...)
		if len(what) > 0 {
			items = append(items, tenths(g.Share)+" of the trips: "+strings.Join(what, "; "))
		}
	}
	return list(document.Notes, "Groups of steps of "+t.Label+"'s trips", items)
}

// saySteps returns what and the steps in one text, or nil for no steps.
func saySteps(what string, of []string) []string {
	if len(of) == 0 {
		return nil
	}
	return []string{what + strings.Join(of, ", ")}
}

// beyond returns the elements of list that of lacks, or has less often.
func beyond(list, of []string) (out []string) {
	left := slices.Clone(of)
	for _, x := range list {
		if i := slices.Index(left, x); i >= 0 {
			left = slices.Delete(left, i, i+1)
			continue
		}
		out = append(out, x)
	}
	return out
}
