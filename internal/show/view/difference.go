package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/difference"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/show/chart"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/sentence"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

func Difference(r *difference.Report) document.Document {
	sentence.FillDifference(r)
	d := document.Document{Kind: document.ADifference, JSON: r,
		Page: func() document.Page { return chart.Difference(r) }}
	d.Add(differenceHead(r), otherSettings(r.Settings, r.Cells))
	d.Add(changes(r, ratioChanges)...)
	for k, g := range r.Groups() {
		t := valueChanges(g)
		if len(t.Rows) == 0 {
			continue
		}
		s := section(document.Strongly(placeAndLoad(r, g)+": absolute, not judged"), t)
		if k == 0 {
			s.Blocks = []document.Block{paragraph(1,
				"Absolute figures from different times are not comparable, because they depend on the machine's state."), t}
		}
		d.Add(s)
	}
	d.Add(alone(r, func(cells []difference.Lone) (items []string) {
		for _, c := range cells {
			items = append(items, fmt.Sprintf("%s from %s, %s%s: %s", c.Label, placeWords(c.From),
				c.Load, pinned(c.Pin, comparedPins(r)), c.Why))
		}
		return items
	})...)
	d.Add(section(nil, faint(differenceLegend(r))))
	return d
}

// DifferenceSummary shows what Difference does without absolute figures, without the figures beside
// the one that decides a mode's verdict unless they became better or worse, and without the names
// of all rows that only one run has.
func DifferenceSummary(r *difference.Report) document.Document {
	d := Difference(r)
	d.Sections = []document.Section{differenceHead(r), fewest(otherSettings(r.Settings, r.Cells))}
	d.Add(changes(r, decisiveChanges)...)
	d.Add(alone(r, countedAlone)...)
	key := ""
	if slices.ContainsFunc(r.Cells, func(c difference.Cell) bool {
		return c.Metrics[c.Primary].Ratio != nil
	}) {
		key = "change: with the uncertainty of both runs; " + doubtKey + ". "
	}
	d.Add(section(nil, faint(key+"All figures, absolute ones too, and how they are judged: --details")))
	return d
}

// changes returns a section for each table of ratios that has rows, and one for each trace.
func changes(r *difference.Report,
	table func([]difference.Cell) document.Table) (out []document.Section) {
	for _, g := range r.Groups() {
		if t := table(g); len(t.Rows) > 0 {
			title := fmt.Sprintf("%s: ratio to %s", placeAndLoad(r, g), r.Baseline)
			out = append(out, section(document.Strongly(title), t))
		}
	}
	for _, x := range r.Traces {
		out = append(out, partChanges(x))
	}
	return out
}

// alone lists what only one run has, in the words of items.
func alone(r *difference.Report, items func([]difference.Lone) []string) []document.Section {
	return []document.Section{list(document.Skipped, "Only in the old run", items(r.OnlyOld)),
		list(document.Skipped, "Only in the new run", items(r.OnlyNew))}
}

// countedAlone returns a line for each reason.
func countedAlone(cells []difference.Lone) (items []string) {
	for _, g := range analysis.Grouped(cells, func(c difference.Lone) string { return c.Why }) {
		of := analysis.Distinct(g, func(c difference.Lone) string { return c.Label })
		if n := len(of) - maxNamed; n > 0 {
			of = append(of[:maxNamed:maxNamed], fmt.Sprintf("%d more", n))
		}
		items = append(items, fmt.Sprintf("%s of %s: %s", units.Plural(len(g), "row"),
			printable.List(of), g[0].Why))
	}
	return items
}

func differenceHead(r *difference.Report) document.Section {
	side := func(what string, s difference.Side) document.Paragraph {
		facts := []string{what + ": " + s.Name, "toll " + s.Environment.Tool,
			"Linux " + s.Environment.Kernel}
		if !s.Started.IsZero() {
			facts = append(facts, s.Started.UTC().Format(time.DateTime)+" UTC")
		}
		facts = append(facts, fmt.Sprintf("%s in %.0f s", units.Plural(s.Rounds, "round"), s.Elapsed))
		return plainFacts(strings.Join(facts, document.Facts))
	}
	out := section(nil, document.Paragraph{Text: document.Strongly(changedMost(r))},
		paragraph(0, verdictTally(r)), side("old", r.Old), side("new", r.New))
	if r.New.Started.Before(r.Old.Started) && !r.New.Started.IsZero() {
		out.Add(paragraph(0, fmt.Sprintf(
			"The new run is older than the old one: did you mean toll diff %s %s?",
			r.New.Name, r.Old.Name)))
	}
	if r.FailAt != nil {
		out.Add(failing(r))
	}
	if len(r.States) > 0 {
		out.Add(paragraph(0, "The machine was in another state: "+strings.Join(
			stateTexts(r), "; ")+". "+
			"Ratios depend on it, so that what looks better or worse there is unclear: measure both again, one soon after the other."))
	}
	return out
}

