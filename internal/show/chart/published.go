package chart

import (
	"fmt"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/published"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// Published returns for each study its own charts and, for each table and metric, charts of the
// ratios to the baseline and to the smallest crowd.
func Published(r *published.Report) document.Page {
	return document.Page{Title: "Published studies, and this machine", Command: "toll published",
		Groups: publishedGroups(r)}
}

func publishedGroups(r *published.Report) []document.ChartGroup {
	var out []document.ChartGroup
	measured := len(r.Files) > 0
	for _, s := range r.Studies {
		var all charts
		for _, part := range analysis.Distinct(s.Rows, partOf) {
			all.add(crowdChart(s, part, measured))
			all.add(figureChart(s, part, measured))
			all.add(publishedChart(s, part, false, measured))
			all.add(publishedChart(s, part, true, measured))
		}
		out = all.under(s.Title, out)
	}
	return out
}

// crowdChart draws a table as its author did, with a line for each mode over the clients, and this
// machine's lines next to them. ok is false for other tables.
func crowdChart(s published.Result, table string, measured bool) (c document.Chart, ok bool) {
	var spec growths
	var rows [][]string
	for _, row := range s.Rows {
		if row.Table != table || table == "" {
			continue
		}
		unit := row.In()
		spec.Axis = unit.Name
		spec.add(row.Mode+", published", growthPoint{Shape: row.Label, Value: row.Value})
		entry := []string{publishedName(row), row.Printed, "", "", ""}
		if h := row.Here; h != nil {
			p := growthPoint{Shape: row.Label, Value: fourDigits(h.Median * unit.By)}
			entry[2] = threeDigits(h.Median * unit.By)
			if h.N > 1 {
				p.Low, p.High = ends(fourDigits(h.Low*unit.By), fourDigits(h.High*unit.By))
				entry[3], entry[4] = threeDigits(h.Low*unit.By), threeDigits(h.High*unit.By)
			}
			spec.add(row.Mode+", here", p)
		}
		rows = append(rows, entry)
	}
	heads := []string{"what, " + spec.Axis, "published", "here", "from", "to"}
	if !measured {
		heads = heads[:2]
		for i := range rows {
			rows[i] = rows[i][:len(heads)]
		}
	}
	title, across, _ := strings.Cut(table, "; ")
	spec.Across = title
	return document.Chart{Kind: "scaling", Title: printable.Capital(across) + ": " + title,
		How:  "The study's figures, and this machine's next to them.",
		Spec: spec, Table: tableOf(rows, heads...)}, len(spec.Shapes) > 1
}

// figureChart draws a study's figures as bars, and this machine's below them. ok is false for
// tables by the number of clients, and with fewer than two bars.
func figureChart(s published.Result, part string, measured bool) (c document.Chart, ok bool) {
	spec := stacks{Parts: []string{"published", "here"}, Colors: "part"}
	var rows [][]string
	add := func(label, text string, kind int, value float64) {
		row := stackRow{Label: label, Values: make([]float64, len(spec.Parts)), Text: text}
		row.Values[kind] = fourDigits(value)
		spec.Rows = append(spec.Rows, row)
	}
	for _, row := range s.Rows {
		if row.Table != "" || partOf(row) != part || row.IsRatio() {
			continue
		}
		unit := row.In()
		spec.Axis = unit.Name
		label := publishedName(row)
		if row.Placing() != "" {
			label += ", " + row.Placing()
		}
		entry := []string{label, row.Printed, ""}
		add(label, row.Printed+" published", 0, row.Value)
		if h := row.Here; h != nil {
			entry[2] = h.Text(unit.By)
			add(label+", here", entry[2], 1, h.Median*unit.By)
		}
		rows = append(rows, entry)
	}
	heads := []string{"what, " + spec.Axis, "published", "here"}
	if !measured {
		heads, spec.Parts = heads[:2], spec.Parts[:1]
		for i := range rows {
			rows[i], spec.Rows[i].Values = rows[i][:len(heads)], spec.Rows[i].Values[:1]
		}
	}
	what, _, _ := strings.Cut(part, ",")
	return document.Chart{Kind: "stack", Title: printable.Capital(what) + ", " + spec.Axis,
		How:  "The study's figures, and this machine's below them. Only ratios of different machines can be compared.",
		Spec: spec, Table: tableOf(rows, heads...)}, len(spec.Rows) > 1
}

// publishedChart draws published ratios as diamonds and this machine's as dots with intervals. ok
// is false if there are fewer than two.
func publishedChart(s published.Result, part string, smallest, measured bool) (c document.Chart,
	ok bool) {
	one, to := 1.0, s.Baseline
	spec := intervals{Line: &one, Rows: []intervalRow{}, Beside: "published"}
	var rows [][]string
	for _, row := range s.Rows {
		if partOf(row) != part {
			continue
		}
		for _, x := range row.Ratios {
			if x.Smallest != smallest || row.Table != "" && !smallest &&
				s.Rows[x.To].Label != row.Label {
				continue
			}
			was, label := x.Published, publishedName(row)
			switch base := s.Rows[x.To].Mode; {
			case row.Table != "":
				to = base
			case base != to:
				label += ", to " + base
			}
			out := intervalRow{Label: label, Value: was, Beside: &was,
				Text: analysis.Percent(was) + " published"}
			entry := []string{out.Label, analysis.Percent(was), "", ""}
			switch m := x.Measured; {
			case m != nil:
				out.Value, out.Verdict = m.Median, string(x.Verdict)
				out.Text = m.String() + " " + out.Verdict
				entry[2], entry[3] = m.String(), out.Verdict
				if m.N > 1 {
					out.Low, out.High = &m.Low, &m.High
				}
			case measured:
				out.Text = analysis.Percent(was) + ", not measured"
				entry[3] = string(published.NotMeasured)
			}
			spec.Rows, rows = append(spec.Rows, out), append(rows, entry)
		}
	}
	if smallest {
		to = "the first line of the same mode"
	}
	spec.Axis = "ratio to " + to
	title := printable.Capital(part) + ": ratios to " + to
	how := "Each diamond is a ratio to " + to + " that the study published."
	heads := []string{"what", "published", "here", "verdict"}
	if measured {
		how += " Each dot is the same ratio on this machine, the bar its 95 % interval: only ratios of different machines can be compared."
	} else {
		heads = heads[:2]
		for i := range rows {
			rows[i] = rows[i][:len(heads)]
		}
	}
	spec.cut()
	return document.Chart{Kind: "interval", Title: title, How: how + spec.cutNote(), Spec: spec,
		Table: tableOf(rows, heads...)}, len(rows) > 1
}

func partOf(r published.Line) string {
	if r.Table != "" {
		return r.Table
	}
	return r.What()
}

func publishedName(r published.Line) string {
	switch {
	case r.Table != "":
		return r.Mode + ", " + r.Label
	case r.Cell == nil:
		return r.Mode + ", " + r.Placement
	}
	return fmt.Sprintf("%s from %s", r.Cell.Mode, r.Cell.From)
}
