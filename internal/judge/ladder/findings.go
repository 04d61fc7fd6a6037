package ladder

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// The codes of findings on parts. What is a key of Step.Prices, Rows are indexes of steps.
const (
	Parts  = "parts"        // of one place, with a price
	NoPart = "no-part"      // has a price in the answer
	Sum    = "sum-of-parts" // of all steps from one mode up to another, whose Prices differ by it
	Free   = "parts-free"   // they cost nothing measurable
	Hidden = "parts-hidden" // by the link Why, which is full with and without them
)

// Findings returns what the steps show, without sums.
func Findings(r *Report) []analysis.Finding {
	if len(r.Cells) == 0 {
		return []analysis.Finding{{Code: analysis.NothingMeasured}}
	}
	var out, rest []analysis.Finding
	var tally analysis.Tally
	for _, m := range priced {
		var parts []analysis.Finding
		name := PriceName(m.Load, m.Metric)
		free := analysis.Finding{Code: Free, What: name}
		hidden := analysis.Finding{Code: Hidden, What: name}
		for i, s := range r.Steps {
			p, ok := s.Prices[name]
			switch {
			case p.LimitedBy != "":
				hidden.Rows, hidden.Why = append(hidden.Rows, i), p.LimitedBy
			case p.Verdict == stats.Nothing:
				free.Rows = append(free.Rows, i)
			}
			if !ok || !m.answers {
				continue
			}
			k := slices.IndexFunc(parts, func(f analysis.Finding) bool {
				return s.SamePlace(r.Steps[f.Rows[0]])
			})
			if k < 0 {
				k = len(parts)
				parts = append(parts, analysis.Finding{Code: Parts, From: s.From, On: s.On, What: name})
			}
			parts[k].Rows = append(parts[k].Rows, i)
			if p.LimitedBy == "" && !p.Undecided() {
				tally.Add(p.Verdict, p.N, p.Epochs)
			}
		}
		out = append(out, parts...)
		for _, f := range []analysis.Finding{free, hidden} {
			if len(f.Rows) > 0 {
				rest = append(rest, f)
			}
		}
	}
	if len(r.Steps) > 0 && len(out) == 0 {
		out = append(out, analysis.Finding{Code: NoPart})
	}
	if r.TooBusy() { // the verdicts may be unclear for the same reason
		out = slices.Insert(out, 0, analysis.Finding{Code: analysis.Busy})
	} else if f, ok := tally.Finding(); ok {
		out = append(out, f)
	}
	return append(append(out, analysis.Finding{Code: analysis.AllWitnessed}), rest...)
}

// sums returns by how much the highest mode of each branch differs from the lowest one.
func (l *ladder) sums(steps []Step) (out []analysis.Finding) {
	at := func(c func(Step) bool) int { return slices.IndexFunc(steps, c) }
	for top := range steps {
		if at(func(s Step) bool { return s.below == steps[top].cell }) >= 0 {
			continue
		}
		var chain []int
		bottom := top
		for steps[bottom].Below != "" {
			chain = append([]int{bottom}, chain...)
			bottom = at(func(s Step) bool { return s.cell == steps[bottom].below })
		}
		if len(chain) < 2 { //nolint:mnd // a sum has two parts
			continue
		}
		total := l.prices(steps[top].cell, steps[bottom].cell)
		for _, m := range priced {
			name := PriceName(m.Load, m.Metric)
			if p := total[name]; p.Known() &&
				(m.Metric == workload.LatencyP50 || m.Metric == workload.CPUPerByte) {
				out = append(out, analysis.Finding{Code: Sum, What: name, Rows: chain,
					Prices: []analysis.Price{p}})
			}
		}
	}
	return out
}
