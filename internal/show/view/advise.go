package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/advise"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/lever"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/chart"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/sentence"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

func adviseView(v *view) {
	v.title, v.command = "What makes a network mode faster", "toll advise"
	v.sections = of(func(r *advise.Report) []document.Section { return adviseSections(r, true) })
	v.summary = of(func(r *advise.Report) []document.Section { return adviseSections(r, false) })
	v.charts = onBase(chart.Searches)
	v.hides = "thin-tail"
}

func adviseSections(r *advise.Report, details bool) []document.Section {
	base := r.Base()
	var out []document.Section
	if details {
		out = append(out, runHead(base))
	}
	several := len(r.Advice) > 1
	for _, a := range r.Advice {
		if t := rankedTable(a); len(t.Rows) > 0 {
			title := document.Strongly("What was tried"+withMode(a, several)).Then(
				", in % of the value without it; the best first", document.Faint)
			out = append(out, section(title, t))
		}
	}
	for _, l := range recommended(r.Advice) {
		out = append(out, permanentSection(l))
	}
	for _, a := range r.Advice {
		if details {
			out = append(out, effectSections(a, base, withMode(a, several))...)
		}
		out = append(out, unavailable(a, withMode(a, several)))
	}
	if details {
		said := section(nil, faint(adviseLegend+lossless(base)))
		for _, text := range elsewhere(r.Advice) {
			said.Add(faint(text))
		}
		return append(append(out, said), foot(withoutSkipped(base))...)
	}
	if w := warnings(base); len(w) > 0 {
		out = append(out, fewest(w[0]))
	}
	last := section(nil, faint(analysis.Witnessed(base)))
	for _, text := range elsewhere(r.Advice) {
		last.Add(faint(text))
	}
	last.Add(faint(adviseLegend+lossless(base)), faintFacts(provenance(base)))
	return append(out, last)
}

const adviseLegend = "A lever is recommended if it was better both times (alone and when measured again) and never worse. " +
	"+ is always a gain. ?: unclear."

// lossless returns a sentence, after a space, on the links between the lab's machines, or "" if
// nothing was measured over one.
func lossless(r *analysis.Report) string {
	for _, c := range r.Cells {
		if c.On == sample.Lab && slices.Contains(c.Hops, string(mode.HopWire)) {
			return " Links between machines lose nothing here: what is measured over them holds for " +
				"networks without loss."
		}
	}
	return ""
}

func withMode(a advise.Advice, several bool) string {
	if !several {
		return ""
	}
	return " with " + a.Mode
}

func recommended(all []advise.Advice) (out []advise.Lever) {
	for _, a := range all {
		for _, l := range a.Levers {
			if l.Verdict == advise.Recommended &&
				!slices.ContainsFunc(out, func(o advise.Lever) bool {
					return o.Name == l.Name
				}) {
				out = append(out, l)
			}
		}
	}
	return out
}

// elsewhere returns a sentence for each mode whose containers were also measured over another mode,
// from placements that cannot reach the mode.
func elsewhere(all []advise.Advice) (out []string) {
	for _, a := range all {
		if a.Elsewhere != "" {
			out = append(out, fmt.Sprintf(
				"From placements that cannot reach %s, toll measured its containers over %s, with the same settings.", a.Mode, a.Elsewhere))
		}
	}
	return out
}

func withoutSkipped(r *analysis.Report) *analysis.Report {
	out := *r
	out.Skipped = nil
	return &out
}

