package trace

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// seen holds the trace of a cell in one epoch.
type seen struct {
	round int
	*sample.Trace
	rows map[string]*sum
	// hooks has the parts of rows in netfilter hooks, by the names of row and hook.
	hooks map[[2]string]*sum
	// parts has how processes spent their rows, by the names of row and part.
	parts map[[2]string]*sum
}

// sum is the sum of a row's segments.
type sum struct {
	slots   []analysis.SliceValue // in the order of the timetable
	midMean float64
	events  map[steps]float64
	devices []string // the devices' kinds
}

func (s *sum) add(t *sample.Trace, g sample.Segment) {
	if s.slots == nil {
		s.slots = make([]analysis.SliceValue, len(t.Slots))
		for k, at := range t.Slots {
			s.slots[k].At = at
		}
		s.events = map[steps]float64{}
	}
	for k, x := range g.MidMeans {
		s.slots[k].X += x
	}
	s.midMean += g.MidMean
	s.events[stepsOf(g)] += g.Events
	if d := deviceKind(g.Hop); d != "" && !slices.Contains(s.devices, d) {
		s.devices = append(s.devices, d)
	}
}

// deviceKind returns toll's word for a kind of device.
func deviceKind(hop string) string {
	if hop == "loopback" {
		return "lo"
	}
	return hop
}

func see(v *sample.Visit) seen {
	out := seen{v.Round, v.Trace, map[string]*sum{}, map[[2]string]*sum{}, map[[2]string]*sum{}}
	row := ""
	for _, g := range v.Trace.Segments {
		hook, is := hookOf(g.SegmentKey)
		if !is {
			row = rowOf(g.SegmentKey)
			at(out.rows, row).add(v.Trace, g)
			if name := partOf(g.SegmentKey); name != "" {
				at(out.parts, [2]string{row, name}).add(v.Trace, g)
			}
			continue
		}
		at(out.hooks, [2]string{row, hook}).add(v.Trace, g)
		if row != "" {
			at(out.rows, row).add(v.Trace, g)
		}
	}
	for _, s := range out.rows {
		sortSlots(s.slots)
	}
	for _, s := range slices.Concat(slices.Collect(maps.Values(out.hooks)),
		slices.Collect(maps.Values(out.parts))) {
		sortSlots(s.slots)
	}
	return out
}

func at[K comparable](m map[K]*sum, key K) *sum {
	if m[key] == nil {
		m[key] = &sum{}
	}
	return m[key]
}

func sortSlots(s []analysis.SliceValue) {
	slices.SortFunc(s, func(a, b analysis.SliceValue) int { return cmp.Compare(a.At, b.At) })
}

// total returns the sum of the wanted rows' slots and events, without midMean and devices.
func (s seen) total(want func(row string) bool) *sum {
	out := &sum{events: map[steps]float64{}}
	for _, name := range slices.Sorted(maps.Keys(s.rows)) {
		r := s.rows[name]
		if !want(name) {
			continue
		}
		for at, n := range r.events {
			out.events[at] += n
		}
		if out.slots == nil {
			out.slots = slices.Clone(r.slots)
			continue
		}
		for k := range out.slots {
			out.slots[k].X += r.slots[k].X
		}
	}
	return out
}

// slotsOf returns a row's time in each slice: 0 if the trips lack the row.
func (s seen) slotsOf(r *sum) []analysis.SliceValue {
	if r != nil && r.slots != nil {
		return r.slots
	}
	out := make([]analysis.SliceValue, len(s.Slots))
	for k, at := range s.Slots {
		out[k].At = at
	}
	sortSlots(out)
	return out
}

// tracing holds what a cell's epochs showed.
type tracing struct {
	by  map[sample.Tracing][]seen // epochs with followed trips
	all []*sample.Trace           // epochs traced once and thrice
}

