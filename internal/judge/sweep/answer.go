package sweep

import (
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// The codes of findings on curves. Rows are the indexes of curves of one load and place.
const (
	Knees         = "knees"           // in Curves, with a Knee each
	KneesOverIPv4 = "knees-over-ipv4" // in OverIPv4
	NoCurve       = "no-curve"        // only the baseline has a result
	Meaning       = "confidence"      // how certain statements about a whole curve are
)

// Findings returns what the curves show.
func Findings(r *Report) (out []analysis.Finding) {
	if len(r.Cells) == 0 {
		return []analysis.Finding{{Code: analysis.NothingMeasured}}
	}
	witnessed := analysis.Finding{Code: analysis.AllWitnessed}
	if r.Plan.Sweep == nil {
		return []analysis.Finding{witnessed}
	}
	out = append(knees(KneesOverIPv4, r.OverIPv4), knees(Knees, r.Curves)...)
	var tally analysis.Tally
	for _, c := range r.Curves {
		for _, p := range c.Points {
			tally.Add(p.Ratio.Verdict, p.Ratio.N, p.Ratio.Epochs)
		}
	}
	if len(r.Curves) == 0 {
		out = append(out, analysis.Finding{Code: NoCurve})
	}
	if f, ok := tally.Finding(); ok {
		out = append(out, f)
	}
	return append(out, witnessed, analysis.Finding{Code: Meaning})
}

// knees returns a finding for the curves of each load and place.
func knees(code string, curves []Curve) (out []analysis.Finding) {
	for i, c := range curves {
		k := slices.IndexFunc(out, func(f analysis.Finding) bool {
			return c.sameGround(curves[f.Rows[0]])
		})
		if k < 0 {
			k = len(out)
			out = append(out, analysis.Finding{Code: code, From: c.From, On: c.On, Load: c.Load})
		}
		out[k].Rows = append(out[k].Rows, i)
	}
	return out
}

type values struct{ *sample.Sweep }

func (v values) noun() string {
	if a, ok := workload.AxisOf(v.Axis); ok {
		return a.Noun
	}
	return v.Axis
}

func (v values) value(point string) string {
	a, ok := workload.AxisOf(v.Axis)
	i := at(v.Sweep, point)
	if !ok || i < 0 {
		return point
	}
	return a.Words(v.Points[i].Value)
}

// Noun names a sweep's values, or returns "" for a plan without a sweep.
func Noun(p analysis.Plan) string {
	if p.Sweep == nil {
		return ""
	}
	return values{p.Sweep}.noun()
}

// Value returns a point of a sweep in words, with its unit.
func Value(p analysis.Plan, point string) string { return values{p.Sweep}.value(point) }

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
