package trace

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// seen is a cell in one traced epoch.
type seen struct {
	round int
	*sample.Trace
	rows map[string]*sum
	// hooks are parts of rows, by row and name of the hook
	hooks map[[2]string]*sum
}

// sum is what the segments of a row add up to.
type sum struct {
	slots   []analysis.Slot // in the order of the timetable
	midMean float64
	events  map[[2]string]float64 // by the steps of segments
	devices []string              // kinds
}

func (s *sum) add(t *sample.Trace, g sample.Segment) {
	if s.slots == nil {
		s.slots = make([]analysis.Slot, len(t.Slots))
		for k, at := range t.Slots {
			s.slots[k].At = at
		}
		s.events = map[[2]string]float64{}
	}
	for k, x := range g.Medians {
		s.slots[k].X += x
	}
	s.midMean += g.MidMean
	s.events[g.Steps] += g.Events
	if d := deviceKind(g.Hop); d != "" && !slices.Contains(s.devices, d) {
		s.devices = append(s.devices, d)
	}
}

// deviceKind returns a kind of device as toll's words have it.
func deviceKind(hop string) string {
	if hop == "loopback" {
		return "lo"
	}
	return hop
}

func see(v *sample.Visit) seen {
	out := seen{v.Round, v.Trace, map[string]*sum{}, map[[2]string]*sum{}}
	row := ""
	for _, g := range v.Trace.Segments {
		hook, is := hookOf(g.SegmentKey)
		if !is {
			row = rowOf(g.SegmentKey)
			at(out.rows, row).add(v.Trace, g)
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
	for _, s := range out.hooks {
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

func sortSlots(s []analysis.Slot) {
	slices.SortFunc(s, func(a, b analysis.Slot) int { return cmp.Compare(a.At, b.At) })
}

// total returns what the rows that are wanted add up to.
func (s seen) total(want func(row string) bool) *sum {
	out := &sum{events: map[[2]string]float64{}}
	for _, name := range slices.Sorted(maps.Keys(s.rows)) {
		r := s.rows[name]
		if !want(name) {
			continue
		}
		out.midMean += r.midMean
		for steps, n := range r.events {
			out.events[steps] += n
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

// slotsOf returns a row's slices: 0 in each slice of a trip without that row.
func (s seen) slotsOf(r *sum) []analysis.Slot {
	if r != nil && r.slots != nil {
		return r.slots
	}
	out := make([]analysis.Slot, len(s.Slots))
	for k, at := range s.Slots {
		out[k].At = at
	}
	sortSlots(out)
	return out
}

// tracing holds what a cell's epochs showed, by state.
type tracing map[sample.Tracing][]seen

func tracingOf(visits []*sample.Visit) tracing {
	out := tracing{}
	for _, v := range visits {
		all := out[v.Trace.State]
		if n := len(all); len(v.Trace.Slots) == 0 || n > 0 && all[n-1].round == v.Round {
			continue // a repetition: nothing else worked beside it
		}
		out[v.Trace.State] = append(all, see(v))
	}
	return out
}

func (t tracing) round(state sample.Tracing, round int) (seen, bool) {
	i := slices.IndexFunc(t[state], func(s seen) bool { return s.round == round })
	if i < 0 {
		return seen{}, false
	}
	return t[state][i], true
}

// An event's cost where nothing better is known, and the most that one may cost.
const (
	assumedCost = 0.15e-6
	mostCost    = 1e-6
)

// costs says what an event of tracing costs, in s.
type costs struct {
	of    map[[2]string]float64 // by the steps of a segment
	event float64               // of any part of the path
}

// costsOf learns from epochs in which each program is there twice. The wake-ups' noise hides it, and
// a relay gets slower for other reasons.
func costsOf(cells []tracing) costs {
	growth, all := map[[2]string][]float64{}, []float64{}
	for _, t := range cells {
		for _, twice := range t[sample.TracedTwice] {
			once, ok := t.nearest(twice.round)
			if !ok {
				continue
			}
			a, b := pairsOf(once.Trace), pairsOf(twice.Trace)
			grown, events := 0.0, 0.0
			for _, steps := range slices.SortedFunc(maps.Keys(b), byName) {
				x := b[steps]
				if y, ok := a[steps]; ok && x[1] > 0 && y[1] > 0 {
					growth[steps] = append(growth[steps], (x[0]-y[0])/x[1])
					grown, events = grown+x[0]-y[0], events+x[1]
				}
			}
			if events > 0 {
				all = append(all, grown/events)
			}
		}
	}
	out := costs{map[[2]string]float64{}, assumedCost}
	if len(all) > 0 {
		out.event = possible(stats.Median(all))
	}
	for steps, xs := range growth {
		out.of[steps] = possible(stats.Median(xs))
	}
	return out
}

func byName(a, b [2]string) int { return slices.Compare(a[:], b[:]) }

func possible(cost float64) float64 { return min(max(0, cost), mostCost) }

// nearest returns the traced epoch that is nearest to a round.
func (t tracing) nearest(round int) (out seen, ok bool) {
	for _, s := range t[sample.Traced] {
		if !ok || math.Abs(float64(s.round-round)) < math.Abs(float64(out.round-round)) {
			out, ok = s, true
		}
	}
	return out, ok
}

// pairsOf returns the time and the events between each pair of steps.
func pairsOf(t *sample.Trace) map[[2]string][2]float64 {
	out := map[[2]string][2]float64{}
	for _, g := range t.Segments {
		if kindOf(rowOf(g.SegmentKey)) == inPath {
			x := out[g.Steps]
			out[g.Steps] = [2]float64{x[0] + stats.Median(g.Medians), x[1] + g.Events}
		}
	}
	return out
}

// segment returns what tracing adds to a segment.
func (c costs) segment(g sample.Segment) float64 {
	k := kindOf(rowOf(g.SegmentKey))
	if k == inRelay {
		return 0
	}
	return g.Events * c.between(g.Steps, k)
}

// between returns what an event between the steps costs.
func (c costs) between(steps [2]string, k kind) float64 {
	if x, ok := c.of[steps]; ok && k == inPath {
		return x
	}
	return c.event
}
