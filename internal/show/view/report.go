package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/chart"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/heads"
	"github.com/bridgetoll/bridgetoll/internal/show/numbers"
	"github.com/bridgetoll/bridgetoll/internal/show/sentence"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// Report shows everything that is known about a judged run.
func Report(r judge.Report) document.Document {
	d, base := reportDocument(r), told(r)
	if base.Answer != nil {
		d.Add(answerSection(base.Answer))
	}
	d.Add(viewOf(base).sections(r)...)
	return d
}

// told returns the part that all studies share, with its findings in words.
func told(r judge.Report) *analysis.Report {
	sentence.Fill(r)
	return r.Base()
}

func reportDocument(r judge.Report) document.Document {
	base := told(r)
	v := viewOf(base)
	return document.Document{Kind: document.AReport, JSON: r, Run: numbers.Run(base),
		Figures: v.figures(r),
		Page:    func() document.Page { return chart.Run(base, v.title, v.command, v.charts(r)) }}
}

func cellSections(r judge.Report) []document.Section {
	base := r.Base()
	out := []document.Section{runHead(base)}
	for _, g := range groups(base.Cells) {
		out = append(out, group(base, g))
	}
	return append(out, foot(base)...)
}

func groups(cells []analysis.Cell) [][]analysis.Cell {
	var out [][]analysis.Cell
	for i, c := range cells {
		if i == 0 || !sameGroup(c, cells[i-1]) {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], c)
	}
	return out
}

func sameGroup(a, b analysis.Cell) bool {
	return a.From == b.From && a.Load == b.Load && a.On == b.On && a.Pin == b.Pin
}

var backends = map[string]string{
	sample.Lab: "lab: private namespaces, nothing on this machine is touched",
	"endpoint": "endpoints: external, not started by toll",
}

func backend(r *analysis.Report, on string) string {
	for _, c := range r.Cells {
		if e := c.Facts["engine"]; c.On == on && e != "" {
			out := on + ": " + e + " on this machine, with containers of toll's own"
			if c.Facts["rootless"] != "" {
				out += "; from the machine only native and published ports are dialled there, others in RootlessKit's network"
			} else if strings.HasPrefix(e, "rootless Podman") {
				out += "; from the machine bridges are dialled in Podman's own network"
			}
			return out
		}
		if s := c.Facts["server node"]; c.On == on && s != "" {
			return on + ": server on " + s + ", client on " + c.Facts["client node"]
		}
	}
	if set := ofMachine(r.Cells); on == sample.Lab && set != "" {
		return "lab: private namespaces; of this machine only " + set + " set, during visits, and restored"
	}
	if text, ok := backends[on]; ok {
		return text
	}
	return on
}

// ofMachine names what the cells' tunes set of the whole machine, with a verb.
func ofMachine(cells []analysis.Cell) string {
	limits := slices.ContainsFunc(cells, func(c analysis.Cell) bool { return c.Tune.Limits() })
	switch {
	case !slices.ContainsFunc(cells, func(c analysis.Cell) bool { return c.Tune.OfMachine() }):
		return ""
	case !limits:
		return "how its CPUs idle was"
	case slices.ContainsFunc(cells, func(c analysis.Cell) bool {
		return c.Tune.OfMachine() && !c.Tune.Limits()
	}):
		return "its limits of socket buffers and how its CPUs idle were"
	}
	return "its limits of socket buffers were"
}

// sayOn returns " on BACKEND", or "" unless the run has several backends.
func sayOn(r *analysis.Report, on string) string {
	if len(analysis.Backends(r.Cells)) < 2 {
		return ""
	}
	return " on " + on
}

func runHead(r *analysis.Report) document.Section {
	return headOf(r, "", runText(r))
}

func runText(r *analysis.Report) string { return ranText(r) + noise(r) }

func ranText(r *analysis.Report) string {
	return fmt.Sprintf("%s in %.0f s, %s", units.Plural(r.Plan.Rounds, "round"), r.Plan.Elapsed,
		endedBy(r.Plan))
}

func headOf(r *analysis.Report, what, run string) document.Section {
	facts := placeFacts(r)
	if what != "" {
		facts = append(facts, what)
	}
	facts = append(facts, fmt.Sprintf("seed %d", r.Plan.Seed))
	return section(nil, plainFacts(strings.Join(facts, document.Facts)), plainFacts(run))
}

func placeFacts(r *analysis.Report) []string {
	facts := machineFacts(r.Environment)
	for _, on := range slices.Sorted(slices.Values(analysis.Backends(r.Cells))) {
		facts = append(facts, backend(r, on))
	}
	if r.Plan.Wire != nil {
		facts = append(facts, "wire "+r.Plan.Wire.String())
	}
	return facts
}