func tracingOf(visits []*sample.Visit) tracing {
	out := tracing{by: map[sample.Tracing][]seen{}}
	for _, v := range visits {
		state := v.Trace.State
		if state == sample.Traced || state == sample.TracedThrice {
			out.all = append(out.all, v.Trace)
		}
		n := len(out.by[state])
		if len(v.Trace.Slots) == 0 || n > 0 && out.by[state][n-1].round == v.Round {
			continue // repeated, without the other cells
		}
		out.by[state] = append(out.by[state], see(v))
	}
	return out
}

// slowest returns the epoch traced once that has the slowest trip, as far as one is recorded.
func (t tracing) slowest() (out seen) {
	most := 0.0
	for _, x := range t.by[sample.Traced] {
		sum := 0.0
		for _, g := range x.Segments {
			sum += g.Slowest
		}
		if sum > most {
			out, most = x, sum
		}
	}
	return out
}

// tail returns a segment's mean in the trips around the p99, over the epochs traced once that have
// enough trips for one.
func (t tracing) tail(k sample.SegmentKey) (sum float64) {
	n := 0
	for _, x := range t.by[sample.Traced] {
		if slices.ContainsFunc(x.Segments, func(g sample.Segment) bool { return g.Tail > 0 }) {
			n++
		}
		for _, g := range x.Segments {
			if g.SegmentKey == k {
				sum += g.Tail
			}
		}
	}
	return sum / float64(max(1, n))
}

// of returns how long a segment took in the slowest trip; 0: unknown, or none.
func (s seen) of(k sample.SegmentKey) (sum float64) {
	if s.Trace == nil {
		return 0
	}
	for _, g := range s.Segments {
		if g.SegmentKey == k {
			sum += g.Slowest
		}
	}
	return sum
}

// relayed reports whether a relay is on the way of trips.
func (t tracing) relayed() bool {
	return slices.ContainsFunc(t.judged(), func(x seen) bool {
		for row := range x.rows {
			if kindOf(row) == inRelay {
				return true
			}
		}
		return false
	})
}

func (t tracing) round(state sample.Tracing, round int) (seen, bool) {
	i := slices.IndexFunc(t.by[state], func(s seen) bool { return s.round == round })
	if i < 0 {
		return seen{}, false
	}
	return t.by[state][i], true
}

// The cost of an event, in s, if nothing better is known, and the most that one may cost. The error
// is at least that of counting the second program like the first.
const (
	assumedCost  = 0.15e-6
	assumedError = 0.05e-6
	leastError   = 0.02e-6
	mostCost     = 1e-6
	// mostRelayCost is the most that an event of a relay may cost: each record there stands for
	// several calls of programs, as of its other threads and its other socket.
	mostRelayCost = 4e-6
)

// steps names the events before and after a segment, without their devices.
type steps [2]string

func stepsOf(g sample.Segment) (out steps) {
	for k, s := range g.Steps {
		out[k], _, _ = strings.Cut(s, " ")
	}
	return out
}

func byName(a, b steps) int { return slices.Compare(a[:], b[:]) }

type cost struct{ each, err float64 } // one event, in s

// costs has what each further copy of the programs costs at events.
type costs struct {
	of    map[steps]cost // in the path, and where relays run
	event cost           // any event in the path
	// first is what the first copy costs, in times of a further one.
	first cost
	// relays means that the cost of events in relays is known. That of captured packets is.
	relays bool
}

// costsOf learns the costs from epochs with copies of each program. It leaves out wake-ups, whose
// noise hides the costs, and relays of the lab, which get slower for other reasons.
func costsOf(cells []tracing) costs {
	growth, all, most := map[steps][]float64{}, []float64{}, map[steps]float64{}
	for _, t := range cells {
		for _, thrice := range t.by[sample.TracedThrice] {
			once, ok := t.nearest(thrice.round)
			if !ok {
				continue
			}
			a, b := timesOf(once.Trace), timesOf(thrice.Trace)
			grown, events := 0.0, 0.0
			for _, at := range slices.SortedFunc(maps.Keys(b), byName) {
				x, y := b[at], a[at]
				if x.events > 0 && y.events > 0 {
					grew := (x.took - y.took) / more
					growth[at] = append(growth[at], grew/x.events)
					if most[at] = mostRelayCost; !x.relay {
						most[at] = mostCost
						grown, events = grown+grew, events+x.events
					}
				}
			}
			if events > 0 {
				all = append(all, grown/events)
			}
		}
	}
	out := costs{of: map[steps]cost{}, event: cost{assumedCost, assumedError}, first: cost{each: 1}}
	if len(all) > 0 {
		out.event = cost{possible(stats.Median(all), mostCost), assumedError}
	}
	for at, xs := range growth {
		e := stats.NewEpoch(xs, 1)
		out.of[at] = cost{possible(e.Centre, most[at]),
			math.Hypot(leastError, e.Spread/math.Sqrt(float64(e.N)))}
		if e.N < leastGrowths {
			out.of[at] = cost{out.of[at].each, assumedError}
		}
	}
	return out
}

