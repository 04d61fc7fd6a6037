package show

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/published"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// Published is the document of the published beside the measured.
func Published(r *published.Report) document.Document {
	d := document.Document{Kind: document.AComparison, Value: r, Sections: []document.Section{answerSection(&r.Answer), measuredFiles(r)}}
	for _, s := range r.Studies {
		d.Sections = append(d.Sections, study(s, len(r.Files) > 0)...)
	}
	d.Sections = append(d.Sections, publishedFoot(r)...)
	return d
}

func measuredFiles(r *published.Report) (out document.Section) {
	for _, f := range r.Files {
		facts := machineFacts(f.Environment)
		facts[0] = f.Name + ": " + facts[0]
		if f.Wire != nil {
			facts = append(facts, "wire "+f.Wire.String())
		}
		out.Add(paragraph(0, strings.Join(append(facts, plural(f.Rounds, "round")), document.Facts), document.Facts))
	}
	return out
}

// study is a study's sections: what it is, its tables, what it found, and how to measure it.
func study(s published.Result, measured bool) []document.Section {
	out := []document.Section{{Title: document.Strongly(s.Name).Then(" · "+s.Year, document.Plain),
		Blocks: []document.Block{paragraph(1, s.Title, document.Words), paragraph(1, s.URL, document.Words), paragraph(1, s.Setup+".", document.Words)}}}
	if s.Rows[0].Table == "" {
		out = append(out, document.Section{Title: document.Plainly("Ratios to " + s.Baseline), Level: 1,
			Blocks: []document.Block{publishedTable(s, measured)}})
	} else {
		out = append(out, publishedTables(s, measured)...)
	}
	var items []string
	for _, f := range s.Findings {
		text := f.Text
		if measured {
			text += ": " + tally(f)
		}
		items = append(items, text)
	}
	out = append(out, document.Section{Title: document.Plainly("Findings"), Level: 1,
		Blocks: []document.Block{document.List{Topic: document.Findings, Items: items, Level: 2}}})
	return append(append(out, notes(s)...), toMeasure(s, measured)...)
}

// tally says how many of a finding's ratios have each verdict: "holds 2,
// unclear 1 of 3 ratios".
func tally(f published.Finding) string {
	total := 0
	var parts []string
	for _, v := range published.Verdicts() {
		n := f.Verdicts[v]
		total += n
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", v, n))
		}
	}
	if total == 1 {
		return strings.TrimSuffix(parts[0], " 1")
	}
	return fmt.Sprintf("%s of %d ratios", strings.Join(parts, ", "), total)
}

// notes are the data's own, why rows have no cell or no ratio, and what differs from the
// study's conditions.
func notes(s published.Result) []document.Section {
	var own, ours []string
	for _, r := range s.Rows {
		if _, words, ok := strings.Cut(r.Unit, asPrinted); ok {
			own = appendNew(own, shortUnit(r.Unit)+asPrinted+words)
		}
		if r.Table == "" { // a table's notes name its columns
			own = appendNew(own, r.Note)
		}
		if r.WhyNot != "" {
			ours = appendNew(ours, r.WhyNot)
		}
		for _, x := range r.Ratios {
			ours = appendNew(ours, x.Why)
		}
	}
	ours = append(ours, s.Notes...)
	if len(own) > 0 {
		ours = append([]string{"its own: " + strings.Join(own, "; ")}, ours...)
	}
	if len(ours) == 0 {
		return nil
	}
	return []document.Section{{Title: document.Plainly("Notes"), Level: 1, Close: true,
		Blocks: []document.Block{document.List{Topic: document.Notes, Items: ours, Level: 2}}}}
}

// appendNew appends text if nothing of list says it already.
func appendNew(list []string, text string) []string {
	if text == "" || slices.ContainsFunc(list, func(have string) bool { return strings.Contains(have, text) }) {
		return list
	}
	return append(list, text)
}

// toMeasure are the commands that measure the study's cells; with measured,
// those that would measure what is missing.
func toMeasure(s published.Result, measured bool) []document.Section {
	out := document.Section{Title: document.Plainly("To measure it here:"), Level: 1}
	if measured {
		out.Title = document.Plainly("To measure what is missing:")
	}
	for _, c := range s.Commands {
		if !measured || c.Missing > 0 {
			out.Add(document.Command{Line: c.Command})
		}
	}
	if len(out.Blocks) == 0 {
		return nil
	}
	return []document.Section{out}
}

