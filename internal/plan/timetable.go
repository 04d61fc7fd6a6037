package plan

import (
	"cmp"
	"math"
	"math/rand/v2"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Timetable assigns an epoch's time to its cells. All instants are ns since the start of the
// epoch's first slot.
type Timetable struct {
	// Slots are in order of time and do not overlap.
	Slots []Slot
	// Windows follow them, one for each cell.
	Windows []Slot
	// Length is the end of the epoch.
	Length int64
}

// Slot is the time of one cell.
type Slot struct {
	Cell  int // index into Plan.Cells
	Start int64
	// From and To bound what is measured; both are 0 in a run-in, which is discarded.
	From, To int64
	End      int64
}

// Measured reports whether the slot is measured; a run-in is not.
func (s Slot) Measured() bool { return s.To > s.From }

const (
	// runIn is the length (s) of a cell's first slot, in which its connections leave slow start.
	runIn = 0.020
	// leadShare is the share of a slice that is discarded first, and leadMost its limit (s): the
	// caches still hold another cell's data.
	leadShare = 0.25
	leadMost  = 0.010
	// sliceTail is the time (s) for which a load continues after the measured part. During the rest
	// that follows, all cells pause.
	sliceTail = 0.00025
	rest      = 0.00125
	// Round trips depend on where in the kernel's tick they are. Slots follow each other at a whole
	// number of beats (s) and golden of one, so in an epoch of a second the slots of each cell meet
	// all parts of a tick of 1 to 10 ms. Distances that are a simple fraction of the tick meet few
	// parts, other ones for each cell, as long as the epoch lasts.
	beat   = 1e-3
	golden = 0.6180339887
	// windowTail and windowRest are the same for a window. Meters may be read late.
	windowTail = 0.006
	windowRest = 0.003
	// near is the maximum number of cells between two slices of the baseline.
	near        = 3
	leastCycles = 4
	// After leastCycles, a known cell has a slice in one of seldom cycles.
	seldom = 3
)

func isSliced(p sample.Plan, cell int) bool {
	c := p.Cells[cell]
	return p.Loads.At(c).Slice > 0 && !c.Shape.Crowd()
}

// Pace holds what earlier epochs have shown. The zero value is for the first.
type Pace struct {
	// Length is the duration of all slices (s); 0: the plan's.
	Length float64
	// Known marks the cells that get fewer slices, by index.
	Known []bool
	// Drain is the time (s), by cell, during which queued data still arrives after a slice.
	Drain []float64
	// Unsure bounds the difference of the ends' clocks (s). Tail is the additional time (s) for which
	// a window's load continues if meters are on other machines.
	Unsure, Tail float64
}

// Epoch returns the timetable of an epoch of the sliced cells, all of one load and one point of a
// sweep. Cells of one group are close together, with the baseline near each of them: its slices
// alternate with the control's.
func Epoch(p sample.Plan, cells []int, pace Pace, round int) Timetable {
	rng := rand.New(rand.NewPCG(p.Seed, uint64(round)<<1|1))
	l := p.Loads.At(p.Cells[cells[0]])
	length := cmp.Or(pace.Length, p.Epoch)
	t := &maker{slice: l.Slice, pace: pace}
	for _, i := range rng.Perm(len(cells)) {
		t.runIn(cells[i])
	}
	groups := groupsOf(p, cells)
	ran := t.now
	for cycle := 0; cycle < leastCycles || t.now-ran < ns(length); cycle++ {
		before := t.now
		for _, g := range rng.Perm(len(groups)) {
			groups[g].cycle(t, rng, cycle)
		}
		if took := t.now - before; cycle+1 >= leastCycles && t.now-ran+took/2 > ns(length) {
			break
		}
	}
	for _, i := range rng.Perm(len(cells)) {
		t.window(cells[i], l)
	}
	t.Length = t.now
	return t.Timetable
}

type maker struct {
	Timetable
	slice float64
	pace  Pace
	now   int64
}

func (t *maker) rest(cell int) int64 {
	after := rest + t.pace.Unsure
	if cell < len(t.pace.Drain) {
		after += t.pace.Drain[cell]
	}
	return ns(after)
}

func (t *maker) runIn(cell int) {
	s := Slot{Cell: cell, Start: t.now, End: t.now + ns(runIn)}
	t.Slots = append(t.Slots, s)
	t.now = s.End + t.rest(cell)
}

func (t *maker) add(cell int) {
	from := t.now + ns(min(leadShare*t.slice, leadMost)+t.pace.Unsure)
	s := Slot{Cell: cell, Start: t.now, From: from, To: from + ns(t.slice)}
	s.End = s.To + ns(sliceTail+t.pace.Unsure)
	t.Slots = append(t.Slots, s)
	took := float64(s.End+t.rest(cell)-s.Start) / float64(ns(beat))
	t.now = s.Start + int64((math.Ceil(took-golden)+golden)*float64(ns(beat)))
}

func (t *maker) window(cell int, l sample.Load) {
	from := t.now + ns(l.Warmup)
	s := Slot{Cell: cell, Start: t.now, From: from, To: from + ns(l.Window)}
	s.End = s.To + ns(windowTail+t.pace.Tail)
	t.Windows = append(t.Windows, s)
	t.now = s.End + ns(windowRest) + t.rest(cell)
}

type grouped struct {
	bases  []int // the baseline and its control; none without a baseline
	others []int
	turn   int // index into bases of the next one
}

func groupsOf(p sample.Plan, cells []int) []*grouped {
	type key struct {
		from    mode.Placement
		on, pin string
		shape   sample.Shape
	}
	var out []*grouped
	at := map[key]*grouped{}
	for _, i := range cells {
		c := p.Cells[i]
		k := key{c.From, c.On, c.Pin, c.Shape}
		g := at[k]
		if g == nil {
			g = &grouped{}
			at[k] = g
			out = append(out, g)
		}
		if p.IsBaseline(c) && !c.Placebo && (c.Control || len(g.bases) == 0) {
			g.bases = append(g.bases, i)
		} else {
			g.others = append(g.others, i)
		}
	}
	return out
}

func (g *grouped) cycle(t *maker, rng *rand.Rand, cycle int) {
	var now []int
	for _, i := range rng.Perm(len(g.others)) {
		cell := g.others[i]
		if known := t.pace.Known; cycle >= leastCycles && cell < len(known) && known[cell] &&
			(cycle+cell)%seldom != 0 {
			continue
		}
		now = append(now, cell)
	}
	for i := 0; i == 0 || i < len(now); i += near {
		if n := len(g.bases); n > 0 {
			t.add(g.bases[g.turn%n])
			g.turn++
		}
		for _, cell := range now[min(i, len(now)):min(i+near, len(now))] {
			t.add(cell)
		}
	}
}

func ns(seconds float64) int64 { return int64(seconds * 1e9) }