// leastGrowths is the least number of growths that shows how much growths differ.
const leastGrowths = 4

func possible(cost, most float64) float64 { return min(max(0, cost), most) }

// The first copy of captures makes the kernel clone each packet that leaves, and read the clock:
// docs/method.md has what that costs.
const (
	assumedFirst      = 1.6
	assumedFirstError = 0.5
	mostFirst         = 3
)

// firstCapture returns what the first copy of the captures costs, in times of a further one, as far
// as the whole requests of cells show it.
func (s *study) firstCapture(cells []int) cost {
	out := stats.Estimate{Centre: assumedFirst, Error: assumedFirstError, Pairs: 1}
	for _, i := range cells {
		one, three := s.copies(i, sample.Traced), s.copies(i, sample.TracedThrice)
		further := three.Plus(one.Times(-1)).Times(1.0 / more)
		if one.Pairs == 0 || three.Pairs == 0 || further.Centre <= sure*further.Error {
			continue
		}
		x := one.Centre / further.Centre
		err := math.Hypot((1+x/more)*one.Error, x/more*three.Error) / further.Centre
		out = together(out, stats.Estimate{Centre: x, Error: err, Pairs: 1})
	}
	return cost{min(max(1, out.Centre), mostFirst), out.Error}
}

// sure is the number of standard errors from zero from which on a difference is used as a divisor.
const sure = 3

// nearest returns the traced epoch nearest to a round. ok is false if there is none.
func (t tracing) nearest(round int) (out seen, ok bool) {
	for _, s := range t.by[sample.Traced] {
		if !ok || math.Abs(float64(s.round-round)) < math.Abs(float64(out.round-round)) {
			out, ok = s, true
		}
	}
	return out, ok
}

type spell struct {
	took, events float64
	relay        bool // which runs
}

// timesOf returns the time and the number of events between steps, in the path and while relays
// run.
func timesOf(t *sample.Trace) map[steps]spell {
	out := map[steps]spell{}
	for i, g := range t.Segments {
		relay := g.Part == sample.PartRelayed && i > 0 &&
			t.Segments[i-1].Part == sample.PartRelayedWait // else it sleeps in between
		if relay || kindOf(rowOf(g.SegmentKey)) == inPath {
			x := out[stepsOf(g)]
			out[stepsOf(g)] = spell{x.took + g.MidMean, x.events + g.Events, relay}
		}
	}
	return out
}

// segment returns what tracing adds to a segment, in s.
func (c costs) segment(g sample.Segment) float64 {
	return c.total(map[steps]float64{stepsOf(g): g.Events}, kindOf(rowOf(g.SegmentKey)))
}

// total returns what one copy of the programs costs at the events, in s.
func (c costs) total(events map[steps]float64, k kind) (sum float64) {
	if k == inRelay && !c.relays {
		return 0
	}
	for _, at := range slices.SortedFunc(maps.Keys(events), byName) {
		sum += events[at] * c.between(at, k).each * c.first.each
	}
	return sum
}

// between returns what a further copy costs at an event between the steps, in s.
func (c costs) between(at steps, k kind) cost {
	if x, ok := c.of[at]; ok && (k == inPath || k == inRelay) {
		return x
	}
	return c.event
}
