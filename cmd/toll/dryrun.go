package main

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/view"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// planDocument returns a document of what a run would do, and why loads that could be sliced are
// measured in visits.
func planDocument(p sample.Plan, whole map[string]string) document.Document {
	printable.Fields(&p) // engines' reasons, users' command lines
	d := document.Document{Kind: document.APlan, Value: p}
	if p.Mesh != nil {
		d.Sections = meshSections(p)
	} else {
		d.Sections = planSections(p, whole)
	}
	return d
}

func planSections(p sample.Plan, whole map[string]string) []document.Section {
	text := fmt.Sprintf("%d cells, about %.1f s per round; ", len(p.Cells), plan.RoundTime(p))
	switch {
	case p.Study == sample.StudyAdvise:
		text = fmt.Sprintf("%s, each lever alone: %s", text[:len(text)-2], adviseOutline(p))
	case p.Rounds > 0:
		text += rounds(p.Rounds)
	default:
		text += fmt.Sprintf("rounds until every ratio is known to ± %.3g %% or %g s have passed, at least %d",
			100*p.Precision, p.Budget, plan.LeastRounds(p))
	}
	head := document.Section{Blocks: lines(fmt.Sprintf("%s; seed %d", text, p.Seed), overBudget(p))}
	head.Add(loadLines(p, whole)...)
	for _, c := range p.Cells {
		if c.Control && !c.Placebo { // one of each shape
			if l := p.LoadFor(c); l != p.LoadAt(c) {
				head.Add(document.Paragraph{Level: 1, Text: document.Plainly(fmt.Sprintf("at %s: warm-up %.3g s, window %.3g s", c.Shape, l.Warmup, l.Window))})
			}
		}
	}
	first := document.Section{Title: document.Plainly("The first round:")}
	for i, t := range plan.Turns(p, 0) {
		first.Add(turnTables(p, i+1, t)...)
	}
	out := []document.Section{head, first}
	if len(p.Skipped) > 0 {
		out = append(out, document.Section{Title: document.Plainly("Not measured here:"),
			Blocks: []document.Block{document.List{Topic: document.Skipped, Items: view.NotMeasured(p.Skipped, nil), Level: 1}}})
	}
	return out
}

// adviseOutline describes a search.
func adviseOutline(p sample.Plan) string {
	first := fmt.Sprintf("until each is certain or %.3g s have passed", firstShare*p.Budget/float64(1+len(p.Also)))
	if p.Rounds > 0 {
		first = rounds(p.Rounds)
	}
	first += "; then what helped and harmed nothing is measured again, one after another, over all loads"
	if len(p.Also) > 0 {
		first += "; then the same for " + printable.List(p.Also)
	}
	return first
}

// lines returns one paragraph of one line for each text that is not empty.
func lines(texts ...string) []document.Block {
	var out []document.Block
	for _, t := range texts {
		if t != "" {
			out = append(out, document.Paragraph{Text: document.Plainly(t)})
		}
	}
	return out
}

func rounds(n int) string {
	if n == 1 {
		return "1 round"
	}
	return fmt.Sprintf("%d rounds", n)
}

// fitBudget refuses a run that needs more time for a verdict than the budget that the user gave. A
// default budget grows, with a warning. The time of an endpoint is only estimated, and a mesh makes
// one sweep whatever its budget.
func (f *runFlags) fitBudget(e env, p *sample.Plan) error {
	over := overBudget(*p)
	if over == "" || p.Foreign() || p.Mesh != nil {
		return nil
	}
	least := math.Ceil(plan.LeastTime(*p))
	if !f.budgetSet {
		if p.Budget = least; !f.quiet {
			warn(e, over)
		}
		return nil
	}
	or := "or fewer modes or loads"
	if len(p.Pins) > 1 {
		or = "fewer modes or loads, or one placement on CPUs (--pin far)"
	}
	return usage(errors.New(over), fmt.Sprintf("--budget %.0fs, %s", least, or))
}

// overBudget reports that the run will exceed its budget, and by how much. It returns "" if the run
// fits or if the number of rounds is fixed.
func overBudget(p sample.Plan) string {
	least := plan.LeastTime(p)
	if p.Rounds > 0 || p.Mesh != nil && p.Mesh.Sweeps > 0 || least <= p.Budget {
		return ""
	}
	what := rounds(plan.LeastRounds(p)) + " at least, without which nothing can be judged"
	if p.Mesh != nil {
		what = "one sweep at least"
	}
	verb := "will"
	if p.Foreign() { // the speed of that server is not known
		verb = "may"
	}
	return fmt.Sprintf("the run %s take about %.0f s, longer than its budget of %g s: it makes %s", verb, math.Ceil(least), p.Budget, what)
}

// nameOf returns a cell's label and, for a crowd, its shape.
func nameOf(c sample.Cell) string {
	return analysis.Cell{Mode: c.Mode, From: c.From, To: c.To, Tune: c.Tune, Shape: c.Shape, Point: c.Point}.Name()
}

// loadLines lists the plan's loads with their times, and why they are measured in visits.
func loadLines(p sample.Plan, whole map[string]string) []document.Block {
	var out []document.Block
	for _, l := range p.Loads {
		line := document.Paragraph{Text: document.Plainly(strings.Replace(workload.Of(l).Outline(l), l.Kind, wholeKey(l), 1))}
		if l.Slice > 0 {
			line = document.Paragraph{Text: document.Plainly(timetable(p, l)), Break: document.Words}
		}
		if why := whole[wholeKey(l)]; why != "" {
			line.Text = line.Text.Then("; in visits: "+why, document.Plain)
		}
		out = append(out, line)
	}
	return out
}
