package view

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/advise"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// Plan returns the document of a dry run. whole has, by the name of a load, why it is measured in
// visits.
func Plan(p sample.Plan, whole map[string]string) document.Document {
	printable.Fields(&p) // engines' reasons, users' command lines
	d := document.Document{Kind: document.APlan, JSON: p}
	if p.Mesh != nil {
		d.Sections = meshPlan(p)
	} else {
		d.Sections = planSections(p, whole)
	}
	return d
}

func planSections(p sample.Plan, whole map[string]string) []document.Section {
	text := fmt.Sprintf("%s, about %.1f s per round; ", units.Plural(len(p.Cells), "measurement"),
		plan.RoundTime(p))
	switch {
	case len(p.Levers) > 0:
		text = fmt.Sprintf("%s, each lever alone: %s", text[:len(text)-2], adviseOutline(p))
	case p.Rounds > 0:
		text += units.Plural(p.Rounds, "round") + within(p)
	case p.Trace != nil:
		text += fmt.Sprintf("rounds until %s have passed, at least %d", units.Seconds(p.Budget),
			plan.LeastRounds(p))
	default:
		text += fmt.Sprintf(
			"rounds until every ratio is known to ± %.3g %% or %s have passed, at least %d",
			100*p.Precision, units.Seconds(p.Budget), plan.LeastRounds(p))
	}
	head := document.Section{Blocks: lines(fmt.Sprintf("%s; seed %d", text, p.Seed), OverBudget(p),
		shortEpochs(p))}
	head.Add(loadLines(p, whole)...)
	head.Add(lines(tracingOutline(p), rulesOutline(p))...)
	for _, c := range p.Cells {
		if c.Control && !c.Placebo { // one of each shape
			if l := p.LoadFor(c); l != p.Loads.At(c) {
				head.Add(document.Paragraph{Level: 1,
					Text: document.Plainly(fmt.Sprintf(
						"at %s: warm-up %.3g s, window %.3g s", c.Shape, l.Warmup, l.Window))})
			}
		}
	}
	first := document.Section{Title: document.Plainly("The first round:")}
	for i, t := range plan.Turns(p, 0) {
		first.Add(turnTables(p, i+1, t)...)
	}
	out := []document.Section{head, first}
	if len(p.Skipped) > 0 {
		out = append(out, section(document.Plainly("Not measured here:"), document.List{
			Topic: document.Skipped, Items: NotMeasured(p.Skipped, nil), Level: 1}))
	}
	return out
}

func adviseOutline(p sample.Plan) string {
	first := fmt.Sprintf("until each is certain or %.3g s have passed",
		advise.AloneShare*p.Budget/float64(1+len(p.Also)))
	if p.Rounds > 0 {
		first = units.Plural(p.Rounds, "round")
	}
	first += "; then each lever that helped and did no harm is measured again, one after another, " +
		"with all loads"
	if len(p.Also) > 0 {
		first += "; then the same for " + printable.List(p.Also)
	}
	return first
}

// tracingOutline returns the states of the first rounds, or "" if nothing is traced.
func tracingOutline(p sample.Plan) string {
	if p.Trace == nil {
		return ""
	}
	var states []string
	for round := range plan.TracingStates(p) {
		states = append(states, plan.TracingOf(p, round).Words())
	}
	return fmt.Sprintf("the first rounds are %s; then in a new order", printable.List(states))
}

// rulesOutline returns words for --engine and --ports, or "".
func rulesOutline(p sample.Plan) string {
	var words []string
	if p.Engine != "" {
		words = append(words, "the rules of Docker Engine "+p.Engine)
	}
	if p.Ports > 0 {
		words = append(words, units.Plural(p.Ports, "other published port"))
	}
	if words == nil {
		return ""
	}
	return "the lab's machines have " + printable.List(words)
}

func lines(texts ...string) []document.Block {
	var out []document.Block
	for _, t := range texts {
		if t != "" {
			out = append(out, document.Paragraph{Text: document.Plainly(t)})
		}
	}
	return out
}

func within(p sample.Plan) string {
	if p.Within == 0 {
		return ""
	}
	return fmt.Sprintf(" or until %s have passed", units.Seconds(p.Within))
}

