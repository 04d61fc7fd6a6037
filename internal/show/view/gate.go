package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/gate"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/sentence"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// Gate shows which conditions a results file meets.
func Gate(r *gate.Report) document.Document {
	sentence.FillGate(r)
	d := document.Document{Kind: document.AGate, JSON: r}
	facts := append([]string{r.Name}, machineFacts(r.Environment)...)
	d.Add(section(nil,
		plainFacts(strings.Join(append(facts, units.Plural(r.Rounds, "round")), document.Facts)),
		document.Paragraph{Text: document.Strongly(ruleTally(r))}))
	for _, x := range r.Rules {
		d.Add(rule(x))
		d.Conditions = append(d.Conditions, document.Condition{Text: x.Sentence,
			Holds: outcomeStyles[x.Outcome], Why: outcomeText(x)})
	}
	d.Add(section(nil, faint("A sentence is about every row that it matches. It holds or is violated if "+
		"that is true of the whole interval: 99 % by slices, 95 % for ratios by rounds, widened by the noise that the "+
		"control shows. Otherwise it is unclear.")))
	return d
}

func ruleTally(r *gate.Report) string {
	count := map[gate.Outcome]int{}
	for _, x := range r.Rules {
		count[x.Outcome]++
	}
	var parts []string
	for _, o := range gate.Outcomes() {
		if count[o] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[o], outcomeWord(o, count[o])))
		}
	}
	return fmt.Sprintf("Of %s: %s.", units.Plural(len(r.Rules), "sentence"), strings.Join(parts, ", "))
}

func outcomeWord(o gate.Outcome, n int) string {
	if o == gate.Holds && n != 1 {
		return "hold"
	}
	return string(o)
}

var outcomeStyles = map[gate.Outcome]document.Style{
	gate.Holds: document.Good, gate.Violated: document.Bad, gate.Missing: document.Bad,
	gate.Unclear: document.Doubtful}

func rule(x gate.Rule) document.Section {
	title := document.Text{{Text: string(x.Outcome), Style: outcomeStyles[x.Outcome]}}
	out := document.Section{Title: title.Then(": "+x.Sentence, document.Strong)}
	if len(x.Checks) == 0 {
		out.Add(paragraph(1, x.Why))
		return out
	}
	out.Add(checkTable(x.Checks))
	if whys := whysOf(x); len(whys) > 0 {
		out.Add(document.List{Topic: document.Notes, Items: whys, Level: 1})
	}
	return out
}

// whysOf returns the reasons for the outcomes of a sentence's checks.
func whysOf(x gate.Rule) (out []string) {
	if x.Why != "" {
		out = append(out, x.Why)
	}
	for _, c := range x.Checks {
		if c.Why != "" && !slices.Contains(out, c.Why) {
			out = append(out, c.Why)
		}
	}
	return out
}

// outcomeText returns the outcome of a sentence with the figures that do not hold, and the reasons.
func outcomeText(x gate.Rule) string {
	out := []string{string(x.Outcome)}
	for _, c := range x.Checks {
		if c.Outcome != gate.Holds && c.Median != nil {
			out = append(out, fmt.Sprintf("%s from %s %s: %s", c.Label, c.From, measuredBy(c),
				figureText(c, *c.Median)))
		}
	}
	return strings.Join(append(out, whysOf(x)...), "; ")
}

func checkTable(cs []gate.Check) document.Table {
	mode := texts("", "mode")
	mode.Cut = document.CutMiddle
	t := document.Table{Level: 1, Layouts: narrower, Columns: []document.Column{
		mode, texts("", "from"), texts("", "load"), texts("", "figure"),
		{Head: [2]string{"", "certainly in"}}, texts("", "outcome")}}
	for _, c := range cs {
		row := document.Row{Cells: append(document.Texts(
			c.Label, string(c.From), measuredBy(c)), nothing, nothing,
			document.Cell{Text: string(c.Outcome)}),
			Style: outcomeStyles[c.Outcome]}
		if c.Median != nil {
			row.Cells[3] = numberCell(figureText(c, *c.Median), *c.Median, c.Unit)
		}
		if c.Low != nil && c.High != nil {
			row.Cells[4] = document.Cell{Text: figureRange(c),
				Number: &document.Number{Value: *c.Median, Low: c.Low, High: c.High, Unit: c.Unit,
					Verdict: string(c.Outcome)}}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// measuredBy returns the check's load, and its CPU placement if the run has several.
func measuredBy(c gate.Check) string {
	if c.Pin == "" {
		return c.Load
	}
	return c.Load + ", " + analysis.PinWords(c.Pin)
}

func figureText(c gate.Check, x float64) string {
	if c.Unit == analysis.RatioUnit {
		return analysis.Percent(x) + " of " + c.Of
	}
	by, unit := legible(c.Unit, x)
	if unit == "1" {
		by, unit = percent, "%"
	}
	return units.Digits(by*x) + " " + unit
}

// figureRange returns the certain bounds of a figure, in the unit of its text.
func figureRange(c gate.Check) string {
	if c.Unit == analysis.RatioUnit {
		return strings.TrimSuffix(analysis.Percent(*c.Low), " %") + "–" + analysis.Percent(*c.High)
	}
	by, unit := legible(c.Unit, *c.Median)
	if unit == "1" {
		by = percent
	}
	return units.Digits(by**c.Low) + "–" + units.Digits(by**c.High)
}