func rankedTable(a advise.Advice) document.Table {
	where := document.Column{Head: [2]string{"", "where"}, Cut: document.CutEnd, Least: leastWhere}
	t := document.Table{Level: 1, Fit: "levers", Columns: []document.Column{
		texts("", "lever"), texts("", "verdict"), texts("most", "gain"), where,
		texts("most", "loss"), where,
		{Head: [2]string{"CPU", "%"}, Spare: true},
	}, Layouts: []document.Layout{{}, {Short: true}, {Short: true, Tight: true},
		{Short: true, Tight: true, Lean: true}}}
	for _, l := range a.Levers {
		best, ok := l.Best()
		if !ok {
			continue
		}
		row := document.Row{Cells: []document.Cell{
			{Text: l.Name}, {Text: string(l.Verdict), Style: leverStyle(l.Verdict)},
			effectCell(best), whereOf(best), nothing, nothing, nothing}}
		if worst, _ := l.Worst(); worst != best && worst.Ratio.Verdict != stats.Better {
			row.Cells[4], row.Cells[5] = effectCell(worst), whereOf(worst)
		}
		if best.CPU != nil {
			row.Cells[6] = document.Cell{Text: fmt.Sprintf("%+.0f", percent*(best.CPU.Median-1)),
				Number: &document.Number{Value: best.CPU.Median, Unit: analysis.RatioUnit}}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func leverStyle(v advise.Verdict) document.Style {
	switch v {
	case advise.Recommended:
		return document.Good
	case advise.AtAPrice, advise.Harmful, advise.Broken:
		return document.Bad
	case advise.NotSure, advise.NotAgain:
		return document.Doubtful
	}
	return document.Plain
}

// effectCell returns the cell of a gain in %, negative for a loss.
func effectCell(e advise.Effect) document.Cell {
	x := e.Ratio
	change, half := x.Median-1, x.HalfWidth()
	if !e.Higher { // less time is a gain
		change = -change
	}
	decimals := 0
	if half < oneDecimal && x.N > 1 {
		decimals = 1
	}
	scale := math.Pow10(decimals)
	change = math.Round(percent*change*scale)/scale + 0 // 0, not -0
	text := fmt.Sprintf("%+.*f ±%.*f", decimals, change, decimals, percent*half)
	switch {
	case x.N < 2:
		text = fmt.Sprintf("%+.0f ±?", change)
	case tellsNothing(x.Verdict, false, half, 1):
		text = "?"
	case x.Verdict == stats.Unclear:
		text += " ?"
	}
	return document.Cell{Text: text, Style: styleOf(x.Verdict), Number: ratioCell("", x).Number}
}

// tellsNothing reports whether the interval of an unclear figure is so wide, for a quantity as large
// as level, that it tells the reader nothing.
func tellsNothing(v stats.Verdict, varies bool, half, level float64) bool {
	const hopeless = 0.5
	return v == stats.Unclear && !varies && half > hopeless*level
}

// oneDecimal is the half width of an interval below which a change is shown with a decimal.
const oneDecimal = 0.005

func whereOf(e advise.Effect) document.Cell {
	at := cmp.Or(e.To, e.From)
	return document.Cell{Text: e.Load + ", " + at,
		Short: strings.TrimPrefix(e.Load, "bulk-") + " " + at}
}

const leastWhere = 8 // columns

func permanentSection(l advise.Lever) document.Section {
	s := document.Section{Title: document.Strongly("To keep " + l.Name)}
	for _, p := range l.Permanent {
		s.Add(paragraph(1, p.Where+":"))
		for _, line := range p.Lines {
			s.Add(document.Command{Line: line})
		}
	}
	gives := "It gives up nothing known."
	if l.GivesUp != "" {
		gives = "It gives up: " + l.GivesUp + "."
	}
	untried := " Not tried on this machine's own network."
	if known, _ := lever.Find(l.Name); known.Reaches != "" {
		untried = " Not tried on this machine's own network: sudo toll ports --try '" + known.Reaches +
			"' says who would gain or lose a port."
	}
	s.Add(paragraph(1, gives+untried))
	return s
}

func unavailable(a advise.Advice, with string) document.Section {
	var why causes
	for _, l := range a.Levers {
		if l.Reason != "" {
			why.add(l.Name, without("", l.Reason, l.Remedy))
		}
	}
	return list(document.Skipped, "Not tried"+with+", or failed", why.items(printable.List))
}

func effectSections(a advise.Advice, base *analysis.Report, with string) []document.Section {
	var out []document.Section
	for _, kind := range []struct {
		title string
		of    func(advise.Lever) []advise.Effect
	}{
		{"Alone, against " + a.Mode + " as it is", func(l advise.Lever) []advise.Effect {
			return l.Alone
		}},
		{"Again" + with + ", on top of what was chosen before",
			func(l advise.Lever) []advise.Effect {
				return l.Again
			}},
	} {
		for _, at := range placesOf(a, kind.of) {
			t := effectTable(a, base, at, kind.of)
			title := document.Strongly(kind.title).Then(
				", "+at.words+sayOn(base, at.on)+", gain in %",
				document.Faint)
			out = append(out, section(title, t))
		}
	}
	if len(a.Recommended) > 0 && len(a.Together) > 0 {
		var items []string
		for _, e := range a.Together {
			items = append(items, printable.Capital(sentence.Effect(e))+": "+string(e.Ratio.Verdict)+".")
		}
		out = append(out, list(document.Findings, "Together, against "+a.Mode+" as it is", items))
	}
	return out
}

type place struct{ words, on string }

func placesOf(a advise.Advice, of func(advise.Lever) []advise.Effect) []place {
	var out []place
	for _, l := range a.Levers {
		for _, e := range of(l) {
			if p := (place{e.Place(), e.On}); !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out
}

func effectTable(a advise.Advice, base *analysis.Report, at place,
	of func(advise.Lever) []advise.Effect) document.Table {
	var loads []string
	for _, l := range base.Plan.Loads {
		has := func(l2 advise.Lever) bool {
			return slices.ContainsFunc(of(l2), func(e advise.Effect) bool {
				return e.Load == l.Kind && e.Place() == at.words && e.On == at.on
			})
		}
		if slices.ContainsFunc(a.Levers, has) {
			loads = append(loads, l.Kind)
		}
	}
	t := document.Table{Level: 1, Fit: "effects", Layouts: onlyGaps,
		Columns: []document.Column{texts("", "lever")}}
	for _, l := range loads {
		t.Columns = append(t.Columns, texts("", l))
	}
	t.Columns = append(t.Columns, texts("CPU", "of bulk"))
	for _, l := range a.Levers {
		row := document.Row{Cells: []document.Cell{{Text: l.Name}}}
		cpu, found := nothing, false
		for _, load := range loads {
			i := slices.IndexFunc(of(l), func(e advise.Effect) bool {
				return e.Load == load && e.Place() == at.words && e.On == at.on
			})
			if i < 0 {
				row.Cells = append(row.Cells, nothing)
				continue
			}
			found = true
			e := of(l)[i]
			row.Cells = append(row.Cells, effectCell(e))
			if load == workload.Bulk && e.CPU != nil {
				cpu = ratioCell(strings.TrimSuffix(e.CPU.String(), " %"), *e.CPU)
			}
		}
		if found {
			row.Cells = append(row.Cells, cpu)
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}
