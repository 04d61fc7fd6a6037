package analysis

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

type group struct {
	from                 mode.Placement
	load, point, on, pin string
	shape                sample.Shape
}

func groupOf(c sample.Cell) group { return group{c.From, c.Load, c.Point, c.On, c.Pin, c.Shape} }

// SameGroup reports whether two cells have the same placement, load, point, backend, CPU placement
// and shape. Only such cells share a baseline.
func SameGroup(a, b sample.Cell) bool { return groupOf(a) == groupOf(b) }

// Run holds a results file while it is judged.
type Run struct {
	File   *sample.File
	Series []*Series     // by index of the plan's cells
	base   map[group]int // cell index
	ctl    map[group]int // cell index
	// cell index; a group may have none
	placebos map[group]int
	// by metric
	noises map[group]map[string]noise
	// by cell
	troubles []trouble
	memory   memory
}

// Judge judges the cells of a results file by the rules that all studies share.
func Judge(f *sample.File) *Report {
	j := Open(f)
	r := j.Report()
	j.Sort(r.Cells)
	return r
}

// Report returns the report of the cells, in the plan's order.
func (j *Run) Report() *Report {
	r := Blank(j.File)
	for i, s := range j.Series {
		switch {
		case s.Cell.Control:
		case j.Failed(i):
			r.Failed = append(r.Failed, j.failure(i))
		default:
			r.Cells = append(r.Cells, j.cell(i))
		}
	}
	r.Control.Groups = j.floorList()
	r.Unpaired = j.unpaired()
	r.Warnings = j.warnings()
	return r
}

// Blank returns a report without judgements.
func Blank(f *sample.File) *Report {
	p := f.Header.Plan
	r := &Report{
		Measured: Measured{
			Schema:      Schema,
			Study:       p.Study,
			Started:     f.Header.Started,
			Command:     f.Header.Command,
			Environment: f.Header.Environment,
			Plan: Plan{Seed: p.Seed, Rounds: f.End.Rounds, Baseline: p.Baseline,
				EndedBy: f.End.Reason, Elapsed: f.End.Elapsed,
				Budget: p.Budget, Precision: p.Precision, Same: p.Same, Epoch: p.Epoch, Pin: p.Pin,
				CPUs: p.CPUs, Pins: p.Pins, Loads: p.Loads, Wire: p.Wire, Sweep: p.Sweep,
				Unpaced: p.Unpaced},
			Control: Control{Mode: p.Baseline, Groups: []Floor{}},
			Cells:   []Cell{},
		},
		Said: Said{
			Failed:   []Failed{},
			Skipped:  append([]sample.Skip{}, p.Skipped...),
			Findings: []string{},
		},
	}
	if len(p.Loads) > 0 {
		r.Plan.Window = p.Loads[0].Window
	}
	return r
}

// Open prepares a results file for comparisons of its cells.
func Open(f *sample.File) *Run {
	j := emptyRun(f)
	for i := range f.Visits {
		v := &f.Visits[i]
		s := j.Series[v.Cell]
		counts := f.Header.Plan.Counts(*v)
		if v.Trace != nil && counts {
			s.Traced = append(s.Traced, v)
			continue
		}
		s.all = append(s.all, v)
		switch {
		case j.troubles[v.Cell].fatal():
		case counts:
			s.add(v)
		case f.Header.Plan.Foreign():
			for metric, n := range workload.FailedDials(*v) {
				s.set(metric, v.Round, n)
			}
		}
	}
	j.memory = memory{map[pairing][]stats.Epoch{}, map[pairing]stats.Prior{}}
	for i := range j.Series {
		j.cpuBySlices(i)
	}
	for g, i := range j.ctl {
		j.noises[g] = map[string]noise{}
		b, ok := j.BaselineOf(i)
		for name := range j.Series[i].Values {
			if !ok {
				break
			}
			if x := j.compare(i, b, name); x.N > 0 {
				j.noises[g][name] = noise{stats.Floor(x.Summary), x.slices.Bias()}
			}
		}
	}
	return j
}

func emptyRun(f *sample.File) *Run {
	p := f.Header.Plan
	j := &Run{File: f, base: map[group]int{}, ctl: map[group]int{}, placebos: map[group]int{},
		noises: map[group]map[string]noise{}, troubles: troublesOf(f)}
	for i, c := range p.Cells {
		j.Series = append(j.Series, newSeries(c, p.Loads.At(c)))
		g := groupOf(c)
		if !p.IsBaseline(c) {
			continue
		}
		of := j.base
		switch {
		case c.Placebo:
			of = j.placebos
		case c.Control:
			of = j.ctl
		}
		if _, ok := of[g]; !ok {
			of[g] = i
		}
	}
	return j
}

// BaselineOf returns the index of the cell that cell i is compared with, which is i for a baseline.
// ok is false if its group has none.
func (j *Run) BaselineOf(i int) (b int, ok bool) {
	b, ok = j.base[groupOf(j.Series[i].Cell)]
	return b, ok
}

