package trace

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	kernel "github.com/bridgetoll/bridgetoll/internal/kernel/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

const (
	maxGaps   = 900 // different gaps of a cell
	maxGroups = 20
	leastOf   = 0.01 // least share of trips in a group that is kept
	maxBreaks = 10
)

// column has a gap's time in each trip that has it.
type column struct {
	gap
	trips  []int // trips that have the gap, in order
	took   []int64
	events int
	place  float64 // sum over trips of its position there, from 0 to 1
}

type group struct {
	steps []step // the steps of its first trip
	count int
	first int // trip
}

// sums collects the trips of a cell.
type sums struct {
	cell    *Cell
	trips   int
	slots   []int // slices with followed trips
	first   []int // each slice's first trip
	slot    int
	middles [][]int // each slice's trips in the middle
	totals  []int64 // followed trips' times, in ns
	events  int
	columns map[gap]*column
	groups  map[string]*group
	lost    map[lost]int
	readers map[string]int
	wakings int
	id      []byte
}

func newSums(c *Cell) *sums {
	return &sums{cell: c, columns: map[gap]*column{}, groups: map[string]*group{},
		lost: map[lost]int{}, readers: map[string]int{}}
}

func (s *sums) begin(slot int) { s.slot = slot }

func (s *sums) lose(l lost) {
	s.trips++
	s.lost[l]++
}

// add adds the trip that was followed last.
func (s *sums) add(f *follower, from, to int64) {
	all := f.stretches(from, to)
	news := 0
	for _, x := range all {
		if s.columns[x.gap] == nil {
			news++
		}
	}
	if news > 0 && len(s.columns)+news > maxGaps {
		s.lose(lost{after: names[0], want: "the steps of other trips"})
		return
	}
	trip := len(s.totals)
	if len(s.slots) == 0 || s.slots[len(s.slots)-1] != s.slot {
		s.slots, s.first = append(s.slots, s.slot), append(s.first, trip)
	}
	s.trips++
	s.totals = append(s.totals, to-from)
	s.events += len(f.events)
	for i, x := range all {
		c := s.columns[x.gap]
		if c == nil {
			c = &column{gap: x.gap}
			s.columns[x.gap] = c
		}
		c.events += x.events
		if n := len(c.trips); n > 0 && c.trips[n-1] == trip {
			c.took[n-1] += x.took
			continue
		}
		c.trips, c.took = append(c.trips, trip), append(c.took, x.took)
		c.place += float64(i) / float64(len(all))
	}
	for _, l := range f.legs {
		s.readers[l.reader]++
		s.wakings++
	}
	s.group(f.steps, trip)
}

// group counts a trip's list of steps. It leaves out steps that depend on whether a reader sleeps.
func (s *sums) group(steps []step, trip int) {
	s.id = s.id[:0]
	for _, x := range steps {
		if isListed(x) {
			s.id = append(s.id, byte(x.Kind))
			d := deviceOf(x.Event)
			s.id = binary.LittleEndian.AppendUint32(s.id, d.NetNS)
			s.id = binary.LittleEndian.AppendUint32(s.id, d.Index)
			if x.Kind.Hook() {
				s.id = append(s.id, byte(x.Dev))
			}
		}
	}
	g := s.groups[string(s.id)]
	if g == nil {
		g = &group{first: trip}
		for _, x := range steps {
			if isListed(x) {
				g.steps = append(g.steps, x)
			}
		}
		s.groups[string(s.id)] = g
	}
	g.count++
}

func isListed(s step) bool {
	switch s.Kind {
	case kernel.Softirq, kernel.Waking, kernel.IPI, kernel.Switch, kernel.Copy:
		return false
	}
	return true
}