// OverBudget returns words for a run that is longer than its budget, or "" if it fits or has a
// fixed number of rounds.
func OverBudget(p sample.Plan) string {
	least := plan.LeastTime(p)
	if p.Rounds > 0 || p.Mesh != nil && p.Mesh.Sweeps > 0 || least <= p.Budget {
		return ""
	}
	rounds := units.Plural(plan.LeastRounds(p), "round")
	what := "it makes " + rounds + " at least, without which nothing can be judged"
	switch {
	case p.Mesh != nil:
		what = "it makes one sweep at least"
	case p.Sweep != nil:
		what = "a curve needs at least " + rounds
	case p.Within > 0:
		what = "it ends with that, and without " + rounds + " nothing can be judged"
	}
	verb := "will"
	if p.Foreign() { // the speed of that server is not known
		verb = "may"
	}
	return fmt.Sprintf("the run %s take about %.0f s, longer than its budget of %s: %s",
		verb, math.Ceil(least), units.Seconds(p.Budget), what)
}

// shortEpochs returns words for a budget that is too short for an epoch of full length after the
// first round, or "".
func shortEpochs(p sample.Plan) string {
	if p.Rounds > 0 || len(p.Levers) > 0 || plan.LeastRounds(p) > 1 {
		return ""
	}
	first := plan.LeastTime(p)
	if first+plan.RoundTime(p) <= p.Budget {
		return ""
	}
	return fmt.Sprintf("the first round takes about %.1f s, with epochs of %.0f %% of their length; "+
		"the epochs of further rounds are shortened to fit into the budget", first,
		100*plan.FirstShare(p))
}

func loadLines(p sample.Plan, whole map[string]string) []document.Block {
	var out []document.Block
	for _, l := range p.Loads {
		line := document.Paragraph{Text: document.Plainly(
			strings.Replace(workload.Of(l).Outline(l), l.Kind, l.Name(), 1))}
		if l.Slice > 0 {
			line = document.Paragraph{Text: document.Plainly(timetable(p, l))}
		}
		if why := whole[l.Name()]; why != "" {
			line.Text = line.Text.Then("; in visits: "+why, document.Plain)
		}
		out = append(out, line)
	}
	return out
}

func timetable(p sample.Plan, l sample.Load) string {
	for _, t := range plan.Turns(p, 0) {
		if !t.Epoch || p.Cells[t.Cells[0]].Load != l.Kind || p.Cells[t.Cells[0]].Point != l.Point {
			continue
		}
		const second = 1e9
		tt := plan.Epoch(p, t.Cells, plan.Pace{}, 0)
		text := fmt.Sprintf(
			"%s: an epoch of %.1f s per round, in which the modes take turns in slices of %g ms",
			l.Name(), float64(tt.Length)/second, 1000*l.Slice)
		if hasControl(p, t) {
			text += fmt.Sprintf(", each near one of %s or its control", p.Baseline)
		}
		text += fmt.Sprintf("; then each has a window of %g s", l.Window)
		return text
	}
	return l.Name() + ": in slices"
}

func hasControl(p sample.Plan, t plan.Turn) bool {
	return slices.ContainsFunc(t.Cells, func(i int) bool { return p.Cells[i].Control })
}

func turnTables(p sample.Plan, n int, t plan.Turn) []document.Block {
	turn := document.Table{Columns: append(
		[]document.Column{{Right: true, Width: 4}}, cellColumns...)}
	turn.Columns[1].Gap = 2
	number := document.Cell{Text: strconv.Itoa(n)}
	if !t.Epoch {
		turn.Rows = []document.Row{{Cells: append(
			[]document.Cell{number}, cellTexts(p, p.Cells[t.Cells[0]])...)}}
		return []document.Block{turn}
	}
	turn.Columns = turn.Columns[:2]
	turn.Rows = []document.Row{{Cells: []document.Cell{
		number, {Text: "an epoch of " + loadAndPin(p, p.Cells[t.Cells[0]])}}}}
	count := map[int]int{}
	for _, s := range plan.Epoch(p, t.Cells, plan.Pace{}, 0).Slots {
		if s.Measured() {
			count[s.Cell]++
		}
	}
	cells := document.Table{Level: 4, Layouts: []document.Layout{{Tight: true}},
		Columns: append(slices.Clone(cellColumns), document.Column{Right: true})}
	for _, i := range t.Cells {
		slots := document.Cell{Text: fmt.Sprintf("%4d slices", count[i]),
			Number: &document.Number{Value: float64(count[i]), Unit: "slices"}}
		cells.Rows = append(cells.Rows, document.Row{
			Cells: append(cellTexts(p, p.Cells[i]), slots)})
	}
	return []document.Block{turn, cells}
}