// Against returns the ratio of cell i's metric to cell b's; to is the name of cell b for the
// result. N is 0 if they have no rounds or slices in common.
func (j *Run) Against(i, b int, metric, to string) Ratio {
	x := j.compare(i, b, metric)
	out := ratioOf(x, to)
	if x.N > 0 {
		out.Verdict = j.verdict(x, j.noise(groupOf(j.Series[i].Cell), metric),
			higherIsBetter(j.Series[i].Load, metric))
	}
	return out
}

func (j *Run) noise(g group, metric string) noise {
	if n, ok := j.noises[g][metric]; ok {
		return n
	}
	return unknown
}

func (j *Run) cell(i int) Cell {
	s := j.Series[i]
	c := s.Cell
	b, hasBase := j.base[groupOf(c)]
	out := Cell{Cell: c.Named()}
	out.Witnessed, out.Baseline, out.Broke = !j.File.Header.Plan.Foreign(), hasBase && b == i,
		j.troubles[i].broke()
	out.Hops, out.Metrics, out.Primary = []string{}, map[string]Metric{}, PrimaryOf(s.Load, c.Shape)
	out.Latencies, out.CPU, out.ProxyCore = s.latencies(), s.split(), s.proxyCore()
	out.CPUs, out.AllCPUs = s.cpuUses()
	out.LimitedBy, out.Capacity = j.LimitOf(s), j.capacity(s)
	out.Segments, out.Together = s.segments(), s.together()
	if p, ok := j.File.Header.PathOf(c); ok {
		out.Hops, out.Facts, out.Dial = p.Hops, p.Facts, p.Dial
		out.Cards, out.Counted, out.Memory = p.Cards, s.counted(len(p.Hops)), s.proxyMemory(p)
	}
	for name := range s.Values {
		m, ok := s.Metric(name)
		if !ok {
			continue
		}
		if hasBase && b != i {
			if x := j.Against(i, b, name, j.Series[b].Cell.Name()); x.N > 0 {
				m.Ratio = &x
			}
			m.Price = j.Added(i, b, name)
			m.Level = j.agreed(b, name, m)
		}
		if first, ok := j.smallest(i); ok && first != i {
			if x := j.Against(i, first, name, j.Series[first].Cell.Shape.String()); x.N > 0 {
				m.Scaling = &x
			}
		}
		out.Metrics[name] = m
	}
	out.Warnings, out.Varies = j.cellWarnings(i), j.Variation(i)
	return out
}

// agreed returns the level of a metric that agrees with its difference from cell b: 0 if it has
// none or varies.
func (j *Run) agreed(b int, name string, m Metric) float64 {
	base := j.level(b, name)
	switch {
	case m.Ratio == nil || m.Ratio.Varies || math.IsNaN(base):
		return 0
	case m.Price != nil:
		return max(0, base+m.Price.Median)
	}
	return base * m.Ratio.Median
}

// smallest returns the index of the series of cell i in the crowd's smallest shape. ok is false if
// cell i is not a crowd.
func (j *Run) smallest(i int) (first int, ok bool) {
	c := j.Series[i].Cell
	if !c.Shape.Crowd() {
		return 0, false
	}
	for k, s := range j.Series {
		like := s.Cell
		like.Shape = c.Shape
		if like == c {
			return k, true
		}
	}
	return 0, false
}

func (j *Run) floorList() []Floor {
	out := []Floor{}
	for _, s := range j.Series {
		g := groupOf(s.Cell)
		if !s.Cell.Control || s.Cell.Placebo || len(j.noises[g]) == 0 {
			continue
		}
		floors := map[string]float64{}
		for name, n := range j.noises[g] {
			floors[name] = n.floor
		}
		out = append(out, Floor{From: string(g.from), Load: g.load, Point: g.point, Shape: g.shape,
			On: g.on, Pin: g.pin, Floor: floors, Placebo: j.placebo(g), Epochs: j.spreads(g)})
	}
	return out
}

func (j *Run) placebo(g group) *Ratio {
	i, ok := j.placebos[g]
	b, has := j.base[g]
	if !ok || !has || j.Failed(i) || j.Failed(b) {
		return nil
	}
	s := j.Series[i]
	if x := j.Against(i, b, PrimaryOf(s.Load, s.Cell.Shape), s.Cell.Name()); x.N > 0 {
		return &x
	}
	return nil
}

// Sort sorts cells in place: the groups in the plan's order, and each group by toll, the baseline
// first. Cells of an unclear verdict are sorted as if they cost nothing, in the plan's order.
func (j *Run) Sort(cells []Cell) {
	order := map[group]int{}
	for _, s := range j.Series {
		if g := groupOf(s.Cell); order[g] == 0 {
			order[g] = len(order) + 1
		}
	}
	slices.SortStableFunc(cells, func(a, b Cell) int {
		ga, gb := groupOf(a.Cell), groupOf(b.Cell)
		return cmp.Or(cmp.Compare(order[ga], order[gb]), cmp.Compare(a.rank(), b.rank()))
	})
}

// Ordered returns the values in the order of their rounds.
func Ordered[T any](byRound map[int]T) []T {
	out := make([]T, 0, len(byRound))
	for _, r := range slices.Sorted(maps.Keys(byRound)) {
		out = append(out, byRound[r])
	}
	return out
}
