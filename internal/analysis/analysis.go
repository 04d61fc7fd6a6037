package analysis

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/sample"
	"github.com/bridgetoll/bridgetoll/internal/stats"
)

// group is what is compared with one baseline.
type group struct {
	from, load, on string
	shape          sample.Shape
}

func groupOf(c sample.Cell) group { return group{c.From, c.Load, c.On, c.Shape} }

// judged is the file on its way to the report.
type judged struct {
	file   *sample.File
	series []*series     // by index of the plan's cells
	base   map[group]int // index of the baseline's cell
	ctl    map[group]int // index of the control's cell
	floors map[group]map[string]float64
}

// Judge judges a results file.
func Judge(f *sample.File) *Report {
	j := collect(f)
	r := &Report{
		Schema:      Schema,
		Study:       f.Header.Plan.Study,
		Environment: f.Header.Environment,
		Plan: Plan{Seed: f.Header.Plan.Seed, Rounds: f.End.Rounds, Baseline: f.Header.Plan.Baseline,
			EndedBy: f.End.Reason, Elapsed: f.End.Elapsed, Budget: f.Header.Plan.Budget,
			Precision: f.Header.Plan.Precision, Pin: f.Header.Plan.Pin, CPUs: f.Header.Plan.CPUs, Loads: f.Header.Plan.Loads, Wire: f.Header.Plan.Wire},
		Control:  Control{Mode: f.Header.Plan.Baseline, Groups: []Floor{}},
		Skipped:  append([]sample.Skip{}, f.Header.Plan.Skipped...),
		Failed:   []Failed{},
		Cells:    []Cell{},
		Findings: []string{},
	}
	if len(f.Header.Plan.Loads) > 0 {
		r.Plan.Window = f.Header.Plan.Loads[0].Window
	}
	if f.Header.Plan.Mesh != nil {
		judgeMesh(f, r)
		return r
	}
	for i, s := range j.series {
		switch {
		case s.cell.Control:
		case j.failed(i):
			r.Failed = append(r.Failed, j.failure(i))
		default:
			r.Cells = append(r.Cells, j.cell(i))
		}
	}
	r.Control.Groups = j.floorList()
	r.Warnings = j.warnings()
	switch r.Study {
	case sample.StudyScale:
		sortByMode(r.Cells, f.Header.Plan)
		r.Findings = scaling(r)
	case sample.StudyLadder:
		sortCells(r.Cells, j)
		l := newLadder(j)
		r.Steps = l.steps()
		r.Findings = l.findings(r)
	case sample.StudyEndpoints:
		sortCells(r.Cells, j)
		r.Findings = j.endpointFindings(r)
	default:
		sortCells(r.Cells, j)
		r.Findings = append(r.Findings, j.findings(r)...)
	}
	return r
}

func collect(f *sample.File) *judged {
	p := f.Header.Plan
	j := &judged{file: f, base: map[group]int{}, ctl: map[group]int{}, floors: map[group]map[string]float64{}}
	for i, c := range p.Cells {
		j.series = append(j.series, newSeries(c, p.LoadOf(c.Load)))
		g := groupOf(c)
		if c.Mode != p.Baseline || c.Tune != "" {
			continue
		}
		if c.Control {
			j.ctl[g] = i
		} else if _, ok := j.base[g]; !ok {
			j.base[g] = i
		}
	}
	for _, v := range f.Visits {
		if p.Counts(v) {
			j.series[v.Cell].add(v)
		}
	}
	for g, i := range j.ctl {
		j.floors[g] = map[string]float64{}
		for name := range j.series[i].values {
			if x := j.ratio(i, name); x.N > 0 {
				j.floors[g][name] = stats.Floor(x)
			}
		}
	}
	return j
}

// ratio is cell i's metric against its group's baseline; N is 0 if there is
// none.
func (j *judged) ratio(i int, metric string) stats.Summary {
	b, ok := j.baseline(i)
	if !ok {
		return stats.Summary{}
	}
	return j.between(i, b, metric)
}

// baseline is the cell that cell i is compared with.
func (j *judged) baseline(i int) (b int, ok bool) {
	b, ok = j.base[groupOf(j.series[i].cell)]
	return b, ok
}