func paragraph(level int, text string) document.Paragraph {
	return document.Paragraph{Level: level, Text: document.Plainly(text)}
}

func faint(text string) document.Paragraph {
	return document.Paragraph{Level: 1, Text: document.Plainly(text), Style: document.Faint}
}

func plainFacts(text string) document.Paragraph {
	return document.Paragraph{Text: document.Plainly(text), Break: document.Facts}
}

func faintFacts(text string) document.Paragraph {
	p := faint(text)
	p.Break = document.Facts
	return p
}

func section(title document.Text, blocks ...document.Block) document.Section {
	return document.Section{Title: title, Blocks: blocks}
}

// list returns a section with the items, or an empty section without items.
func list(topic document.Topic, title string, items []string) document.Section {
	if len(items) == 0 {
		return document.Section{}
	}
	return section(document.Strongly(title), document.List{Topic: topic, Items: items, Level: 1})
}

// without returns the item of a list for something missing. remedy may be "".
func without(what, why, remedy string) string {
	if remedy != "" {
		why += "; hint: " + remedy
	}
	return what + ": " + why
}

func machineFacts(e sample.Environment) []string {
	facts := []string{"toll " + e.Tool, "Linux " + e.Kernel,
		fmt.Sprintf("%d × %s", e.CPUs, e.CPUModel)}
	if e.Virtualization != "" {
		facts = append(facts, e.Virtualization)
	}
	return facts
}

func endedBy(p analysis.Plan) string {
	switch p.EndedBy {
	case sample.EndedByPrecision:
		return fmt.Sprintf("ended by precision (%g %%)", 100*p.Precision)
	case sample.EndedByBudget:
		const late = 1.25
		if p.Elapsed > late*p.Budget {
			return "past the budget of " + units.Seconds(p.Budget) + ", to complete what was running"
		}
		return "ended by the budget of " + units.Seconds(p.Budget)
	case sample.EndedByRounds:
		return "as many as asked for"
	case sample.EndedByBusy:
		return "ended early because the machine was too busy"
	case sample.EndedBySize:
		return "ended because a results file holds no more sweeps"
	case sample.EndedCutShort:
		return "cut short"
	case sample.EndedByFailure:
		return "cut short by failures"
	case sample.EndedByInterrupt:
		return "interrupted"
	}
	return "ended by " + p.EndedBy
}

// noise returns the noise floors of ratios that are taken by rounds, in words: the widest of all
// placements for each load. Verdicts by slices do not use them.
func noise(r *analysis.Report) string {
	widest := map[string]float64{}
	var loads []string
	for _, g := range r.Control.Groups {
		l := r.Plan.Loads.Of(g.Load)
		f, ok := g.Floor[analysis.PrimaryOf(l, g.Shape)]
		if !ok || l.Slice > 0 {
			continue
		}
		if _, seen := widest[g.Load]; !seen {
			loads = append(loads, g.Load)
		}
		widest[g.Load] = max(widest[g.Load], f)
	}
	if len(loads) == 0 {
		return ""
	}
	parts := make([]string, len(loads))
	for i, l := range loads {
		parts[i] = fmt.Sprintf("%s ± %.1f %%", l, 100*widest[l])
	}
	upTo := ""
	if len(r.Control.Groups) > len(loads) { // each group has its own noise floor
		upTo = "up to "
	}
	return fmt.Sprintf(" · noise floor %s%s (control: %s against itself)", upTo,
		strings.Join(parts, ", "), r.Control.Mode)
}

func group(r *analysis.Report, cells []analysis.Cell) document.Section {
	c, v := cells[0], viewOf(r)
	t := tableOf(columnsFor(r, cells), cells, v.layouts)
	t.Fit = "cells"
	for i := range t.Rows {
		t.Rows[i].Above = v.above(cells, i)
	}
	s := section(document.Strongly(v.cellTitle(r, cells)), t)
	if more := heads.Of(r.Plan.Loads.Of(c.Load)).More; len(more) > 0 && !v.single {
		cols := withoutQuiet(worthShowing(loadColumns(r, c.Load, more), cells), cells)
		if len(cols) > 0 {
			t := tableOf(append([]column{columnsOf(r, c.Load)[0]}, cols...), cells, onlyGaps)
			t.Split = document.SplitEven
			s.Add(t)
		}
	}
	if t, ok := evidenceTable(cells); ok {
		s.Add(t)
	}
	if t, ok := allCPUs(cells); ok && v.kinds {
		s.Add(t)
	}
	return s
}

