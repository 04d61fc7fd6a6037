package load

import (
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
)

// Slice is a part of an epoch in which this load runs and the others rest. The end that sends first
// is active from Start to End; the other end only reacts.
type Slice struct {
	Start int64 `json:"start"`
	// From and To bound what is measured; both are 0 in a run-in, which is discarded.
	From int64 `json:"from,omitempty"`
	To   int64 `json:"to,omitempty"`
	End  int64 `json:"end"`
}

func (s Slice) measured() bool { return s.To > s.From }

// SliceStats has what one end did in a slice.
type SliceStats struct {
	Width    int64 `json:"width"` // ns between passing From and To; 0: not passed
	Sent     int64 `json:"sent,omitempty"`
	Received int64 `json:"received,omitempty"`
	Trips    int64 `json:"trips,omitempty"`
	CPU      int64 `json:"cpu,omitempty"` // CPU time of the process, in ns
	// Median is the median trip, or page of queries, in ns; 0: none was timed.
	Median int64 `json:"median,omitempty"`
	// Late is the time from Start to the first byte, in ns, at the end that sends first.
	Late int64 `json:"late,omitempty"`
	// Drained is when this end was last active before its next slice, in ns; 0: unknown, as after
	// the last slice.
	Drained int64 `json:"drained,omitempty"`
	// Bounds has, in ns, when the first trip between From and To began, then how long each trip
	// took. A trip begins when the one before ends. See Options.Bounds.
	Bounds []int64 `json:"bounds,omitempty"`
}

// mostTrips is the most trips that are timed in a slice, from its start. mostBounds is the most
// bounds of all slices together.
const (
	mostTrips  = 1 << 13
	mostBounds = 1 << 17
)

type slicing struct {
	list  []Slice
	stats []SliceStats
	at    int
	phase phase
	cur   SliceStats
	began mark
	last  mark
	took  []int64
	// bounds is the current slice's part of all; empty: not measured, or not requested.
	bounds, all []int64
	// active means that the thread sleeps between its slices. Other threads block until something
	// arrives.
	active, rested bool
}

type phase int

const (
	untilStart phase = iota
	untilFrom
	untilTo
	untilEnd
)

func (t *thread) slice(list []Slice) {
	t.slices = &slicing{list: list, stats: make([]SliceStats, 0, len(list)), active: t.active,
		took: make([]int64, 0, mostTrips)}
	if t.bounded {
		t.slices.all = make([]int64, mostBounds)
		for i := range t.slices.all { // page faults happen now rather than in a trip
			t.slices.all[i] = 1
		}
	}
	t.next = t.slices.bound()
	if t.active {
		t.crossSlices(clock.Now())
	}
}

// sends reports whether the thread sends first if its end does.
func (t *thread) sends() bool { return !t.bulk.Bidir || t.twin != nil }

func (s *slicing) saw(t *thread, now int64) {
	if n := len(s.bounds); n > 0 && n < cap(s.bounds) && t.trips > s.last.trips {
		s.bounds = append(s.bounds, now)
	}
	s.last.at = now
	s.last.sent, s.last.recvd, s.last.trips = t.sent, t.recvd, t.trips
}

func (s *slicing) bound() int64 {
	sl := s.list[s.at]
	return [...]int64{untilStart: sl.Start, untilFrom: sl.From, untilTo: sl.To,
		untilEnd: sl.End}[s.phase]
}

func (s *slicing) over() bool { return s.at == len(s.list) }

func (t *thread) crossSlices(now int64) {
	s := t.slices
	for !s.over() && now >= s.bound() {
		t.crossSlice(now)
		if s.phase == untilStart && s.active {
			next := t.when.Start
			if !s.over() {
				next = s.bound()
			}
			sleepUntil(next)
			now, s.rested = clock.Now(), true
		}
	}
	s.saw(t, now)
	t.next = t.when.From
	if !s.over() {
		t.next = s.bound()
	}
}