func publishedFoot(r *published.Report) []document.Section {
	if len(r.Files) == 0 {
		return []document.Section{{Blocks: []document.Block{
			paragraph(1, "toll published --against FILE puts what such a run measured beside these ratios.", document.Words)}}}
	}
	out := []document.Section{{Blocks: []document.Block{
		paragraph(1, "holds: the same direction, or no difference in both; gone: a difference that is none any more; "+
			"reversed: the other direction; new: a difference where none was published (at most 5 %); unclear: too few rounds "+
			"or too much noise to tell.", document.Words),
		faint("Measured ratios are taken round by round; their intervals are of 95 %.", document.Never),
	}}}
	var items []string
	for _, f := range r.Files {
		for _, w := range f.Warnings {
			items = append(items, f.Name+": "+w.Text)
		}
	}
	if len(items) > 0 {
		out = append(out, list(document.Warnings, "Warnings", items))
	}
	return out
}

// publishedTable lays a study out with a line for each row.
func publishedTable(s published.Result, measured bool) document.Table {
	t := document.Table{Level: 1, Columns: []document.Column{texts("", "mode"), texts("", "what"),
		figures("", "published"), figures("", "ratio")}}
	if measured {
		t.Columns = append(t.Columns, texts("", "measured"), texts("", ""))
	}
	base := map[int]bool{} // rows that others are held against
	for _, r := range s.Rows {
		for _, x := range r.Ratios {
			base[x.To] = true
		}
	}
	for i, r := range s.Rows {
		if r.Metric == "ratio_as_printed" { // the quotient is beside the row that it is of
			continue
		}
		cells := append(document.Texts(rowName(r), r.What()), printed(r), document.Cell{})
		if measured {
			cells = append(cells, document.Cell{}, document.Cell{})
		}
		if len(r.Ratios) == 0 && base[i] {
			cells[3] = own("1", 1, analysis.RatioUnit)
		}
		for _, x := range r.Ratios {
			cells[3] = own(ratioText(x.Published), x.Published, analysis.RatioUnit)
			if measured {
				cells[4], cells[5] = measuredCell(x), document.Cell{Text: string(x.Verdict)}
			}
		}
		t.Rows = append(t.Rows, document.Row{Cells: cells})
	}
	sortPublished(t.Rows)
	return t
}

// sortPublished sorts rows by placement and metric, in the order of the data; the baseline first.
func sortPublished(rows []document.Row) {
	order := map[string]int{}
	for _, row := range rows {
		for _, key := range []string{from(row), row.Cells[1].Text} {
			if order[key] == 0 {
				order[key] = len(order) + 1
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b document.Row) int {
		return cmp.Or(cmp.Compare(order[from(a)], order[from(b)]), cmp.Compare(order[a.Cells[1].Text], order[b.Cells[1].Text]),
			cmp.Compare(first(a), first(b)))
	})
}

// from is the placement in a row's name.
func from(row document.Row) string {
	_, f, _ := strings.Cut(row.Cells[0].Text, " from ")
	return f
}

// first is less for a baseline.
func first(row document.Row) int {
	if row.Cells[3].Text == "1" {
		return 0
	}
	return 1
}

// printed is a row's value with its unit.
func printed(r published.Line) document.Cell {
	text := r.Printed + " " + shortUnit(r.Unit)
	if to, ok := strings.CutPrefix(r.Metric, "cpu_adjusted_ratio_vs_"); ok {
		text = r.Printed + " × " + to
	} else if r.Metric == "cpu_idle" {
		text = r.Printed + " % idle"
	}
	return own(text, r.Value, shortUnit(r.Unit))
}

// ratioText is a ratio or its half-width; small ones have a digit more.
func ratioText(x float64) string {
	if 0 < x && x < 0.0095 {
		return fmt.Sprintf("%.3f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

func measuredCell(x published.Ratio) document.Cell {
	if x.Measured == nil {
		return nothing
	}
	return ratioCell(x.Measured.String(), *x.Measured)
}

// rowName is the cell of ours that a row corresponds to, or else the row's own
// words.
func rowName(r published.Line) string {
	if r.Cell == nil {
		return r.Mode + ", " + r.Placement
	}
	return r.Cell.Mode + " from " + r.Cell.From
}

// asPrinted is where the data says something about a unit.
const asPrinted = " as printed"

// shortUnit is a unit without what is said about it.
func shortUnit(u string) string {
	u, _, _ = strings.Cut(u, asPrinted)
	return u
}