func foot(r *analysis.Report) []document.Section {
	var said document.Section
	if len(r.Findings) > 0 {
		said.Add(document.List{Topic: document.Findings, Items: r.Findings, Level: 1})
	}
	for _, f := range []struct {
		key, format string
		long        bool
	}{
		{"proxy", "The proxy is %s.", false},
		{"datapath", "Open vSwitch's datapath: %s.", false},
		{"offloads", "Offloads: %s.", true},
		{"rules", "Rules: %s.", false},
	} {
		for _, fact := range factsOf(r, f.key) {
			switch text := fmt.Sprintf(f.format, fact); {
			case f.long:
				said.Add(paragraph(1, text))
			default:
				said.Add(faint(text))
			}
		}
	}
	said.Add(proxyMemory(r.Cells)...)
	if r.Plan.ManyPins() {
		said.Add(faint(r.Pinned()))
	}
	if text := r.Together(); text != "" {
		said.Add(faint(text))
	}
	if v := viewOf(r); len(r.Cells) > 0 {
		if v.notes != "" {
			said.Add(paragraph(1, v.notes))
		}
		said.Add(faint(v.legend(r)))
	}
	out := []document.Section{said, cardSection(r.Environment.Cards)}
	return append(append(out, absent(r)...), warnings(r)...)
}

// factsOf returns the values of a fact. If there are several, each names its modes, and placements
// of a mode that has more than one value.
func factsOf(r *analysis.Report, key string) []string {
	cells := slices.DeleteFunc(slices.Clone(r.Cells), func(c analysis.Cell) bool {
		return c.Facts[key] == ""
	})
	out := analysis.Distinct(cells, func(c analysis.Cell) string { return c.Facts[key] })
	if len(out) < 2 {
		return out
	}
	for i, fact := range out {
		own := slices.DeleteFunc(slices.Clone(cells), func(c analysis.Cell) bool {
			return c.Facts[key] != fact
		})
		out[i] += ", with " + printable.List(analysis.Distinct(own, func(c analysis.Cell) string {
			name := string(c.Mode) + sayOn(r, c.On)
			if slices.ContainsFunc(cells, func(o analysis.Cell) bool {
				return o.Mode == c.Mode && o.On == c.On && o.Facts[key] != fact
			}) {
				name += " from " + placeWords(c.From)
			}
			return name
		}))
	}
	return out
}

func proxyMemory(cells []analysis.Cell) []document.Block {
	var most *analysis.ProxyMemory
	for _, c := range cells {
		if m := c.Memory; m != nil && (most == nil || m.Connections > most.Connections) {
			most = m
		}
	}
	if most == nil {
		return nil
	}
	text := fmt.Sprintf("The proxy takes %s of memory for its port, and %s with %s",
		mebibytes(most.Port), mebibytes(most.Loaded), units.Plural(most.Connections, "connection"))
	if most.Per1000 > 0 {
		text += fmt.Sprintf(": %s per 1,000", mebibytes(most.Per1000))
	}
	return []document.Block{faint(text + ".")}
}

func mebibytes(n int64) string { return units.Digits(float64(n)/(1<<20)) + " MiB" }

// absent lists cells without a result. Those with the same reason are listed together.
func absent(r *analysis.Report) []document.Section {
	var out []document.Section
	switch {
	case len(r.Failed) > 1 && len(r.Cells) == 0 && allFailedBy(r.Failed[0], r.Failed):
		out = append(out, list(document.Failed, "Failed", []string{fmt.Sprintf("all %d rows: %s",
			len(r.Failed), r.Failed[0].Why())}))
	case len(r.Failed) > 0:
		var why causes
		for _, f := range r.Failed {
			text := fmt.Sprintf(" from %s, %s%s: %s", f.From.Words(), f.Load, r.Plan.SayPin(f.Pin),
				f.Why())
			why.add(analysis.RowName(f.Cell)+sayOn(r, f.On), text)
		}
		items := why.items(func(names []string) string { return strings.Join(names, ", ") })
		out = append(out, list(document.Failed, "Failed", items))
	}
	if len(r.Skipped) > 0 {
		items := NotMeasured(r.Skipped, func(on string) string {
			return strings.TrimPrefix(sayOn(r, on), " ")
		})
		out = append(out, list(document.Skipped, "Not measured here", items))
	}
	return out
}

// allFailedBy reports whether all failed for the same reason as f.
func allFailedBy(f analysis.Failed, all []analysis.Failed) bool {
	return !slices.ContainsFunc(all, func(o analysis.Failed) bool { return o.Why() != f.Why() })
}
