package analysis

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// smallest is the cell of cell i's mode in the plan's first shape; ok is false
// if cell i is not of a crowd.
func (j *judged) smallest(i int) (first int, ok bool) {
	c := j.series[i].cell
	if !c.Shape.Crowd() {
		return 0, false
	}
	for k, s := range j.series {
		like := s.cell
		like.Shape = c.Shape
		if like == c {
			return k, true
		}
	}
	return 0, false
}

// sortByMode keeps the plan's order of placements, loads and shapes, and puts a
// mode's shapes together.
func sortByMode(cells []Cell, p sample.Plan) {
	type block struct{ from, load, on, label string }
	order := map[block]int{}
	of := func(c Cell) block { return block{c.From, c.Load, c.On, c.Label()} }
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
	slices.SortStableFunc(cells, func(a, b Cell) int {
		la, lb := of(a), of(b)
		la.label, lb.label = "", ""
		return cmp.Or(cmp.Compare(loads[la], loads[lb]), cmp.Compare(order[of(a)], order[of(b)]))
	})
}

// scaling are the answers in words to what becomes of the modes as the crowd
// grows.
func scaling(r *Report) []string {
	if len(r.Cells) == 0 {
		return []string{"Nothing was measured."}
	}
	out := []string{witnessed(r)}
	for i, c := range r.Cells {
		if last := i+1 == len(r.Cells) || !sameMode(c, r.Cells[i+1]); last {
			out = append(out, growth(c)...)
		}
	}
	for _, c := range r.Cells {
		if m := c.Metrics[ProcessMin]; len(m.Rounds) > 0 && m.Median == 0 {
			out = append(out, fmt.Sprintf("%s from %s at %s, %s: in most rounds a client process got nothing through at all.",
				c.Label(), c.From, c.Shape, c.Load))
		}
	}
	return append(out, effort(r.Cells))
}

func sameMode(a, b Cell) bool {
	return a.Label() == b.Label() && a.From == b.From && a.Load == b.Load && a.On == b.On
}

// growth says of a mode's last cell what became of its total, and how it
// compares with the baseline there.
func growth(c Cell) []string {
	rate := Rate(sample.Load{Kind: c.Load})
	m := c.Metrics[rate]
	if m.Scaling == nil {
		return nil
	}
	s := fmt.Sprintf("%s from %s, %s: %s gets through %s of what %s does (%s)", c.Label(), c.From, c.Load,
		c.Shape, m.Scaling, m.Scaling.To, m.Scaling.Verdict)
	if f, ok := c.Metrics[ClientFairness]; ok && c.Shape.Clients > 1 {
		s += fmt.Sprintf(", and its clients share it with a fairness of %.2f", f.Median)
	}
	if x := m.Ratio; x != nil {
		s += fmt.Sprintf("; that is %s of %s's (%s)", x, x.To, x.Verdict)
	}
	return []string{s + "."}
}

// effort is what it took to run the largest crowd.
func effort(cells []Cell) string {
	most := slices.MaxFunc(cells, func(a, b Cell) int { return cmp.Compare(a.ends(), b.ends()) })
	high := func(metric string) float64 { return slices.Max(append([]float64{0}, most.Metrics[metric].Rounds...)) }
	const (
		mega  = 1e-6
		milli = 1e3
	)
	return fmt.Sprintf("The largest crowd, %s: %d processes, started and connected within %.2f s, the last one's first byte at most %.0f ms after "+
		"the common start, %.0f MB of memory at the peak.",
		most.Shape, most.ends(), high(Setup), milli*high(StartSpread), mega*high(Memory))
}

// ends are the processes of the load.
func (c Cell) ends() int { return c.Shape.Servers + c.Shape.Clients*c.Shape.Procs }
