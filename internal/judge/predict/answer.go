package predict

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// The codes of findings on predictions.
const (
	Over   = "over-baseline" // what Rows, of one place, have over the baseline, by the key What
	NoMode = "no-mode"       // only the baseline has rows
)

// The codes of notes. The others are analysis.Busy and analysis.Varying, about the figure Why of
// the mode What.
const (
	OtherPlacement = "other-placement" // results on Pin are used, as there are none on the pin What
	NoBulk         = "no-bulk"         // the cost of AskedBytes includes only that of MeasuredBytes
	NoBulkCPU      = "no-bulk-cpu"     // the same of the CPU time, while bulk has a throughput

	AskedBytes    = "asked" // of a reply
	MeasuredBytes = "measured"
)

// Findings returns each mode's addition to the baseline.
func Findings(p *Prediction) (out []analysis.Finding) {
	var tally analysis.Tally
	for i, first := range p.Rows {
		if slices.ContainsFunc(p.Rows[:i], first.besides) {
			continue
		}
		for _, key := range []string{Page, CPU, StreamCPU} {
			f := analysis.Finding{Code: Over, From: mode.Placement(first.From), On: first.On, What: key}
			for k, r := range p.Rows {
				if price, ok := r.Over[key]; ok && !r.Baseline && r.besides(first) {
					f.Rows = append(f.Rows, k)
					tally.Add(price.Verdict, price.N, price.Epochs)
				}
			}
			if f.Rows != nil {
				out = append(out, f)
			}
		}
	}
	if out == nil {
		out = []analysis.Finding{{Code: NoMode}}
	}
	if f, ok := tally.Finding(); ok {
		out = append(out, f)
	}
	return out
}

func (r Row) besides(o Row) bool { return r.From == o.From && r.On == o.On }

// Base returns the prediction's findings as those of a report.
func (p *Prediction) Base() *analysis.Report {
	r := &analysis.Report{Said: analysis.Said{Answer: p.Answer, Found: p.Found}}
	r.Plan.Baseline = p.Baseline
	return r
}

// Tell sets the answer. A prediction has no other findings.
func (p *Prediction) Tell(a *analysis.Answer, _ []string) { p.Answer = a }