// changedMost says which ratios certainly changed, those that changed most first.
func changedMost(r *difference.Report) string {
	const most = 3
	var said []string
	judged := false
	for _, v := range []stats.Verdict{stats.Worse, stats.Better} {
		var found []changedRatio
		for _, c := range r.Cells {
			for _, metric := range difference.Metrics(c) {
				x := c.Metrics[metric].Ratio
				judged = judged || x != nil
				if x != nil && x.Verdict == v && !x.Varies() {
					found = append(found, changedRatio{c, metric, math.Abs(math.Log(x.Median)),
						signedPercent(x.Median, 0)})
				}
			}
		}
		slices.SortStableFunc(found, func(a, b changedRatio) int { return cmp.Compare(b.size, a.size) })
		var items []string
		for _, x := range found[:min(most, len(found))] {
			items = append(items, x.words(r))
		}
		if n := len(found) - most; n > 0 {
			items = append(items, fmt.Sprintf("%d more", n))
		}
		if len(items) > 0 {
			said = append(said, printable.Capital(string(v))+": "+strings.Join(items, "; ")+".")
		}
	}
	switch {
	case len(said) > 0:
		return strings.Join(said, " ")
	case judged:
		return "Nothing is certain to have changed."
	}
	return "There is nothing to compare."
}

type changedRatio struct {
	cell   difference.Cell
	metric string
	size   float64 // of the ratio's logarithm
	change string
}

// words returns "bridge, bulk throughput -25 %", with the place and the CPUs if there are several.
func (x changedRatio) words(r *difference.Report) string {
	from := ""
	if slices.ContainsFunc(r.Cells, func(o difference.Cell) bool { return o.From != x.cell.From }) {
		from = " from " + placeWords(x.cell.From)
	}
	return fmt.Sprintf("%s%s, %s %s%s %s %%", x.cell.Label, from, x.cell.Load, metricWord(x.metric),
		pinned(x.cell.Pin, comparedPins(r)), x.change)
}

func verdictTally(r *difference.Report) string {
	count, total := map[stats.Verdict]int{}, 0
	for _, c := range r.Cells {
		for _, m := range c.Metrics {
			switch {
			case m.Ratio == nil:
				continue
			case m.Ratio.Varies():
				count[analysis.Varying]++
			default:
				count[m.Ratio.Verdict]++
			}
			total++
		}
	}
	if total == 0 {
		return "The files have no ratio in common."
	}
	var parts []string
	for _, v := range []stats.Verdict{stats.Worse, stats.Better, stats.Same, stats.Unclear,
		analysis.Varying} {
		if count[v] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[v], v))
		}
	}
	return fmt.Sprintf("Of %s to %s: %s.", units.Plural(total, "ratio"), r.Baseline,
		strings.Join(parts, ", "))
}

func stateTexts(r *difference.Report) []string {
	var out []string
	pins := pinsOf(r.Cells, func(c difference.Cell) string { return c.Pin })
	for _, s := range r.States {
		by, unit := legible(s.Unit, s.New)
		out = append(out, fmt.Sprintf("from %s, %s%s: %s had %s, now %s %s", placeWords(s.From),
			s.Load, pinned(s.Pin, pins), s.Baseline,
			units.Digits(by*s.Old), units.Digits(by*s.New), unit))
	}
	return out
}