func (s *sums) trace() *sample.Trace {
	n := len(s.totals)
	out := &sample.Trace{Trips: s.trips, Followed: n, Slots: s.slots, Broken: s.broken()}
	if n == 0 {
		return out
	}
	out.Events = float64(s.events) / float64(n)
	middle := s.middle(0, n)
	sum := int64(0)
	for _, trip := range middle {
		sum += s.totals[trip]
	}
	out.MidMean = seconds(float64(sum) / float64(len(middle)))
	s.middles = nil
	for i := range s.slots {
		from, to := s.tripsOf(i)
		total := seconds(median(slices.Clone(s.totals[from:to])))
		out.Totals = append(out.Totals, nanoseconds(total))
		s.middles = append(s.middles, s.middle(from, to))
	}
	names := newNamer(s.cell)
	for g := range s.columns {
		names.learn(g)
	}
	out.Segments = s.segments(names, middle)
	out.Groups = s.listed(names)
	out.Readers = map[string]float64{}
	for kind, count := range s.readers {
		out.Readers[kind] = float64(count) / float64(s.wakings)
	}
	return out
}

// tripsOf returns the range of trips of slice i of slots.
func (s *sums) tripsOf(i int) (from, to int) {
	if i+1 < len(s.first) {
		return s.first[i], s.first[i+1]
	}
	return s.first[i], len(s.totals)
}

// middle returns, in order, the trips whose totals are between the 40th and the 60th percentile of
// a range of trips. It returns both of two trips.
func (s *sums) middle(from, to int) (out []int) {
	sorted := slices.Sorted(slices.Values(s.totals[from:to]))
	n := float64(len(sorted) - 1)
	a, b := sorted[int(math.Ceil(0.4*n))], sorted[int(0.6*n)]
	for i, t := range s.totals[from:to] {
		if t >= min(a, b) && t <= max(a, b) {
			out = append(out, from+i)
		}
	}
	return out
}

func (s *sums) segments(names *namer, middle []int) []sample.Segment {
	same := map[sample.SegmentKey][]*column{}
	for g, c := range s.columns {
		k := names.key(g)
		same[k] = append(same[k], c)
	}
	type placed struct {
		at float64
		sample.Segment
	}
	var all []placed
	for k, columns := range same {
		slices.SortFunc(columns, func(a, b *column) int { return cmp.Compare(a.at(), b.at()) })
		usual := usual(columns)
		first, last := usual[0], usual[len(usual)-1]
		x := placed{at: first.at(), Segment: s.segment(merge(columns), middle)}
		x.SegmentKey = k
		x.Steps = [2]string{nameOf(first.begin()), nameOf(last.end())}
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.Steps[0], b.Steps[0]),
			cmp.Compare(a.Part, b.Part), cmp.Compare(a.Device, b.Device),
			cmp.Compare(a.Where, b.Where))
	})
	out := make([]sample.Segment, len(all))
	for i, x := range all {
		out[i] = x.Segment
	}
	together(out)
	return out
}

// together adds each segment's mid-means of slices to the first segment with the same part and kind
// of hop, and removes them from the others. It ignores netfilter's hooks.
func together(all []sample.Segment) {
	type kind struct {
		part sample.Part
		hop  string
	}
	first := map[kind]sample.Times{}
	for i := range all {
		s := &all[i]
		sum, known := first[kind{s.Part, s.Hop}]
		switch {
		case strings.HasPrefix(string(s.Part), string(sample.PartHook)):
		case !known:
			first[kind{s.Part, s.Hop}] = s.MidMeans
		default:
			for k, x := range s.MidMeans {
				sum[k] += x
			}
			s.MidMeans = nil
		}
	}
	for _, sum := range first {
		for k, x := range sum {
			sum[k] = nanoseconds(x)
		}
	}
}

// usual returns the columns that at least half as many trips have as the most frequent one.
func usual(columns []*column) []*column {
	most := 0
	for _, c := range columns {
		most = max(most, len(c.trips))
	}
	return slices.DeleteFunc(slices.Clone(columns), func(c *column) bool {
		return 2*len(c.trips) < most
	})
}

func (c *column) at() float64 { return c.place / float64(len(c.trips)) }

