// Package scale judges how a mode's throughput scales with servers, clients and processes.
package scale

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Judge judges a results file as a scaling study.
func Judge(f *sample.File) *analysis.Report {
	r := analysis.Open(f).Report()
	sortByMode(r.Cells)
	r.Findings, r.Answer = scaling(r), AnswerOf(r)
	return r
}

// sortByMode keeps the plan's order of placements, loads and shapes, and puts a mode's shapes
// together.
func sortByMode(cells []analysis.Cell) {
	type block struct {
		from            mode.Placement
		load, on, label string
	}
	order := map[block]int{}
	of := func(c analysis.Cell) block { return block{c.From, c.Load, c.On, c.Label()} }
	loads := map[block]int{}
	for _, c := range cells {
		b := of(c)
		if order[b] == 0 {
			order[b] = len(order) + 1
		}
		b.label = ""
		if loads[b] == 0 {
			loads[b] = len(loads) + 1
		}
	}
	slices.SortStableFunc(cells, func(a, b analysis.Cell) int {
		la, lb := of(a), of(b)
		la.label, lb.label = "", ""
		return cmp.Or(cmp.Compare(loads[la], loads[lb]), cmp.Compare(order[of(a)], order[of(b)]))
	})
}

func scaling(r *analysis.Report) []string {
	if len(r.Cells) == 0 {
		return []string{"Nothing was measured."}
	}
	out := []string{analysis.Witnessed(r)}
	for i, c := range r.Cells {
		if last := i+1 == len(r.Cells) || !sameMode(c, r.Cells[i+1]); last {
			out = append(out, growth(c)...)
		}
	}
	for _, c := range r.Cells {
		if m := c.Metrics[workload.ProcessMin]; len(m.Rounds) > 0 && m.Median == 0 {
			out = append(
				out,
				fmt.Sprintf(
					"%s from %s at %s, %s: in most rounds a client process transferred nothing.",
					c.Label(), c.From.Words(), c.Shape, c.Load))
		}
	}
	return append(out, effort(r.Cells))
}

func sameMode(a, b analysis.Cell) bool {
	return a.Label() == b.Label() && a.From == b.From && a.Load == b.Load && a.On == b.On
}

func growth(c analysis.Cell) []string {
	rate := analysis.Rate(sample.Load{Kind: c.Load})
	m := c.Metrics[rate]
	if m.Scaling == nil {
		return nil
	}
	s := fmt.Sprintf("%s from %s, %s: %s delivers %s of the throughput of %s (%s)", c.Label(),
		c.From.Words(), c.Load,
		c.Shape, m.Scaling, m.Scaling.To, m.Scaling.Verdict)
	if f, ok := c.Metrics[workload.ClientFairness]; ok && c.Shape.Clients > 1 {
		s += fmt.Sprintf(", and its clients share it with a fairness of %.2f", f.Median)
	}
	if x := m.Ratio; x != nil {
		s += fmt.Sprintf("; that is %s of %s's (%s)", x, x.To, x.Verdict)
	}
	return []string{s + "."}
}

func effort(cells []analysis.Cell) string {
	most := slices.MaxFunc(cells, func(a, b analysis.Cell) int {
		return cmp.Compare(ends(a), ends(b))
	})
	high := func(metric string) float64 {
		return slices.Max(append([]float64{0}, most.Metrics[metric].Rounds...))
	}
	const (
		mega  = 1e-6
		milli = 1e3
	)
	return fmt.Sprintf(
		"The largest crowd, %s: %d processes, started and connected within %.2f s, the last one's first byte at most %.0f ms after "+
			"the common start, %.0f MB of memory at the peak.",
		most.Shape, ends(most), high(workload.Setup), milli*high(workload.StartSpread),
		mega*high(workload.Memory))
}

func ends(c analysis.Cell) int { return c.Shape.Servers + c.Shape.Clients*c.Shape.Procs }