// between is cell i's metric against cell b's.
func (j *judged) between(i, b int, metric string) stats.Summary {
	return stats.Summarize(stats.Ratios(j.series[i].values[metric], j.series[b].values[metric]))
}

// against is cell i's metric against that of cell b, which is called to, with
// its verdict; N is 0 if they have no round in common.
func (j *judged) against(i, b int, metric, to string) Ratio {
	x := j.between(i, b, metric)
	out := Ratio{To: to, Median: x.Median, Low: x.Low, High: x.High, N: x.N}
	if x.N > 0 {
		out.Verdict = stats.Judge(x, j.floor(groupOf(j.series[i].cell), metric), j.file.Header.Plan.Precision, higherIsBetter(j.series[i].load, metric))
	}
	return out
}

func (j *judged) floor(g group, metric string) float64 {
	if f, ok := j.floors[g][metric]; ok {
		return f
	}
	return math.NaN()
}

func (j *judged) cell(i int) Cell {
	s := j.series[i]
	c := s.cell
	b, hasBase := j.base[groupOf(c)]
	out := Cell{Mode: c.Mode, From: c.From, To: c.To, Load: c.Load, Tune: c.Tune, Shape: c.Shape, On: c.On,
		Witnessed: j.file.Header.Plan.Study != sample.StudyEndpoints, Baseline: hasBase && b == i, Hops: []string{},
		Metrics: map[string]Metric{}, CPU: s.split(), LimitedBy: j.limit(s), Primary: PrimaryOf(s.load, c.Shape),
		Stopped: j.stopped(i)}
	if p, ok := j.file.Header.PathOf(c); ok {
		out.Hops, out.Facts, out.Dial = p.Hops, p.Facts, p.Dial
	}
	for name := range s.values {
		m, ok := s.metric(name)
		if !ok {
			continue
		}
		if hasBase && b != i {
			if x := j.against(i, b, name, j.series[b].cell.Mode); x.N > 0 {
				m.Ratio = &x
			}
			m.Price = j.difference(i, b, name)
		}
		if first, ok := j.smallest(i); ok && first != i {
			if x := j.against(i, first, name, j.series[first].cell.Shape.String()); x.N > 0 {
				m.Scaling = &x
			}
		}
		out.Metrics[name] = m
	}
	out.Warnings = j.cellWarnings(i)
	return out
}

// failed reports whether cell i has no result.
func (j *judged) failed(i int) bool { return len(j.series[i].visits) == 0 || j.contradicted(i) }

// contradictedShare is the share of a cell's visits that may contradict its
// path before none of them is believed.
const contradictedShare = 0.2

// contradicted reports whether too many of cell i's visits took another way.
func (j *judged) contradicted(i int) bool {
	n := 0
	for _, v := range j.file.Visits {
		if v.Cell == i && v.Failure == "" && !j.file.Header.Plan.Counts(v) {
			n++
		}
	}
	return float64(n) > contradictedShare*float64(n+len(j.series[i].visits))
}

// stoppedAfter is how many visits in a row must have failed at a cell's end for it
// to have stopped. After as many the engine gives it up.
const stoppedAfter = 3

// stopped reports whether cell i has no result any more.
func (j *judged) stopped(i int) bool {
	bad := 0
	for _, v := range j.file.Visits {
		switch {
		case v.Cell != i:
		case j.file.Header.Plan.Counts(v):
			bad = 0
		default:
			bad++
		}
	}
	return bad >= stoppedAfter
}

// failure says why cell i has no result, from its last bad visit.
func (j *judged) failure(i int) Failed {
	c := j.series[i].cell
	f := Failed{Mode: c.Mode, From: c.From, To: c.To, Load: c.Load, Tune: c.Tune, Shape: c.Shape, On: c.On, Reason: "it was never visited"}
	for _, v := range j.file.Visits {
		switch {
		case v.Cell != i, j.file.Header.Plan.Counts(v):
		case v.Failure == "":
			f.Reason, f.Evidence = "the path was not witnessed", v.Witness.Evidence
		default:
			f.Reason, f.Evidence = "the visit failed", v.Failure
		}
	}
	return f
}

