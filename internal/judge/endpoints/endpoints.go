// Package endpoints compares routes to external endpoints.
package endpoints

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Uncounted is the finding that holds for all routes to endpoints.
const Uncounted = "These routes are outside toll's control: their bytes are not counted."

type study struct{ *analysis.Run }

// Judge judges a results file of endpoints.
func Judge(f *sample.File) *analysis.Report {
	j := study{analysis.Open(f)}
	r := j.Report()
	j.Sort(r.Cells)
	j.noteEvidence(r)
	findings, culprits := j.findings(r)
	r.Findings, r.Answer = findings, AnswerOf(r, culprits)
	return r
}

func (j study) findings(r *analysis.Report) (out []string, culprits []Culprit) {
	if len(r.Cells) == 0 {
		return []string{"Nothing was measured."}, nil
	}
	out = []string{Uncounted}
	for _, l := range j.File.Header.Plan.Loads {
		switch l.Kind {
		case workload.Chat:
			said, who := j.networkOrModel(r)
			out, culprits = append(out, said...), append(culprits, who...)
		case workload.Batch:
			out = append(out, added(r.Cells, l.Kind)...)
		case workload.SQL:
			out = append(out, j.roundTrips(r, l)...)
		}
	}
	_, unclear := exchanged(r)
	out = append(out, unclear...)
	if _, absent := suspects(r); absent != "" {
		out = append(out, absent)
	}
	return out, culprits
}

func (j study) roundTrips(r *analysis.Report, l sample.Load) []string {
	var out []string
	queries := workload.SQLOf(l).Queries
	for _, c := range r.Cells {
		p := c.Metrics[workload.LatencyP50].Price
		if c.Baseline || p == nil || p.N < 2 {
			continue
		}
		each := *p
		for _, x := range []*float64{&each.Median, &each.Low, &each.High} {
			*x /= float64(max(1, queries))
		}
		out = append(
			out, fmt.Sprintf("%s adds %s to a page of %d queries over %s (%s): %s to each.",
				c.Label(), p.Plain(), queries, j.File.Header.Plan.Baseline, p.Verdict,
				each.Plain()))
	}
	return out
}
