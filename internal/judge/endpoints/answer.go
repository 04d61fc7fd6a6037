package endpoints

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// AnswerOf returns the findings on the judged routes, or nil without routes. culprits are the
// causes of slow tokens, by route.
func AnswerOf(r *analysis.Report, culprits []Culprit) *analysis.Answer {
	if len(r.Cells) == 0 {
		return nil
	}
	a := &analysis.Answer{Question: "What does each route cost?", Text: []string{}}
	evidence := evident(r)
	if len(culprits) > 0 || len(evidence) > 0 {
		a.Question = "Is it the network or the model?"
		a.Text = append(a.Text, evidence...)
		a.Add(accuse(culprits))
		for _, c := range culprits {
			if !slices.Contains(a.Text, c.Proof) {
				a.Add(c.Proof)
			}
		}
		a.Add(unseen(r))
		a.Add(processor(r))
	}
	if slices.ContainsFunc(r.Plan.Loads, workload.Alone) {
		a.Question = "Is it the network?"
		a.Add(suspect(r))
	}
	for _, text := range holders(r) {
		a.Add(text)
	}
	tally := compared(r, a)
	where, _ := exchanged(r)
	for _, text := range where {
		a.Add(text)
	}
	a.Add(connecting(r))
	alone := !slices.ContainsFunc(r.Cells, func(c analysis.Cell) bool { return !c.Baseline })
	if alone && len(r.Failed) == 0 {
		if len(culprits) == 0 && len(evidence) == 0 {
			a.Add(
				"With one route, the cost of the path cannot be measured: give another route to the same server.")
		}
	} else if len(a.Text) == 0 {
		a.Add("Nothing can be compared: the baseline " + r.Plan.Baseline +
			" has no result, or no other route has one.")
	}
	a.Add(broken(r))
	for _, text := range proxies(r, culprits) {
		a.Add(text)
	}
	found, _ := suspects(r)
	a.Add(found)
	a.Add(tally.Sentence())
	a.Add(traceable(r))
	return a
}

func compared(r *analysis.Report, a *analysis.Answer) (tally analysis.Tally) {
	for _, l := range r.Plan.Loads {
		var same, open, differ []string
		to, noun := "", ""
		for _, c := range r.Cells {
			x := c.Metrics[c.Primary].Ratio
			if c.Load != l.Kind || c.Baseline || x == nil {
				continue
			}
			to, noun = x.To, r.NounOf(c)
			tally.Add(x.Verdict, x.N, x.Epochs)
			switch x.Verdict {
			case stats.Same:
				same = append(same, c.Label())
			case stats.Better, stats.Worse:
				differ = append(differ, c.Label()+" "+r.Clause(c)+each(c, queries(r, l.Kind)))
			default:
				open = append(open, c.Label())
			}
		}
		if len(differ) > 0 {
			a.Add(fmt.Sprintf("Against %s: %s.", to, strings.Join(differ, "; ")))
		}
		if len(same) > 0 {
			a.Add(fmt.Sprintf("%s %s the same %s as %s%s.", printable.List(same), have(same), noun,
				to, within(r)))
		}
		switch {
		case len(open) == 0:
		case workload.Alone(l):
			a.Add(fmt.Sprintf("It is unclear whether %s %s from %s in %s.", printable.List(open),
				differs(open), to, noun))
		default:
			a.Add(fmt.Sprintf("It is unclear whether the %s over %s differs from that over %s.",
				noun, printable.List(open), to))
		}
	}
	return tally
}

// connectShare is the share of the primary time from which a difference in the time to connect is
// mentioned.
const connectShare = 0.01

// connecting returns a sentence on the routes that take longer or less long to connect than the
// baseline, or "".
func connecting(r *analysis.Report) string {
	var say []string
	for _, c := range r.Cells {
		m := c.Metrics[workload.ConnectTime]
		if c.Baseline || m.Ratio == nil || m.Price == nil ||
			math.Abs(m.Price.Median) < connectShare*c.Metrics[c.Primary].Median {
			continue
		}
		how := "longer"
		switch m.Ratio.Verdict {
		case stats.Better:
			how = "less"
		case stats.Worse:
		default:
			continue
		}
		text := fmt.Sprintf("%s takes %s %s than %s", c.Label(), m.Price.Amount(), how, m.Ratio.To)
		if !slices.Contains(say, text) {
			say = append(say, text)
		}
	}
	if len(say) == 0 {
		return ""
	}
	return "To connect, " + strings.Join(say, "; ") + "."
}