func (j *judged) floorList() []Floor {
	out := []Floor{}
	for _, s := range j.series { // the plan's order
		g := groupOf(s.cell)
		if !s.cell.Control || len(j.floors[g]) == 0 {
			continue
		}
		out = append(out, Floor{From: g.from, Load: g.load, Shape: g.shape, On: g.on, Floor: j.floors[g]})
	}
	return out
}

// sortCells keeps the plan's order of groups and sorts each by toll: the
// baseline first, then from the cheapest to the dearest.
func sortCells(cells []Cell, j *judged) {
	order := map[group]int{}
	for _, s := range j.series {
		if g := groupOf(s.cell); order[g] == 0 {
			order[g] = len(order) + 1
		}
	}
	slices.SortStableFunc(cells, func(a, b Cell) int {
		ga, gb := group{a.From, a.Load, a.On, a.Shape}, group{b.From, b.Load, b.On, b.Shape}
		return cmp.Or(cmp.Compare(order[ga], order[gb]), cmp.Compare(a.toll(), b.toll()))
	})
}

// toll is what a cell costs against the baseline in its load's own metric, or in
// CPU time if it fills the wire: 1 is the same, 2 is half the throughput, twice
// the latency or twice the CPU time a byte. The baseline
// sorts first, a cell without a ratio last.
func (c Cell) toll() float64 {
	if c.Baseline {
		return math.Inf(-1)
	}
	r := c.Metrics[c.Primary].Ratio
	cpu := c.Metrics[CPUPerByte].Ratio
	switch {
	case c.fillsWire() && cpu != nil: // all that do are as fast: they differ in CPU time
		return cpu.Median
	case r == nil:
		return math.Inf(1)
	case c.Metrics[c.Primary].Higher:
		return 1 / r.Median
	}
	return r.Median
}

// fillsWire reports whether the cell was as fast as its wire.
func (c Cell) fillsWire() bool { return c.LimitedBy == string(mode.HopWire) }

// Converged reports whether every cell's ratio in its load's own metric, the
// control's included, is known to within the plan's precision (relative
// half-width of its interval). The ratio is to the baseline, or on a ladder to
// the rung below. Cells without any ratio do not hold it up; of a single way to an
// endpoint the median itself must be known.
func Converged(p sample.Plan, visits []sample.Visit) bool {
	j := collect(&sample.File{Header: sample.Header{Plan: p}, Visits: visits})
	partner := j.baseline
	if p.Study == sample.StudyLadder {
		partner = newLadder(j).partner
	}
	for i, s := range j.series {
		b, ok := partner(i)
		x := stats.Summary{}
		switch {
		case ok && b != i:
			x = j.between(i, b, PrimaryOf(s.load, s.cell.Shape))
		case p.Study == sample.StudyEndpoints && len(p.Cells) == 1: // a way alone: its own median
			x = stats.Summarize(ordered(s.values[Primary(s.load)]))
		}
		if x.N > 0 && (x.N < stats.MinValues || x.HalfWidth() > p.Precision*x.Median) {
			return false
		}
	}
	return true
}

// label is a cell's mode with its target, where the mode has several, and its
// tunes.
func label(c sample.Cell) string {
	m, ok := mode.Find(mode.Name(c.Mode))
	if !ok {
		m.Name = mode.Name(c.Mode) // of a later toll
	}
	return m.Label(mode.Placement(c.From), mode.Target(c.To), mode.Tunes(c.Tune))
}

// Name is the cell's label and, of a crowd, its shape.
func (c Cell) Name() string {
	if c.Shape.Crowd() {
		return c.Label() + " " + c.Shape.String()
	}
	return c.Label()
}

// Label is the cell's mode with its target, where the mode has several, and
// its tunes.
func (c Cell) Label() string {
	return label(sample.Cell{Mode: c.Mode, From: c.From, To: c.To, Tune: c.Tune})
}

func ordered(byRound map[int]float64) []float64 {
	out := make([]float64, 0, len(byRound))
	for _, r := range slices.Sorted(maps.Keys(byRound)) {
		out = append(out, byRound[r])
	}
	return out
}
