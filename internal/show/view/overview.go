package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// overview returns the tables of a comparison's summary. Loads and CPU placements are columns of
// one table for each place of the client; a single one has a table with a plot.
func overview(r *analysis.Report) (out []document.Section) {
	cells := answering(r)
	for _, g := range places(cells) {
		if fields := fieldsOf(g); len(fields) > 1 {
			out = append(out, across(r, g, fields))
		} else {
			out = append(out, briefly(r, g))
		}
	}
	return out
}

// answering returns the cells without those that were measured only to know what pacing does. The
// answer has their result, and the details show them.
func answering(r *analysis.Report) []analysis.Cell {
	return slices.DeleteFunc(slices.Clone(r.Cells), r.Plan.OnlyUnpaced)
}

func places(cells []analysis.Cell) [][]analysis.Cell {
	return analysis.Grouped(cells, func(c analysis.Cell) sample.Cell {
		return sample.Cell{From: c.From, On: c.On}
	})
}

// field is a group of columns of the overview: the same load on the same CPUs.
type field struct{ load, pin string }

func fieldOf(c analysis.Cell) field { return field{c.Load, c.Pin} }

// fieldsOf returns the fields of cells, those of a load together.
func fieldsOf(cells []analysis.Cell) (out []field) {
	loads := analysis.Distinct(cells, func(c analysis.Cell) string { return c.Load })
	for _, load := range loads {
		for _, c := range cells {
			if f := fieldOf(c); f.load == load && !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
	}
	return out
}

// across returns the table of all fields, whose rows are the cells that differ in more than the
// field.
func across(r *analysis.Report, cells []analysis.Cell, fields []field) document.Section {
	by := map[sample.Cell]analysis.Cell{}
	rowOf := func(c analysis.Cell, f field) sample.Cell {
		of := c.Cell
		of.Load, of.Pin = f.load, f.pin
		return of
	}
	var rows []analysis.Cell
	for _, c := range cells {
		by[c.Cell] = c
		if !slices.ContainsFunc(rows, func(o analysis.Cell) bool {
			return rowOf(o, field{}) == rowOf(c, field{})
		}) {
			rows = append(rows, c)
		}
	}
	slices.SortStableFunc(rows, func(a, b analysis.Cell) int { // it may lack the first field's result
		return cmp.Compare(unlessBaseline(a), unlessBaseline(b))
	})
	cols := []column{{document.Column{Head: [2]string{"", "mode"}, Cut: document.CutMiddle,
		Least: leastPhrase}, textOf(analysis.Cell.Name)}}
	at := len(cols)
	for i, f := range fields {
		if i > 0 && f.load != fields[i-1].load && at == 1 {
			at = len(cols)
		}
		for _, col := range fieldColumns(r, cells, f) {
			of := col.cell
			col.cell = func(c analysis.Cell) document.Cell {
				if c, ok := by[rowOf(c, f)]; ok {
					return of(c)
				}
				return nothing
			}
			cols = append(cols, col)
		}
	}
	t := tableOf(spanned(r, cols), rows, []document.Layout{{}, {Lean: true, Short: true},
		{Lean: true, Short: true, Tight: true}})
	for i := range t.Rows {
		t.Rows[i].Style = document.Plain // each cell has its own
	}
	t.Split, t.At = document.SplitInTwo, at
	return section(overviewTitle(r, cells[0], fields), t)
}

func unlessBaseline(c analysis.Cell) int {
	if c.Baseline {
		return 0
	}
	return 1
}

// fieldColumns returns the column of a field's differences, headed by its load, and the spare one
// of its levels.
func fieldColumns(r *analysis.Report, cells []analysis.Cell, f field) []column {
	cells = slices.DeleteFunc(slices.Clone(cells), func(c analysis.Cell) bool {
		return fieldOf(c) != f
	})
	first := cells[0]
	unit, scale := fitting(r, f.load, first.Primary)
	adds, added := viewOf(r).added(r, cells)
	what := percentHead + " " + r.Plan.Baseline
	if added {
		what = "added " + adds.Head[1]
		if adds.Head[1] == "ms" && unit == "s" { // use one unit for both
			unit, scale = "ms", milli
		}
	}
	head := [2]string{r.NounOf(first) + ", " + what, analysis.PinWords(f.pin)}
	return []column{
		{document.Column{Head: head}, func(c analysis.Cell) document.Cell {
			return fieldCell(c, added, adds.Head[1], unit, scale)
		}},
		{document.Column{Head: [2]string{"", unit}, Right: true, Spare: true},
			shown(first.Primary, scale)}}
}

// fieldCell returns a cell's difference from the baseline with a mark of its verdict, or the mark
// alone if the interval tells nothing. For the baseline the short text is its level.
func fieldCell(c analysis.Cell, added bool, adds, unit string, scale float64) document.Cell {
	m := c.Metrics[c.Primary]
	switch {
	case c.Baseline:
		cell := numberCell("100", 1, analysis.RatioUnit)
		if added {
			cell = numberCell("0", 0, m.Unit)
		}
		cell.Short = shown(c.Primary, scale)(c).Text + " " + unit
		return cell
	case m.Ratio == nil:
		return nothing
	}
	cell, text := ratioCell("", *m.Ratio), m.Ratio.Even()
	if p := m.Price; added && p != nil {
		cell, text = priceCell("", *p), p.Even(adds)
		cell.Number.Verdict = string(m.Ratio.Verdict)
	}
	if x := m.Ratio; x.N > 1 && tellsNothing(x.Verdict, x.Varies, x.HalfWidth(), 1) {
		text = ""
	}
	cell.Text, cell.Style = strings.TrimSpace(text+" "+m.Ratio.Mark()), styleOf(m.Ratio.Verdict)
	return cell
}

// spanned lets neighbours share the head that they have in common. Without CPU placements, the
// head's second line has the second half.
func spanned(r *analysis.Report, cols []column) []column {
	if !r.Plan.ManyPins() {
		for i, c := range cols {
			if noun, what, ok := strings.Cut(c.Head[0], ", "); ok {
				cols[i].Head = [2]string{noun + ",", what}
			}
		}
		return cols
	}
	last := -1
	for i, c := range cols {
		switch {
		case i == 0:
		case c.Head[0] != "" && last >= 0 && c.Head[0] == cols[last].Head[0], c.Head[0] == "":
			cols[i].Head[0] = ""
			cols[last].Span = i - last + 1
		default:
			last = i
			cols[i].Span = 1
		}
	}
	return cols
}

func overviewTitle(r *analysis.Report, c analysis.Cell, fields []field) document.Text {
	var loads []string
	for _, f := range fields {
		l := r.Plan.Loads.Of(f.load)
		if text := workload.Of(l).Words(l); !slices.Contains(loads, text) {
			loads = append(loads, text)
		}
	}
	return document.Strongly("From "+placeWords(c.From)+sayOn(r, c.On)).
		Then(", "+strings.Join(loads, "; "), document.Faint)
}

// key explains what the tables of a summary use: marks, intervals and CPU placements.
func key(r *analysis.Report) string {
	cells := answering(r)
	var facts []string
	add := func(ok bool, text string) {
		if ok {
			facts = append(facts, text)
		}
	}
	if slices.ContainsFunc(places(cells), func(g []analysis.Cell) bool {
		return len(fieldsOf(g)) > 1
	}) {
		var marks []string
		for _, c := range cells {
			if x := c.Metrics[c.Primary].Ratio; x != nil && !c.Baseline {
				marks = append(marks, markOf(*x))
			}
		}
		facts = marksInWords(marks, fmt.Sprintf("the same within %.3g %%", percent*r.Plan.Same))
	}
	for _, p := range r.Plan.Pins {
		add(p.Name == sample.PinFar && r.Plan.ManyPins(),
			"own CPUs: client and server have one each, as on an idle machine")
		add(p.Name == sample.PinNear && r.Plan.ManyPins(),
			"one CPU: they share it, as on a busy machine")
	}
	return printable.Capital(strings.Join(facts, "; "))
}

// markOf returns the mark that follows a ratio in a table.
func markOf(x analysis.Ratio) string {
	if x.Alone() {
		return "±?"
	}
	return x.Mark()
}

// marksInWords explains intervals and those marks that a table has. same is what "=" means.
func marksInWords(marks []string, same string) []string {
	out := []string{"± 95 % interval"}
	for _, m := range [][2]string{{"=", same}, {"?", "unclear"}, {"~", "varies, in this range"},
		{"±?", "unclear: too few rounds for an interval"}} {
		if slices.Contains(marks, m[0]) {
			out = append(out, m[0]+" "+m[1])
		}
	}
	return out
}

// remarks returns what a summary says between its tables and its answer: the key, results that are
// missing or may be wrong, and a line about the run.
func remarks(r *analysis.Report, key string) []document.Section {
	said := document.Section{Close: true}
	if key != "" {
		said.Add(faint(key + "."))
	}
	facts := []string{briefRun(r.Plan)}
	if slices.ContainsFunc(r.Cells, func(c analysis.Cell) bool {
		return c.Facts[sample.FactNotWitnessed] != ""
	}) {
		said.Add(faint(viewOf(r).proven(r)))
	} else {
		facts = append(facts, witnessedFact(r))
	}
	if text := r.Together(); text != "" {
		said.Add(faint(text))
	}
	more := "more: --details"
	if w := warningsBut(r, viewOf(r).hides, thinTail); len(w) > 0 {
		more = units.Plural(len(w[0].Blocks[0].(document.List).Items), "warning") + ", " + more
	}
	run := faintFacts(strings.Join(append(facts, more), document.Facts))
	shown := *r
	shown.Failed = r.Lacking()
	out := append(absent(&shown), grave(r)...)
	if len(out) == 0 {
		said.Add(run)
		return []document.Section{said}
	}
	return append(append([]document.Section{said}, out...),
		section(nil, run))
}

// grave lists the warnings after which figures may be wrong or missing. The answer has that of a
// busy machine.
func grave(r *analysis.Report) []document.Section {
	var texts []string
	for _, w := range r.Warnings {
		if slices.Contains(graveCodes, w.Code) {
			texts = append(texts, w.Text)
		}
	}
	for _, c := range answering(r) {
		for _, w := range c.Warnings {
			if w.Code == analysis.Varying { // the row has a range instead of a figure
				texts = append(texts, c.Name()+" "+c.Load+r.Plan.SayPin(c.Pin)+": "+w.Text)
			}
		}
	}
	if len(texts) == 0 {
		return nil
	}
	return []document.Section{list(document.Warnings, "Warnings", texts)}
}

var graveCodes = []string{"truncated", "failure", "no-baseline", "mixed-placement",
	"throttled", "cgroup-limit", "same-core"}

// briefRun returns how long the run took, and why it ended if it ended early.
func briefRun(p analysis.Plan) string {
	text := fmt.Sprintf("%s in %.0f s", units.Plural(p.Rounds, "round"), p.Elapsed)
	switch p.EndedBy {
	case sample.EndedByPrecision, sample.EndedByBudget, sample.EndedByRounds:
		return text
	}
	return text + ", " + endedBy(p)
}

func witnessedFact(r *analysis.Report) string {
	if len(r.Failed) > 0 {
		return "every row with a result was witnessed"
	}
	return "every row was witnessed"
}
