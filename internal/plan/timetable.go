package plan

import (
	"cmp"
	"math/rand/v2"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Timetable says which cell of an epoch works when. All instants are ns since the
// epoch's first slot starts. It is known to all workers before that, so that
// nothing is said while it runs.
type Timetable struct {
	// Slots are in the order of time, one after another, and do not overlap.
	Slots []Slot
	// Windows come after them, one for each cell.
	Windows []Slot
	// Length is when all is over.
	Length int64
}

// Slot is the time of one cell.
type Slot struct {
	Cell  int   // index into Plan.Cells
	Start int64 // its load starts
	// From and To bound what is measured; both are 0 in a run-in, which is discarded
	// entirely.
	From, To int64
	End      int64 // its load stops
}

// Measured reports whether something is measured in the slot.
func (s Slot) Measured() bool { return s.To > s.From }

const (
	// runIn is a cell's first slot, in which its connections leave slow start and
	// find their buffers, in s.
	runIn = 0.020
	// leadShare is the part of a slice that is thrown away before what is measured, and
	// leadMost what that is at most, in s: the caches are another cell's.
	leadShare = 0.25
	leadMost  = 0.010
	// sliceTail is how long a load works on after what is measured, so that both ends
	// see its end pass, and rest how long all cells pause after that, in s.
	sliceTail = 0.00025
	rest      = 0.00125
	// windowTail is the same for a window, for meters that are read late, and windowRest
	// what follows.
	windowTail = 0.006
	windowRest = 0.003
	// near is how many cells are between two slices of the baseline at most.
	near = 3
	// leastCycles is how many cycles an epoch has, however many cells it has.
	leastCycles = 4
	// seldom: a cell that is known well enough has slices in every so many-th cycle
	// after the least that there are.
	seldom = 3
)

// isSliced reports whether a cell is measured in slices.
func isSliced(p sample.Plan, cell int) bool {
	c := p.Cells[cell]
	return p.LoadAt(c).Slice > 0 && !c.Shape.Crowd()
}

// Pace is what earlier epochs have shown. The zero value is that of the first.
type Pace struct {
	// Length is how long the slices take, in s; 0: as the plan has it.
	Length float64
	// Known are cells, by index, that are known well enough: they get fewer slices.
	Known []bool
	// Drain is by cell how long what a slice has queued goes on after it, in s.
	Drain []float64
	// Unsure bounds by how much the ends' clocks differ, in s, and Tail is how much
	// longer a window's load goes on where meters are on other machines.
	Unsure, Tail float64
}

// Epoch makes the timetable of an epoch of the sliced cells, all of one load, of a sweep at
// one point. Cells
// of one group are close together, the baseline near each of them: its slices and
// the control's alternate.
func Epoch(p sample.Plan, cells []int, pace Pace, round int) Timetable {
	rng := rand.New(rand.NewPCG(p.Seed, uint64(round)<<1|1))
	l := p.LoadAt(p.Cells[cells[0]])
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

// maker makes a timetable; now is where it is.
type maker struct {
	Timetable
	slice float64
	pace  Pace
	now   int64
}

// rest is how long all cells pause after a slot of the cell.
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
	t.now = s.End + t.rest(cell)
}

func (t *maker) window(cell int, l sample.Load) {
	from := t.now + ns(l.Warmup)
	s := Slot{Cell: cell, Start: t.now, From: from, To: from + ns(l.Window)}
	s.End = s.To + ns(windowTail+t.pace.Tail)
	t.Windows = append(t.Windows, s)
	t.now = s.End + ns(windowRest) + t.rest(cell)
}

// grouped are the cells that are compared with one baseline.
type grouped struct {
	bases  []int // the baseline and its control; none if there is no baseline
	others []int
	turn   int // whose turn it is of bases
}

func groupsOf(p sample.Plan, cells []int) []*grouped {
	type key struct {
		from, on, pin string
		shape         sample.Shape
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

// cycle gives each cell a slot, and the baseline or its control one before every
// few of them.
func (g *grouped) cycle(t *maker, rng *rand.Rand, cycle int) {
	var now []int
	for _, i := range rng.Perm(len(g.others)) {
		cell := g.others[i]
		if known := t.pace.Known; cycle >= leastCycles && cell < len(known) && known[cell] && (cycle+cell)%seldom != 0 {
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