func (c *column) begin() kernel.Event {
	switch {
	case c.nat:
		return kernel.Event{Kind: kernel.NATIn, Dev: c.hook - 1}
	case c.hook > 0:
		return kernel.Event{Kind: kernel.HookIn, Dev: c.hook - 1}
	}
	return kernel.Event{Kind: c.from, NetNS: c.a.NetNS, Dev: c.a.Index}
}

func (c *column) end() kernel.Event {
	switch {
	case c.nat:
		return kernel.Event{Kind: kernel.NATOut, Dev: c.hook - 1}
	case c.hook > 0:
		return kernel.Event{Kind: kernel.HookOut, Dev: c.hook - 1}
	}
	return kernel.Event{Kind: c.to, NetNS: c.b.NetNS, Dev: c.b.Index}
}

func merge(columns []*column) *column {
	if len(columns) == 1 {
		return columns[0]
	}
	took := map[int]int64{}
	out := &column{}
	for _, c := range columns {
		out.events += c.events
		for i, trip := range c.trips {
			took[trip] += c.took[i]
		}
	}
	out.trips = slices.Sorted(maps.Keys(took))
	for _, trip := range out.trips {
		out.took = append(out.took, took[trip])
	}
	return out
}

// mean returns the mean over trips, which are in order. Trips without the column count as 0.
func (c *column) mean(trips []int) float64 {
	sum := int64(0)
	i, _ := slices.BinarySearch(c.trips, trips[0])
	for _, trip := range trips {
		for i < len(c.trips) && c.trips[i] < trip {
			i++
		}
		if i < len(c.trips) && c.trips[i] == trip {
			sum += c.took[i]
		}
	}
	return float64(sum) / float64(len(trips))
}

// segment returns a column's figures.
func (s *sums) segment(c *column, middle []int) sample.Segment {
	n := float64(len(s.totals))
	out := sample.Segment{Share: float64(len(c.trips)) / n, Events: float64(c.events) / n}
	for _, trips := range s.middles {
		out.MidMeans = append(out.MidMeans, seconds(c.mean(trips)))
	}
	out.MidMean = seconds(c.mean(middle))
	sorted := slices.Sorted(slices.Values(c.took))
	const p = 0.99
	if at := int(math.Ceil(p*n)) - 1 - (len(s.totals) - len(sorted)); at >= 0 {
		out.P99 = seconds(float64(sorted[at]))
	}
	return out
}

func (s *sums) listed(names *namer) (out []sample.StepGroup) {
	all := slices.SortedFunc(maps.Values(s.groups), func(a, b *group) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.first, b.first))
	})
	for _, g := range all[:min(len(all), maxGroups)] {
		share := float64(g.count) / float64(len(s.totals))
		if share < leastOf {
			break
		}
		x := sample.StepGroup{Share: share, Odd: names.odd(g.steps)}
		for _, step := range g.steps {
			x.Steps = append(x.Steps, s.cell.describe(step.Event))
		}
		out = append(out, x)
	}
	return out
}

func (s *sums) broken() (out []sample.Break) {
	for l, count := range s.lost {
		out = append(out, sample.Break{Share: float64(count) / float64(s.trips), After: l.after,
			Want: l.want})
	}
	slices.SortFunc(out, func(a, b sample.Break) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.After, b.After),
			cmp.Compare(a.Want, b.Want))
	})
	return out[:min(len(out), maxBreaks)]
}

// median sorts xs. It returns 0 for none.
func median(xs []int64) float64 {
	n := len(xs)
	if n == 0 {
		return 0
	}
	slices.Sort(xs)
	return (float64(xs[(n-1)/2]) + float64(xs[n/2])) / 2
}

func seconds(ns float64) float64 { return ns / float64(time.Second) }

// nanoseconds rounds seconds to whole nanoseconds, like the results file.
func nanoseconds(s float64) float64 { return seconds(math.Round(s * float64(time.Second))) }
