// Package trace judges where a mode's microseconds go. It explains the difference between untraced
// slices by the parts of traced trips.
package trace

import (
	"cmp"
	"maps"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

const (
	// leastFollowed is the least share of trips that must have been followed.
	leastFollowed = 0.98
	// leastRequests is the same of requests over a route, which others' requests may disturb.
	leastRequests = 0.95
	mostGroups    = 20
)

// Report is the judged trace.
type Report struct {
	analysis.Measured
	Traces []Trace `json:"traces,omitempty"` // in the order of cells
	analysis.Said
}

// Base returns the part that all studies share.
func (r *Report) Base() *analysis.Report {
	return &analysis.Report{Measured: r.Measured, Said: r.Said}
}

// Complete reports whether everything planned has a result, and every trace its rows.
func (r *Report) Complete() bool {
	return r.Base().Complete() && !slices.ContainsFunc(r.Traces, func(t Trace) bool {
		return t.Refused != ""
	})
}

// Trace explains how much longer a cell's round trips take than another cell's. Prices are in
// seconds for a whole round trip; each epoch counts as one value.
type Trace struct {
	Cell    analysis.Cell `json:"cell"`
	Label   string        `json:"label"`
	Against string        `json:"against"` // the other cell's label; "": there is none
	// Client is the command line of the foreign client that made the requests; "": toll did.
	Client string `json:"client,omitempty" printable:"text"`
	// Untraced is the difference to be explained, between the medians of untraced slices.
	Untraced analysis.Price `json:"untraced"`
	// Levels holds the other cell's median, and that plus Untraced, in seconds; nil: not known.
	Levels []float64 `json:"untraced_levels,omitempty"`
	// Path, WakeUps, Relay and Ends are what these parts add. Their sum and Unattributed give Untraced.
	Path         analysis.Price `json:"path"`
	WakeUps      analysis.Price `json:"wake_ups"`
	Relay        analysis.Price `json:"relay,omitzero"`
	Ends         analysis.Price `json:"ends,omitzero"` // the client and the server of a route
	Unattributed analysis.Price `json:"unattributed"`
	Trips        int            `json:"trips"`
	Followed     float64        `json:"followed"` // share of trips
	Events       float64        `json:"events"`   // per trip
	// Cost is what tracing added to a trip: traced minus untraced.
	Cost analysis.Price `json:"cost"`
	Refusal
	// Early means that there are no rows because the run ended before the epochs that have them.
	Early    bool      `json:"early,omitempty"`
	Rows     []Row     `json:"rows,omitempty"`
	Segments []Segment `json:"segments,omitempty"`
	// Its has the segments of the other cell.
	Its      []Segment          `json:"its_segments,omitempty"`
	Groups   []sample.StepGroup `json:"groups,omitempty"`
	Readers  map[string]float64 `json:"readers,omitempty"`
	Missing  []string           `json:"missing,omitempty"`
	Findings []Finding          `json:"findings,omitempty"`
}

// Refusal is why a trace has no rows. Its zero value is that it has.
type Refusal struct {
	Refused string  `json:"-"`                 // a code
	Words   string  `json:"refused,omitempty"` // see internal/show/sentence
	Run     string  `json:"-"`                 // "new" or "old", if two are compared
	Of      string  `json:"-"`                 // the label of the cell that has no rows
	Share   float64 `json:"-"`                 // of its trips, which were followed
	// After is the step after which most trips were lost, and Want what is missing there, in the share
	// Lacking of them; "": not known. NoRoom is the number of events for which the log had no room.
	After, Want string  `json:"-"`
	Lacking     float64 `json:"-"`
	NoRoom      int     `json:"-"`
}

// The codes of refusals.
const (
	EndedEarly  = "ended-early" // before the rounds that have the rows
	NoTrips     = "no-trips"
	FewFollowed = "few-followed"
)

// Title returns the labels of what is compared.
func (t Trace) Title() string {
	if t.Against == "" {
		return t.Label
	}
	return t.Label + " against " + t.Against
}

// Route reports whether t is of requests over a route to a server that runs.
func (t Trace) Route() bool { return t.Cell.Load == workload.Request }

// Whole names the row of Untraced. A foreign client's requests are timed by a capture at its device.
func (t Trace) Whole() string {
	if t.Client != "" {
		return "request at the client"
	}
	return "round trip, untraced"
}

// Row is a part of the round trip, both directions together.
type Row struct {
	Name string `json:"name"`
	// Its is the other cell's mid-mean, and Mine is Its plus what is added; nil: the cell lacks the
	// part.
	Mine  *float64       `json:"mine_s"`
	Its   *float64       `json:"its_s"`
	Added analysis.Price `json:"added"`
	// Epochs has the difference in each epoch, for a strip chart.
	Epochs []float64 `json:"epochs_s,omitempty"`
	Hooks  []Row     `json:"hooks,omitempty"` // parts of the row, one for each netfilter hook
	// Parts are how a process spent the row: its own CPU time, waiting for a CPU, asleep.
	Parts []Row `json:"parts,omitempty"`
}

// Segment is a segment of a cell's trip, without what tracing costs.
type Segment struct {
	sample.SegmentKey
	Row     string  `json:"row"`
	At      float64 `json:"at_s"` // begins at this time of the trip
	MidMean float64 `json:"mid_mean_s"`
	P99     float64 `json:"p99_s"`
	Share   float64 `json:"share"`
	Cost    float64 `json:"cost_s"` // cost of tracing, already subtracted
	// Slowest is its time in the slowest trip, with that cost; 0: unknown, or none. Tail is its mean in
	// the trips around the p99.
	Slowest float64 `json:"slowest_s,omitempty"`
	Tail    float64 `json:"p99_trips_s,omitempty"`
}

// Judge judges a results file as a trace.
func Judge(f *sample.File) *Report {
	j := analysis.Open(f)
	base := j.Report()
	j.Sort(base.Cells)
	between := pairs(j, base)
	r := &Report{Measured: base.Measured, Said: base.Said, Traces: Between(j, between)}
	if len(between) == 0 && f.Header.Plan.Foreign() {
		r.Traces = alone(j)
	}
	r.Found = Findings(r)
	return r
}

// pairs returns each cell with the cell that it is compared with, in the report's order, controls
// last.
func pairs(j *analysis.Run, r *analysis.Report) (out [][2]int) {
	var controls [][2]int
	for i, s := range j.Series {
		b, ok := j.BaselineOf(i)
		switch {
		case !ok || b == i || j.Failed(i) || j.Failed(b) || s.Cell.Placebo:
		case s.Cell.Control:
			controls = append(controls, [2]int{i, b})
		default:
			out = append(out, [2]int{i, b})
		}
	}
	place := func(p [2]int) int {
		return slices.IndexFunc(r.Cells, func(c analysis.Cell) bool {
			return c.Cell == j.Series[p[0]].Cell.Named()
		})
	}
	slices.SortStableFunc(out, func(a, b [2]int) int { return place(a) - place(b) })
	return append(out, controls...)
}

type study struct {
	*analysis.Run
	pairs [][2]int // indexes of cells, including controls
	cells map[int]tracing
	costs costs
	empty float64 // the time that an empty hook seems to take, in s
	memory
}

type memory struct {
	known       map[paired][]stats.Epoch
	priors      map[paired]stats.Prior
	differences map[paired]difference
}

// Between returns a trace for each pair of cells, which explains how much longer the first one's
// trips take.
func Between(j *analysis.Run, pairs [][2]int) []Trace {
	s := newStudy(j, pairs)
	for i, c := range j.Series {
		b, ok := j.BaselineOf(i)
		if p := [2]int{i, b}; ok && c.Cell.Control && len(c.Traced) > 0 &&
			!slices.Contains(pairs, p) {
			s.pairs = append(s.pairs, p)
		}
	}
	var all []tracing
	for _, p := range s.pairs {
		for _, i := range p {
			if _, ok := s.cells[i]; !ok {
				s.cells[i] = tracingOf(j.Series[i].Traced)
				all = append(all, s.cells[i])
			}
		}
	}
	s.costs = costsOf(all)
	if s.costs.relays = s.File.Header.Plan.Foreign(); s.costs.relays {
		s.costs.first = s.firstCapture(slices.Sorted(maps.Keys(s.cells)))
	}
	s.empty = emptyHook(all, s.costs.event.each)
	out := make([]Trace, len(pairs))
	for k, p := range pairs {
		out[k] = s.trace(p[0], p[1])
	}
	for k, p := range pairs {
		out[k].Findings = s.causes(&out[k], p[0], p[1], out)
	}
	tellOnce(out, pairs)
	return out
}

func newStudy(j *analysis.Run, pairs [][2]int) *study {
	return &study{Run: j, pairs: slices.Clone(pairs), cells: map[int]tracing{},
		memory: memory{map[paired][]stats.Epoch{}, map[paired]stats.Prior{},
			map[paired]difference{}}}
}

// about returns what is known of cell i without another one.
func (s *study) about(i int) Trace {
	c, none := s.Series[i].Cell, price(stats.Estimate{}, 0, 0)
	path, _ := s.File.Header.PathOf(c)
	t := Trace{Cell: analysis.Cell{Cell: c.Named()}, Label: label(c),
		Client:   workload.RequestOf(s.File.Header.Plan.LoadFor(c)).Client,
		Untraced: none, Path: none, WakeUps: none, Unattributed: none, Cost: s.cost(i)}
	t.Cell.Control = false
	t.Cell.Hops, t.Cell.Dial = slices.Concat([]string{}, path.Hops), path.Dial
	t.Cell.Witnessed = !s.File.Header.Plan.Foreign()
	t.Cell.Primary, t.Cell.Metrics = workload.LatencyP50, map[string]analysis.Metric{}
	mine := s.cells[i]
	t.Trips, t.Followed = mine.followed()
	t.Events = medianOf(mine.by[sample.Traced], func(x seen) float64 { return x.Events })
	t.Groups, t.Readers = mine.groups(), mine.readers()
	return t
}

func (s *study) trace(i, b int) Trace {
	t := s.about(i)
	t.Against = label(s.Series[b].Cell)
	if p := s.Price(i, b, workload.LatencyP50); p.N > 0 {
		t.Untraced = p
		its := stats.Median(analysis.Ordered(s.Series[b].Values[workload.LatencyP50]))
		t.Levels = []float64{its, max(0, its+p.Median)}
	}
	t.Missing = missing(s.cells[i], s.cells[b])
	if t.refuse(s.refused(i, b)); t.Refused != "" {
		return t
	}
	t.Segments, t.Its = s.segments(i), s.segments(b)
	s.fill(&t, i, b)
	return t
}

const controlled = " (control)"

func label(c sample.Cell) string {
	if c.Control {
		return analysis.RowName(c) + controlled
	}
	return analysis.RowName(c)
}

func (t *Trace) refuse(why Refusal) { t.Refusal, t.Early = why, why.Refused == EndedEarly }

// refused returns why the two cells have no rows.
func (s *study) refused(i, b int) Refusal {
	least := leastFollowed
	if s.File.Header.Plan.Foreign() {
		least = leastRequests
	}
	for _, k := range []int{i, b} {
		t, name := s.cells[k], label(s.Series[k].Cell)
		trips, share := t.followed()
		switch {
		case len(t.all) == 0, share >= least && len(t.by[sample.Traced]) == 0:
			return Refusal{Refused: EndedEarly, Of: name}
		case trips == 0:
			return Refusal{Refused: NoTrips, Of: name}
		case share < least:
			why := t.broken()
			why.Refused, why.Of, why.Share = FewFollowed, name, share
			return why
		}
	}
	return Refusal{}
}

func (t tracing) judged() []seen {
	return slices.Concat(t.by[sample.Traced], t.by[sample.TracedThrice])
}

func (t tracing) followed() (trips int, share float64) {
	n := 0
	for _, x := range t.all {
		trips += x.Trips
		n += x.Followed
	}
	if trips == 0 {
		return 0, 0
	}
	return trips, float64(n) / float64(trips)
}

// broken returns the step after which most trips were lost.
func (t tracing) broken() (out Refusal) {
	var all []sample.Break
	trips := 0
	for _, x := range t.all {
		out.NoRoom += x.Lost
		trips += x.Trips
		for _, b := range x.Broken {
			k := slices.IndexFunc(all, func(o sample.Break) bool {
				return o.After == b.After && o.Want == b.Want
			})
			if k < 0 {
				k = len(all)
				all = append(all, sample.Break{After: b.After, Want: b.Want})
			}
			all[k].Share += b.Share * float64(x.Trips)
		}
	}
	if len(all) > 0 {
		worst := slices.MaxFunc(all, func(a, b sample.Break) int {
			return cmp.Compare(a.Share, b.Share)
		})
		out.After, out.Want, out.Lacking = worst.After, worst.Want, worst.Share/float64(trips)
	}
	return out
}

func (t tracing) groups() (out []sample.StepGroup) {
	n := float64(len(t.by[sample.Traced]))
	for _, x := range t.by[sample.Traced] {
		for _, g := range x.Groups {
			k := slices.IndexFunc(out, func(o sample.StepGroup) bool {
				return slices.Equal(o.Steps, g.Steps)
			})
			if k < 0 {
				k = len(out)
				out = append(out, sample.StepGroup{Steps: g.Steps, Odd: g.Odd})
			}
			out[k].Share += g.Share / n
		}
	}
	slices.SortStableFunc(out, func(a, b sample.StepGroup) int {
		return cmp.Compare(b.Share, a.Share)
	})
	return out[:min(len(out), mostGroups)]
}

func (t tracing) readers() map[string]float64 {
	out := map[string]float64{}
	for _, x := range t.by[sample.Traced] {
		for _, kind := range slices.Sorted(maps.Keys(x.Readers)) {
			out[kind] += x.Readers[kind] / float64(len(t.by[sample.Traced]))
		}
	}
	return out
}

func missing(cells ...tracing) (out []string) {
	for _, t := range cells {
		for _, x := range t.by[sample.Traced] {
			for _, m := range x.Missing {
				if !slices.Contains(out, m) {
					out = append(out, m)
				}
			}
		}
	}
	return out
}

// medianOf returns the median over epochs, or 0 if there are none.
func medianOf(all []seen, of func(seen) float64) float64 {
	var xs []float64
	for _, x := range all {
		xs = append(xs, of(x))
	}
	if len(xs) == 0 {
		return 0
	}
	return stats.Median(xs)
}
