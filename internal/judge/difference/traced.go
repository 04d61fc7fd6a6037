package difference

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Traced compares where two runs of toll trace found a cell's time.
type Traced struct {
	Label         string `json:"label"`
	Against       string `json:"against"`
	Parts         []Part `json:"parts"` // rows of both, in the new run's order, then sums
	trace.Refusal        // why there are no Parts
}

// Part is what a part of the path adds in each run; Old or New is nil if that run has no such part.
type Part struct {
	Name   string          `json:"name"`
	Sum    bool            `json:"sum,omitempty"` // of rows, or what is not attributed
	Old    *analysis.Price `json:"old"`
	New    *analysis.Price `json:"new"`
	Change analysis.Price  `json:"change"` // new minus old
}

func traces(old, now *sample.File) (out []Traced) {
	if now.Header.Plan.Study != sample.StudyTrace {
		return nil
	}
	before := trace.Judge(old).Traces
	for _, t := range trace.Judge(now).Traces {
		k := slices.IndexFunc(before, func(o trace.Trace) bool {
			return o.Label == t.Label && o.Cell.Cell == t.Cell.Cell
		})
		if k < 0 {
			continue
		}
		x := Traced{Label: t.Label, Against: t.Against}
		switch o := before[k]; {
		case t.Refused != "":
			x.Refusal, x.Run = t.Refusal, "new"
		case o.Refused != "":
			x.Refusal, x.Run = o.Refusal, "old"
		default:
			x.Parts = parts(o, t)
		}
		out = append(out, x)
	}
	return out
}

func parts(old, now trace.Trace) (out []Part) {
	add := func(name string, sum bool, a, b *analysis.Price) {
		var zero analysis.Price
		was, is := &zero, &zero
		if a != nil {
			was = a
		}
		if b != nil {
			is = b
		}
		out = append(out, Part{name, sum, a, b, trace.Change(*was, *is)})
	}
	for _, r := range now.Rows {
		add(r.Name, false, priceOf(old.Rows, r.Name), &r.Added)
	}
	for _, r := range old.Rows {
		if priceOf(now.Rows, r.Name) == nil {
			add(r.Name, false, &r.Added, nil)
		}
	}
	for _, s := range []struct {
		name    string
		of, now *analysis.Price
	}{{"in the path", &old.Path, &now.Path}, {"wake-ups", &old.WakeUps, &now.WakeUps},
		{"relay", &old.Relay, &now.Relay}, {"not attributed", &old.Unattributed, &now.Unattributed},
		{"untraced", &old.Untraced, &now.Untraced}} {
		if s.of.N > 0 && s.now.N > 0 {
			add(s.name, true, s.of, s.now)
		}
	}
	return out
}

func priceOf(rows []trace.Row, name string) *analysis.Price {
	k := slices.IndexFunc(rows, func(r trace.Row) bool { return r.Name == name })
	if k < 0 {
		return nil
	}
	return &rows[k].Added
}