func (t *thread) crossSlice(now int64) {
	s := t.slices
	sl := s.list[s.at]
	switch s.phase {
	case untilStart:
		if n := len(s.stats); n > 0 {
			s.stats[n-1].Drained = s.last.at
		}
		s.cur = SliceStats{}
		if s.active {
			s.cur.Late = now - sl.Start
		}
		s.phase = untilEnd
		if sl.measured() {
			s.phase = untilFrom
		}
	case untilFrom:
		s.began = mark{at: now, sent: t.sent, recvd: t.recvd, trips: t.trips,
			processCPU: t.processCPU()}
		s.took = s.took[:0]
		if len(s.all) > 0 {
			s.bounds = append(s.all[:0:min(len(s.all), mostTrips+1)], now)
		}
		s.last.trips = t.trips
		s.phase = untilTo
	case untilTo:
		b, e := s.began, mark{at: now, sent: t.sent, recvd: t.recvd, trips: t.trips}
		cpu := float64(t.processCPU() - b.processCPU)
		if !s.active && now > sl.End && s.last.at >= b.at { // the new bytes are another slice's
			// So is the CPU time for them, and some of it is of the time behind To.
			if whole, in := b.until(e), b.until(s.last); whole > 0 && s.last.at > b.at {
				// The clock is read so often that a longer time without bytes was a wait.
				const most = 2
				cpu *= in / whole * min(most, float64(sl.To-b.at)/float64(s.last.at-b.at))
			}
			e = s.last
			e.at = sl.To
		}
		s.cur.Width = e.at - b.at
		s.cur.Sent, s.cur.Received, s.cur.Trips = e.sent-b.sent, e.recvd-b.recvd, e.trips-b.trips
		s.cur.CPU = int64(cpu)
		s.cur.Median = median(s.took)
		s.takeBounds()
		s.phase = untilEnd
	case untilEnd:
		s.stats = append(s.stats, s.cur)
		s.at++
		s.phase = untilStart
	}
}

func (s *slicing) takeBounds() {
	n := len(s.bounds)
	if n > 1 {
		for i := n - 1; i > 0; i-- {
			s.bounds[i] -= s.bounds[i-1]
		}
		s.cur.Bounds = s.bounds
	}
	s.bounds, s.all = nil, s.all[n:]
}

// processCPU returns the process's CPU time, in ns, for the first thread, and 0 for the others.
func (t *thread) processCPU() int64 {
	if !t.first {
		return 0
	}
	return clock.CPU(unix.CLOCK_PROCESS_CPUTIME_ID)
}

// rested reports whether the thread has slept between slices since the last call.
func (t *thread) rested() bool {
	if t.slices == nil || !t.slices.rested {
		return false
	}
	t.slices.rested = false
	return true
}

// timed records the time of a trip, in ns, for the slice, and reports whether it counts for the
// window's histogram.
func (t *thread) timed(took int64) bool {
	if s := t.slices; s != nil && s.phase == untilTo && len(s.took) < cap(s.took) {
		s.took = append(s.took, took)
	}
	return t.inWindow()
}

func median(xs []int64) int64 {
	n := len(xs)
	if n == 0 {
		return 0
	}
	slices.Sort(xs)
	return (xs[(n-1)/2] + xs[n/2]) / 2
}

// together merges the threads' slices: it adds amounts, takes the longest times, and averages
// widths and medians. Bounds exist only for a single thread.
func together(threads []*thread, n int) ([]SliceStats, error) {
	if n == 0 {
		return nil, nil
	}
	out := make([]SliceStats, n)
	var of [2][]int64
	of[0], of[1] = make([]int64, n), make([]int64, n) // threads with a width, a median
	for _, t := range threads {
		if t.slices == nil || len(t.slices.stats) < n {
			return nil, errors.New("the load ended before its slices did")
		}
		for i, x := range t.slices.stats {
			o := &out[i]
			o.Sent += x.Sent
			o.Received += x.Received
			o.Trips += x.Trips
			o.CPU += x.CPU
			o.Late, o.Drained = max(o.Late, x.Late), max(o.Drained, x.Drained)
			if len(threads) == 1 {
				o.Bounds = x.Bounds
			}
			o.Width += x.Width
			o.Median += x.Median
			of[0][i] += min(1, x.Width)
			of[1][i] += min(1, x.Median)
		}
	}
	for i := range out {
		out[i].Width /= max(1, of[0][i])
		out[i].Median /= max(1, of[1][i])
	}
	return out, nil
}