func failing(r *difference.Report) document.Paragraph {
	limit := fmt.Sprintf("%g %%", 100**r.FailAt)
	if len(r.Failing) == 0 && r.Unjudged(*r.FailAt) {
		p := paragraph(0,
			"Nothing could be judged: no ratio is known well enough to say whether it is worse by more than "+limit+".")
		p.Style = document.Doubtful
		return p
	}
	if len(r.Failing) == 0 {
		return paragraph(0, "None is certainly worse by more than "+limit+".")
	}
	var items []string
	for _, f := range r.Failing {
		items = append(items, fmt.Sprintf("%s from %s, %s %s", f.Label, placeWords(f.From), f.Load,
			metricWord(f.Metric)))
	}
	p := paragraph(0, "Certainly worse by more than "+limit+": "+strings.Join(items, "; ")+".")
	p.Style = document.Bad
	return p
}

func otherSettings(settings []difference.Setting, cells []difference.Cell) document.Section {
	items := []string{}
	labels := map[string]bool{}
	for _, c := range cells {
		labels[analysis.Label(c.Cell)] = true
	}
	for _, s := range settings {
		text := fmt.Sprintf("%s: %s → %s", s.What, orNone(s.Old), orNone(s.New))
		switch n := len(s.Cells); {
		case n == 0:
		case n == len(labels):
			text += " (on every path)"
		case n > maxNamed:
			text += fmt.Sprintf(" (on %d of %d paths)", n, len(labels))
		default:
			text += " (" + strings.Join(s.Cells, ", ") + ")"
		}
		items = append(items, text)
	}
	if len(items) == 0 {
		items = []string{"nothing recorded in the files: machine, load and paths are unchanged"}
	}
	return list(document.Notes, "What else differs", items)
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func comparedPins(r *difference.Report) []string {
	out := pinsOf(r.Cells, func(c difference.Cell) string { return c.Pin })
	for _, alone := range [][]difference.Lone{r.OnlyOld, r.OnlyNew} {
		out = append(out, pinsOf(alone, func(c difference.Lone) string { return c.Pin })...)
	}
	return out
}

func placeAndLoad(r *difference.Report, group []difference.Cell) string {
	c, on := group[0], ""
	if slices.ContainsFunc(r.Cells, func(o difference.Cell) bool { return o.On != c.On }) {
		on = " on " + c.On
	}
	at := servedAt(group, func(c difference.Cell) mode.Target { return c.To })
	return fmt.Sprintf("%s → %s%s, %s%s", printable.Capital(c.From.Words()), at, on, c.Load,
		pinned(c.Pin, comparedPins(r)))
}

// partChanges compares what the parts of traced trips add.
func partChanges(x difference.Traced) document.Section {
	s := document.Section{Title: document.Strongly(x.Label + " against " + x.Against +
		": what its parts add")}
	if x.Refused != "" {
		s.Add(document.Paragraph{Level: 1, Style: document.Bad,
			Text: document.Plainly(printable.Capital(x.Words))})
		return s
	}
	added := func(p *analysis.Price) document.Cell {
		if p == nil || p.N == 0 {
			return nothing
		}
		return priceCell(p.Value(), *p)
	}
	t := document.Table{Level: 1, Layouts: onlyGaps, Columns: []document.Column{
		texts("", "part"), figures("old", "µs"), figures("new", "µs"), figures("change", "µs")}}
	for i, p := range x.Parts {
		if p.Sum && slices.ContainsFunc(x.Parts[:i], func(o difference.Part) bool {
			return o.Name == p.Name
		}) {
			continue // the sum of a single row, which is already listed
		}
		row := document.Row{Cells: []document.Cell{{Text: p.Name}, added(p.Old), added(p.New),
			added(&p.Change)}}
		if row.Cells[3].Style = styleOf(p.Change.Verdict); p.Sum {
			row.Style = document.Strong
		}
		t.Rows = append(t.Rows, row)
	}
	s.Add(t)
	return s
}

func differenceLegend(r *difference.Report) string {
	text := ""
	if slices.ContainsFunc(r.Cells, func(c difference.Cell) bool {
		x := c.Metrics[c.Primary].Ratio
		return x != nil && x.Varies()
	}) {
		text = " varies: a run has a range instead of a ratio."
	}
	if len(r.Traces) > 0 {
		text += " For parts, change is the new figure minus the old one."
	}
	return fmt.Sprintf(
		"change: the new figure over the old one, with the uncertainty of both runs. Ratios to %s are judged, because both "+
			"sides of a ratio were measured at the same time. worse, better: at 99 %% confidence and beyond the noise of both controls; "+
			"same: the whole interval within %g %%; unclear: neither; %s.", r.Baseline, 100*r.Same, doubtKey) + text
}
