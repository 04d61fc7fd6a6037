// Package endpoints compares routes to external endpoints.
package endpoints

import (
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

type study struct{ *analysis.Run }

// Judge judges a results file of endpoints.
func Judge(f *sample.File) *analysis.Report {
	j := study{analysis.Open(f)}
	r := j.Report()
	j.Sort(r.Cells)
	j.noteEvidence(r)
	if len(r.Cells) == 0 {
		r.Found = []analysis.Finding{{Code: analysis.NothingMeasured}}
		return r
	}
	r.Found = []analysis.Finding{{Code: Uncounted}}
	if r.TooBusy() {
		r.Found = append(r.Found, analysis.Finding{Code: analysis.Busy})
	}
	var culprits []Culprit
	var more []analysis.Finding
	for _, l := range j.File.Header.Plan.Loads {
		switch l.Kind {
		case workload.Chat:
			said, who, several := j.networkOrModel(r)
			r.Found, culprits = append(r.Found, said...), append(culprits, who...)
			if several {
				more = append(more, added(r, l.Kind)...)
			}
		case workload.Batch:
			more = append(more, added(r, l.Kind)...)
		case workload.SQL:
			more = append(more, roundTrips(r, l)...)
		}
	}
	r.Found = append(append(r.Found, Findings(r, culprits)...), more...)
	return r
}

// Times returns the metrics of what a route adds to under a load.
func Times(load string) []string {
	if load == workload.Batch {
		return []string{workload.ResponseTime, workload.ConnectTime}
	}
	return []string{workload.FirstTokenP50, workload.GapP50, workload.ResponseTime,
		workload.ConnectTime}
}

func added(r *analysis.Report, load string) (out []analysis.Finding) {
	for i, c := range r.Cells {
		for _, metric := range Times(load) {
			if m := c.Metrics[metric]; c.Load == load && m.Price != nil && m.Ratio != nil {
				out = append(out, analysis.Finding{Code: Adds, Load: load, Cells: []int{i}})
				break
			}
		}
	}
	return out
}

func roundTrips(r *analysis.Report, l sample.Load) (out []analysis.Finding) {
	for i, c := range r.Cells {
		if p := c.Metrics[workload.LatencyP50].Price; !c.Baseline && p != nil && p.N >= 2 {
			out = append(out, analysis.Finding{Code: PageAdds, Cells: []int{i},
				N: workload.SQLOf(l).Queries})
		}
	}
	return out
}