func broken(r *analysis.Report) string {
	var lost []string
	for _, c := range r.Cells {
		if label := c.Label(); c.Broke && !slices.Contains(lost, label) {
			lost = append(lost, label)
		}
	}
	switch len(lost) {
	case 0:
		return ""
	case 1:
		return lost[0] + " broke and did not come back: its figures are from before that."
	}
	return printable.List(lost) +
		" broke and did not come back: their figures are from before that."
}

func suspect(r *analysis.Report) string {
	by := map[stats.Verdict][]string{}
	base, judged := "", 0
	for _, c := range r.Cells {
		if x := c.Metrics[c.Primary].Ratio; x != nil && !c.Baseline {
			by[x.Verdict] = append(by[x.Verdict], c.Label())
			base, judged = x.To, judged+1
		}
	}
	var say []string
	if better := by[stats.Better]; len(better) > 0 {
		say = append(say, fmt.Sprintf("Yes, over %s: %s %s better.", base, printable.List(better),
			isOrAre(better)))
	}
	if worse := by[stats.Worse]; len(worse) > 0 {
		say = append(say, fmt.Sprintf("Yes, over %s.", printable.List(worse)))
	}
	if judged > 0 && len(by[stats.Same]) == judged {
		return "No: the routes do not differ, so the time is spent in the server and the client, " +
			"which they share."
	}
	return strings.Join(say, " ")
}

func differs(names []string) string {
	if len(names) > 1 {
		return "differ"
	}
	return "differs"
}

func isOrAre(names []string) string {
	if len(names) > 1 {
		return "are"
	}
	return "is"
}

func queries(r *analysis.Report, kind string) int {
	if kind != workload.SQL {
		return 0
	}
	return workload.SQLOf(r.Plan.Loads.Of(kind)).Queries
}

func each(c analysis.Cell, queries int) string {
	p := c.Metrics[c.Primary].Price
	if queries < 2 || p == nil {
		return ""
	}
	one := *p
	for _, x := range []*float64{&one.Median, &one.Low, &one.High} {
		*x /= float64(queries)
	}
	return ": " + one.Amount() + " a query"
}

func have(names []string) string {
	if len(names) > 1 {
		return "have"
	}
	return "has"
}

func within(r *analysis.Report) string {
	if same := r.Plan.Same; same > 0 {
		return fmt.Sprintf(" (within %g %%)", 100*same)
	}
	return ""
}

// Culprit is the cause of a route's slow tokens, in the gaps between them or before the first one.
type Culprit struct {
	Route string
	Blame Blame
	Proof string // a sentence with figures as evidence; "": none
}

// Blame is the party that makes tokens slow.
type Blame string

const (
	Nobody   Blame = "neither"     // the gaps are steady
	Server   Blame = "the model"   // the server and its program
	Network  Blame = "the network" // the route
	Both     Blame = "both"
	NotKnown Blame = "unclear"
	TooFew   Blame = "too few rounds"
	NoOther  Blame = "one route" // no other route to compare with
	Held     Blame = "held back" // the same, but tokens arrive together
)

func accuse(all []Culprit) string {
	by := map[Blame][]string{}
	for _, c := range all {
		by[c.Blame] = append(by[c.Blame], c.Route)
	}
	var say []string
	for _, x := range []struct {
		blame Blame
		text  string
	}{
		{Network, "The network, over %s."}, {Both, "Both, over %s."},
		{Server, "The model, over %s."},
		{Nobody, "Neither, over %s: the tokens come steadily."},
		{NotKnown, "Unclear over %s: measure longer, or with more --tokens."},
		{TooFew, fmt.Sprintf("Too few rounds to say over %%s: it takes at least %d.",
			stats.MinJudged)},
		{Held, "Neither the wire nor the model's speed, over %s: the server, or a gateway in front " +
			"of it, holds tokens back."},
		{NoOther,
			"With one route, %s, path and server cannot be told apart: give another route to the same server."},
	} {
		if len(by[x.blame]) > 0 {
			say = append(say, fmt.Sprintf(x.text, printable.List(by[x.blame])))
		}
	}
	return strings.Join(say, " ")
}
