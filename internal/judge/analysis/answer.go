package analysis

import (
	"fmt"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Answer holds the report's main sentences.
type Answer struct {
	Question string   `json:"question"`
	Text     []string `json:"text"`
	Brief    []string `json:"-"` // what summaries show of it; nil: all
}

// Add adds a sentence; it ignores "".
func (a *Answer) Add(s string) {
	if s != "" {
		a.Text = append(a.Text, s)
	}
}

// Clause returns how a cell whose verdict is better or worse differs from the baseline: "has 95 %
// (93–97) of the throughput".
func (r *Report) Clause(c Cell) string {
	m, noun := c.Metrics[c.Primary], r.NounOf(c)
	if cpu := c.FullCPU(); cpu != nil {
		return fmt.Sprintf("fills %s, with %s of the CPU time", c.Link(), cpu)
	}
	switch {
	case m.Price != nil && m.Ratio.Verdict == stats.Worse:
		return fmt.Sprintf("adds %s to the %s", m.Price.Amount(), noun)
	case m.Price != nil:
		return fmt.Sprintf("takes %s off the %s", m.Price.Amount(), noun)
	}
	return fmt.Sprintf("has %s of the %s", m.Ratio, noun)
}

// Verdict returns the verdict on the cell, or on its CPU time if a link is full; "" without a
// ratio.
func (c Cell) Verdict() stats.Verdict {
	if cpu := c.FullCPU(); cpu != nil {
		return cpu.Verdict
	}
	if x := c.Metrics[c.Primary].Ratio; x != nil {
		return x.Verdict
	}
	return ""
}

// NounOf returns the name of the quantity that a cell's load measures. The name is unique among the
// run's loads.
func (r *Report) NounOf(c Cell) string { return workload.NounAmong(r.LoadAt(c), r.Plan.Loads) }

// Phrase returns a cell's name in Docker's words, or its own name if it has no mode.
func (c Cell) Phrase() string {
	m, ok := mode.Find(c.Mode)
	if !ok {
		return c.Label()
	}
	return m.Phrase(c.From, c.To, c.Tune)
}

// Judged is a named subject with a verdict.
type Judged struct {
	Name    string
	Verdict stats.Verdict
	Ratio   *Ratio // nil if Name already contains it
}

// ByVerdict lists names under their verdicts, with the ratios of those that differ: "worse: a 82 %
// (80–84); same: b, c".
func ByVerdict(all []Judged) string {
	by := map[stats.Verdict][]string{}
	for _, x := range all {
		text := x.Name
		if x.Ratio != nil && (x.Ratio.Varies || x.Verdict == stats.Better ||
			x.Verdict == stats.Worse) {
			text += " " + x.Ratio.String()
		}
		if x.Ratio != nil && x.Ratio.Undecided() {
			x.Verdict = Varying
		}
		by[x.Verdict] = append(by[x.Verdict], text)
	}
	var say []string
	for _, v := range []stats.Verdict{stats.Better, stats.Worse, stats.Same, stats.Unclear,
		Varying} {
		if len(by[v]) > 0 {
			say = append(say, string(v)+": "+strings.Join(by[v], ", "))
		}
	}
	return strings.Join(say, "; ")
}

// Priced is a named subject with a price.
type Priced struct {
	Name  string
	Price Price
}

// namedOpen is the largest number of unclear subjects that are named.
const namedOpen = 2

// SayPrices returns head followed by what each subject costs, grouped by verdict, or "" if all is
// empty. It prints a figure only if the verdict is certain. Many unclear subjects are only counted.
func SayPrices(head string, all []Priced) string {
	var sure, nothing, open, hidden, varying []string
	link := ""
	for _, x := range all {
		p := x.Price
		switch {
		case p.LimitedBy != "":
			hidden, link = append(hidden, x.Name), p.LimitedBy
		case p.Verdict == stats.Nothing:
			nothing = append(nothing, fmt.Sprintf("%s (at most %s)", x.Name, p.In(p.Most())))
		case p.Varies && !p.Known():
			varying = append(varying, x.Name+" "+p.In(p.Value()))
		case p.Known():
			sure = append(sure, x.Name+" "+p.Does())
		default:
			open = append(open, x.Name)
		}
	}
	if len(open) > 1 && len(sure)+len(nothing)+len(hidden)+len(varying) == 0 {
		return head + ": what each costs is not clear yet."
	}
	if len(open) > namedOpen {
		open = []string{fmt.Sprintf("%d others", len(open))}
	}
	var say []string
	for _, x := range []struct {
		head  string
		parts []string
	}{{"", sure}, {"Nothing measurable: ", nothing},
		{"Hidden by a " + link + " that is full: ", hidden}, {"Varies: ", varying}, {"Unclear: ", open}} {
		if len(x.parts) > 0 {
			say = append(say, x.head+strings.Join(x.parts, "; "))
		}
	}
	if len(say) == 0 {
		return ""
	}
	return head + ": " + strings.Join(say, ". ") + "."
}

// Does returns what a certain price does: "adds 2.7 µs (2.1–3.3)", or a ratio.
func (p Price) Does() string {
	switch {
	case p.Unit == RatioUnit:
		return p.Ratio().String()
	case p.Verdict == stats.Costs:
		return "adds " + p.Amount()
	}
	return "takes " + p.Amount() + " off"
}

// Tally counts verdicts.
type Tally struct{ all, open, few int }

// Add counts a verdict from n pairs; epochs is 0 if the pairs are rounds.
func (t *Tally) Add(v stats.Verdict, n, epochs int) {
	t.all++
	if v != stats.Unclear {
		return
	}
	t.open++
	if epochs == 0 && n < stats.MinJudged {
		t.few++
	}
}

// Finding returns how many verdicts are unclear; ok is false if none is.
func (t Tally) Finding() (f Finding, ok bool) {
	f = Finding{Code: Unclear, N: t.open, Of: t.all}
	if t.few == t.open {
		f.Code = TooFewRounds
	}
	return f, t.open > 0
}

// SayUnclear returns how many verdicts are unclear, and what would decide them after a run that was
// interrupted or not.
func SayUnclear(f Finding, interrupted bool) string {
	verb := "are"
	if f.N == 1 {
		verb = "is"
	}
	said := fmt.Sprintf("%d of %d verdicts %s unclear", f.N, f.Of, verb)
	if f.Of == 1 {
		said = "The verdict is unclear"
	}
	switch {
	case interrupted:
		return said + ": the run was interrupted."
	case f.Code == TooFewRounds:
		return fmt.Sprintf(
			"%s, because there are too few rounds: a verdict takes at least %d (--rounds, --budget).", said, stats.MinJudged)
	}
	return said + ": measure longer (--budget) or on a quieter machine."
}
