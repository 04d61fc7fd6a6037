package sentence

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/sweep"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

var ofCurves = []template{
	{code: sweep.KneesOverIPv4, text: "IPv6: {knees4}.", most: all},
	{code: sweep.Knees, text: "{knees}.", most: all},
	{code: sweep.NoCurve, text: "There is no result other than {baseline}'s: nothing to compare.",
		most: all},
	{code: sweep.Meaning, text: "{meant}", details: 2},
}

var shapes = []sweep.Shape{sweep.Every, sweep.From, sweep.UpTo, sweep.Several, sweep.None,
	sweep.Unclear}

// knees names the finding's curves, those with the same words together.
func (w *writer) knees(curves []sweep.Curve, f analysis.Finding, over string) string {
	var words []string
	rank, names := map[string]int{}, map[string][]string{}
	for _, i := range f.Rows {
		text := kneeWords(w.r.Plan, curves[i].Knee)
		if names[text] == nil {
			words = append(words, text)
			rank[text] = slices.Index(shapes, curves[i].Knee.Shape)
		}
		names[text] = append(names[text], curves[i].Label)
	}
	slices.SortStableFunc(words, func(a, b string) int { return cmp.Compare(rank[a], rank[b]) })
	for i, text := range words {
		words[i] += ": " + strings.Join(names[text], ", ")
	}
	return curvesHead(w.r, curves[f.Rows[0]], over) + ": " + strings.Join(words, "; ")
}

// curvesHead returns what is asked about the curves of one load, placement and backend: "Median
// latency more than 3 % above host's".
func curvesHead(r *analysis.Report, c sweep.Curve, over string) string {
	l := r.Plan.Loads.At(sample.Cell{Load: c.Load, Point: c.Points[0].Point})
	side := "above"
	if workload.MetricOf(c.Metric, l).Higher {
		side = "below"
	}
	const percent = 100
	same := cmp.Or(r.Plan.Same, r.Plan.Precision)
	text := fmt.Sprintf("%s more than %.3g %% %s %s's", workload.Of(l).Noun, percent*same, side,
		over)
	var where []string
	several := func(of func(analysis.Cell) string) bool {
		return len(analysis.Distinct(r.Cells, of)) > 1
	}
	if several(func(c analysis.Cell) string { return c.Load }) {
		where = append(where, c.Load)
	}
	if several(func(c analysis.Cell) string { return string(c.From) }) {
		where = append(where, "from "+c.From.Words())
	}
	if several(func(c analysis.Cell) string { return c.On }) {
		where = append(where, "on "+c.On)
	}
	if len(where) > 0 {
		text = strings.Join(where, " ") + ", " + text
	}
	return printable.Capital(text)
}

func kneeWords(p analysis.Plan, k sweep.Knee) string {
	value := func(point string) string { return sweep.Value(p, point) }
	list := func(points []string) string {
		var out []string
		for _, x := range points {
			out = append(out, value(x))
		}
		return printable.List(out)
	}
	unclear := ""
	if len(k.Unknown) > 0 {
		unclear = " (unclear at " + list(k.Unknown) + ")"
	}
	switch k.Shape {
	case sweep.Every:
		return "at every " + sweep.Noun(p) + unclear
	case sweep.From:
		if k.Beside != "" {
			return "from between " + value(k.Beside) + " and " + value(k.At) + " up" + unclear
		}
		return "at " + list(k.Costs) + unclear
	case sweep.UpTo:
		if k.Beside != "" {
			return "up to between " + value(k.At) + " and " + value(k.Beside) + unclear
		}
		return "at " + list(k.Costs) + unclear
	case sweep.Several:
		return "at " + list(k.Costs) + ", not at " + list(k.Within) + unclear
	case sweep.None:
		return "at none"
	}
	if len(k.Within) > 0 {
		return "not at " + list(k.Within) + ", unclear at " + list(k.Unknown)
	}
	return "unclear"
}
