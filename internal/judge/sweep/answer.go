package sweep

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// AnswerOf returns the knee of each curve, or nil if nothing was measured. It names curves with the
// same certain result together.
func AnswerOf(r *Report) *analysis.Answer {
	if len(r.Cells) == 0 || r.Plan.Sweep == nil {
		return nil
	}
	v := values{r.Plan.Sweep}
	a := &analysis.Answer{Question: fmt.Sprintf(
		"From which %s on does a mode cost more?", v.noun()), Text: []string{}}
	var tally analysis.Tally
	for i, c := range r.Curves {
		if slices.ContainsFunc(r.Curves[:i], c.sameGround) {
			continue
		}
		a.Add(v.sentence(r, c))
	}
	for _, c := range r.Curves {
		for _, p := range c.Points {
			tally.Add(p.Ratio.Verdict, p.Ratio.N, p.Ratio.Epochs)
		}
	}
	if len(a.Text) == 0 {
		a.Add(fmt.Sprintf("There is no result other than "+
			"%s's: nothing to compare.", r.Plan.Baseline))
	}
	a.Add(tally.Sentence())
	return a
}

func overIPv6(r *Report, all []Curve) (out []string) {
	beside := &Report{Measured: r.Measured, Curves: all}
	beside.Plan.Baseline = "IPv4"
	for i, c := range all {
		if !slices.ContainsFunc(all[:i], c.sameGround) {
			out = append(out, "IPv6: "+values{r.Plan.Sweep}.sentence(beside, c))
		}
	}
	return out
}

func (v values) sentence(r *Report, c Curve) string {
	type said struct {
		rank  int
		words string
		names []string
	}
	var all []said
	for _, o := range r.Curves {
		if !o.sameGround(c) {
			continue
		}
		words := v.words(o.Knee)
		k := slices.IndexFunc(all, func(s said) bool { return s.words == words })
		if k < 0 {
			k = len(all)
			all = append(all, said{rank: slices.Index(shapes, o.Knee.Shape), words: words})
		}
		all[k].names = append(all[k].names, label(o))
	}
	slices.SortStableFunc(all, func(a, b said) int { return cmp.Compare(a.rank, b.rank) })
	parts := make([]string, len(all))
	for i, s := range all {
		parts[i] = s.words + ": " + strings.Join(s.names, ", ")
	}
	return head(r.Base(), c) + ": " + strings.Join(parts, "; ") + "."
}

var shapes = []Shape{Every, From, UpTo, Several, None, Unclear}

// head returns what is asked about the curves of one load, placement and backend: "Median latency
// more than 3 % above host's".
func head(r *analysis.Report, c Curve) string {
	l := r.Plan.Loads.At(sample.Cell{Load: c.Load, Point: c.Points[0].Point})
	side := "above"
	if workload.MetricOf(c.Metric, l).Higher {
		side = "below"
	}
	const percent = 100
	same := cmp.Or(r.Plan.Same, r.Plan.Precision)
	text := fmt.Sprintf("%s more than %.3g %% %s %s's", workload.Of(l).Noun, percent*same, side,
		r.Plan.Baseline)
	var where []string
	if several(r.Cells, func(c analysis.Cell) string { return c.Load }) {
		where = append(where, c.Load)
	}
	if several(r.Cells, func(c analysis.Cell) string { return string(c.From) }) {
		where = append(where, "from "+c.From.Words())
	}
	if several(r.Cells, func(c analysis.Cell) string { return c.On }) {
		where = append(where, "on "+c.On)
	}
	if len(where) > 0 {
		text = strings.Join(where, " ") + ", " + text
	}
	return printable.Capital(text)
}

func several(cells []analysis.Cell, of func(analysis.Cell) string) bool {
	return len(analysis.Distinct(cells, of)) > 1
}

func label(c Curve) string {
	return analysis.Label(sample.Cell{Mode: c.Mode, From: c.From, To: c.To, Tune: c.Tune})
}

type values struct{ *sample.Sweep }

func (v values) noun() string {
	if a, ok := workload.AxisOf(v.Axis); ok {
		return a.Noun
	}
	return v.Axis
}

func (v values) list(points []string) string {
	out := make([]string, len(points))
	for i, p := range points {
		out[i] = v.value(p)
	}
	return printable.List(out)
}

func (v values) value(point string) string {
	a, ok := workload.AxisOf(v.Axis)
	i := at(v.Sweep, point)
	if !ok || i < 0 {
		return point
	}
	return a.Words(v.Points[i].Value)
}

func (v values) words(k Knee) string {
	unclear := ""
	if len(k.Unknown) > 0 {
		unclear = " (unclear at " + v.list(k.Unknown) + ")"
	}
	switch k.Shape {
	case Every:
		return "at every " + v.noun() + unclear
	case From:
		if k.Beside != "" {
			return "from between " + v.value(k.Beside) + " and " + v.value(k.At) + " up" + unclear
		}
		return "at " + v.list(k.Costs) + unclear
	case UpTo:
		if k.Beside != "" {
			return "up to between " + v.value(k.At) + " and " + v.value(k.Beside) + unclear
		}
		return "at " + v.list(k.Costs) + unclear
	case Several:
		return "at " + v.list(k.Costs) + ", not at " + v.list(k.Within) + unclear
	case None:
		return "at none"
	}
	if len(k.Within) > 0 {
		return "not at " + v.list(k.Within) + ", unclear at " + v.list(k.Unknown)
	}
	return "unclear"
}

// Noun names a sweep's values, or returns "" for a plan without a sweep.
func Noun(p analysis.Plan) string {
	if p.Sweep == nil {
		return ""
	}
	return values{p.Sweep}.noun()
}

// LoadWords returns a load's options in words, for a sweep with all its points: "rr, request size
// from 1 B to 16 KiB".
func LoadWords(p analysis.Plan, l sample.Load) string {
	if p.Sweep == nil {
		return workload.Of(l).Words(l)
	}
	v := values{p.Sweep}
	last := len(v.Points) - 1
	return fmt.Sprintf("%s, %s from %s to %s", l.Kind, v.noun(), v.value(v.Points[0].Name),
		v.value(v.Points[last].Name))
}