var cellColumns = []document.Column{{Width: 28}, {Width: 15, Gap: 1}, {Gap: 1}}

func cellTexts(p sample.Plan, c sample.Cell) []document.Cell {
	name := analysis.RowName(c)
	switch {
	case c.Placebo:
		name += " (placebo)"
	case c.Control:
		name += " (control)"
	}
	return document.Texts(name, "from "+string(c.From), loadAndPin(p, c))
}

func loadAndPin(p sample.Plan, c sample.Cell) string {
	if len(p.Pins) < 2 {
		return c.LoadName()
	}
	return c.LoadName() + ", " + analysis.PinWords(c.Pin)
}

// Limits of what a mesh's plan prints: tournament rounds, phases in each, and pairs in each phase.
const (
	shownRounds = 5
	shownPhases = 6
	shownPairs  = 6
)

func meshPlan(p sample.Plan) []document.Section {
	m := p.Mesh
	n := len(m.Nodes)
	text := fmt.Sprintf(
		"%s, %s, %s per sweep, about %.1f s per round and %.0f s per sweep; ",
		units.Plural(n, "node"), units.Plural(n*(n-1)/2, "pair"),
		units.Plural(plan.MeshRounds(p), "round"), plan.RoundTime(p), plan.SweepTime(p))
	if m.Sweeps > 0 {
		text += units.Plural(m.Sweeps, "sweep")
	} else {
		text += fmt.Sprintf("sweeps until each node's values are known to ± %g %% (at least %d sweeps) "+
			"or %s have passed (at least one sweep)", 100*p.Precision, plan.MinSweeps,
			units.Seconds(p.Budget))
	}
	atOnce := ""
	if m.AtOnce > 0 {
		atOnce = "at most " + units.Plural(m.AtOnce, "pair") + " at once"
	}
	head := document.Section{Blocks: lines(
		fmt.Sprintf("%s; seed %d", text, p.Seed), OverBudget(p), atOnce)}
	head.Add(loadLines(p, nil)...)
	first := document.Section{Title: document.Plainly("The first sweep, client → server:")}
	said := func(level int, text string) {
		first.Add(document.Paragraph{Level: level, Text: document.Plainly(text)})
	}
	for round := range min(shownRounds, plan.MeshRounds(p)) {
		said(1, fmt.Sprint("round ", round+1))
		phases := plan.MeshRound(p, 0, round)
		first.Add(phaseTable(m, phases[:min(shownPhases, len(phases))]))
		if left := len(phases) - shownPhases; left > 0 {
			said(2, "and "+units.Plural(left, "more phase"))
		}
	}
	if left := plan.MeshRounds(p) - shownRounds; left > 0 {
		said(1, "and "+units.Plural(left, "more round"))
	}
	return []document.Section{head, first}
}

func phaseTable(m *sample.Mesh, phases []plan.Phase) document.Table {
	t := document.Table{Level: 2, Columns: []document.Column{{Width: 4}, {}}}
	for _, ph := range phases {
		var pairs []string
		for i, x := range ph.Pairs {
			if i == shownPairs {
				pairs = append(pairs, fmt.Sprintf("%d more", len(ph.Pairs)-i))
				break
			}
			pairs = append(pairs, m.Nodes[x[0]].Name+" → "+m.Nodes[x[1]].Name)
		}
		t.Rows = append(t.Rows, document.Row{
			Cells: document.Texts(ph.Load.Kind, strings.Join(pairs, ", "))})
	}
	return t
}
