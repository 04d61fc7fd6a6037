package main

import (
	"fmt"
	"io"

	"github.com/bridgetoll/bridgetoll/internal/analysis"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/printable"
	"github.com/bridgetoll/bridgetoll/internal/report"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// printPlan prints what a run would do.
func printPlan(w io.Writer, p sample.Plan, format string) error {
	printable.Fields(&p) // reasons of engines, command lines of the user
	if format == "json" {
		return writeJSON(w, p)
	}
	if p.Mesh != nil {
		printMesh(w, p)
		return nil
	}
	fmt.Fprintf(w, "%d cells, about %.1f s a round; ", len(p.Cells), plan.RoundTime(p))
	if p.Rounds > 0 {
		fmt.Fprintf(w, "%d rounds", p.Rounds)
	} else {
		fmt.Fprintf(w, "rounds until every ratio is known to ± %g %% or %g s are over, at least %d",
			100*p.Precision, p.Budget, plan.MinRounds)
	}
	fmt.Fprintf(w, "; seed %d\n", p.Seed)
	if over := overBudget(p); over != "" {
		fmt.Fprintln(w, over)
	}
	printLoads(w, p)
	for _, c := range p.Cells {
		if c.Control { // one of each shape
			if l := p.LoadFor(c); l != p.LoadOf(c.Load) {
				fmt.Fprintf(w, "  at %s: warm-up %.3g s, window %.3g s\n", c.Shape, l.Warmup, l.Window)
			}
		}
	}
	fmt.Fprintln(w, "\nThe first round:")
	for i, n := range plan.Order(p, 0) {
		c := p.Cells[n]
		name := nameOf(c)
		if c.Control {
			name += " (control)"
		}
		fmt.Fprintf(w, "%4d  %-28s from %-10s %s\n", i+1, name, c.From, c.Load)
	}
	if len(p.Skipped) > 0 {
		fmt.Fprintln(w, "\nNot measured here:")
	}
	for _, text := range report.NotMeasured(p.Skipped, nil) {
		paragraph(w, text)
	}
	return nil
}

// overBudget says that the run will take longer than its budget, and how long; "" if
// it fits, or if the number of rounds is fixed.
func overBudget(p sample.Plan) string {
	least := plan.LeastTime(p)
	if p.Rounds > 0 || p.Mesh != nil && p.Mesh.Sweeps > 0 || least <= p.Budget {
		return ""
	}
	what := fmt.Sprintf("%d rounds at least, without which nothing can be judged", plan.MinRounds)
	if p.Mesh != nil {
		what = "one sweep at least"
	}
	return fmt.Sprintf("the run will take about %.0f s, longer than its budget of %g s: it makes %s", least, p.Budget, what)
}

// nameOf is a cell's label and, of a crowd, its shape.
func nameOf(c sample.Cell) string {
	return analysis.Cell{Mode: c.Mode, From: c.From, To: c.To, Tune: c.Tune, Shape: c.Shape}.Name()
}

// printLoads prints the plan's loads with their times.
func printLoads(w io.Writer, p sample.Plan) {
	for _, l := range p.Loads {
		switch {
		case l.Bytes > 0:
			fmt.Fprintf(w, "%s: %s bytes on each stream, however long they take\n", l.Kind, formatSize(l.Bytes))
		case l.Program != nil:
			fmt.Fprintf(w, "server: %s\nclient: %s\n", printable.Line(l.Program.Server), printable.Line(l.Program.Client))
		case l.Kind == "chat":
			fmt.Fprintf(w, "chat: sessions: %d, requests of each in a visit: %d, tokens of a response: at most %d\n", l.Streams, l.Requests, l.Tokens)
		default:
			fmt.Fprintf(w, "%s: warm-up %.6g s, window %.6g s\n", l.Kind, l.Warmup, l.Window)
		}
	}
}
