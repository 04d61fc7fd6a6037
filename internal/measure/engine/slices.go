package engine

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/measure/load"
	"github.com/bridgetoll/bridgetoll/internal/measure/worker"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

const (
	// mostDrain bounds the rest (s) after a cell's slices. A cell that queues more disturbs other
	// slices, which are left out.
	mostDrain  = 0.025
	firstDrain = 0.002
	// drainShare is the share of a cell's slices that have drained in that rest.
	drainShare  = 0.95
	leastSlices = 2
	// figures is the number of digits of a slice's rate: a file has thousands.
	figures = 6
)

// firstDrains returns the rest that each cell first gets, in s: 0 for trips, which leave no bytes
// behind.
func firstDrains(p sample.Plan) []float64 {
	out := make([]float64, len(p.Cells))
	for i, c := range p.Cells {
		if !workload.Of(sample.Load{Kind: c.Load}).Trips {
			out[i] = firstDrain
		}
	}
	return out
}

// takeSlices records the members' slices. A slice is lost if its end measured too short or too long
// a time, or if an earlier one still drained into it.
func (r *run) takeSlices(t plan.Timetable, all []*member) {
	spoilt := make([]bool, len(t.Slots))
	for _, g := range all {
		if g.err == nil && !g.timesTrips() { // trips leave nothing behind
			g.spill(t, spoilt)
			r.learn(g)
		}
	}
	for _, g := range all {
		if g.err == nil {
			g.err = g.take(t, spoilt)
		}
	}
}

// counts returns the ends whose slices count: those that receive, or that make the trips.
func (g *member) counts() []worker.Reply {
	switch {
	case workload.BulkOf(g.load).Bidir:
		return []worker.Reply{g.servers[0], g.clients[0]}
	case g.timesTrips() || workload.BulkOf(g.load).Reverse:
		return g.clients
	}
	return g.servers
}

// drained returns when slice k's last bytes arrived, in ns of this machine's clock; 0: unknown.
func (g *member) drained(k int) int64 {
	last := int64(0)
	for i, side := range [][]worker.Reply{g.servers, g.clients} {
		m := g.path.Clients[0].Machine
		if i == 0 {
			m = g.path.Servers[0].Machine
		}
		if s := side[0].Slices; k < len(s) && s[k].Drained > 0 {
			last = max(last, s[k].Drained-int64(g.ends.distant.offsets[m].Ahead))
		}
	}
	return last
}

// spill marks the slots of other cells into which the member's slices drained.
func (g *member) spill(t plan.Timetable, spoilt []bool) {
	for k, slot := range g.slots {
		until := g.drained(k)
		begin := g.when.Slices[k].Start - t.Slots[slot].Start // of the epoch
		for i := slot + 1; i < len(t.Slots) && t.Slots[i].Cell != g.cell; i++ {
			if until <= begin+t.Slots[i].From || until <= begin+t.Slots[i].Start {
				break
			}
			spoilt[i] = true
		}
	}
}

// learn sets the rest that the cell gets after its slices in later epochs.
func (r *run) learn(g *member) {
	var after []float64
	for k := range g.slots {
		if at := g.drained(k); at > 0 {
			after = append(after, time.Duration(max(0, at-g.when.Slices[k].End)).Seconds())
		}
	}
	if len(after) == 0 {
		return
	}
	slices.Sort(after)
	r.drains[g.cell] = min(mostDrain, after[int(drainShare*float64(len(after)-1))])
}

func (g *member) take(t plan.Timetable, spoilt []bool) error {
	ends := g.counts()
	for _, e := range ends {
		if len(e.Slices) != len(g.slots) {
			return fmt.Errorf("client or server ran %d "+
				"slices instead of %d", len(e.Slices), len(g.slots))
		}
	}
	out := &sample.Slices{}
	for k, slot := range g.slots {
		if !t.Slots[slot].Measured() {
			continue
		}
		rate, median, ok := g.slice(ends, k)
		if !ok || spoilt[slot] {
			out.Lost++
			continue
		}
		out.Slots, out.Rates, out.CPU = append(out.Slots, slot), append(out.Rates, rate),
			append(out.CPU, rounded(g.cpu(k)/rate))
		if g.timesTrips() {
			out.Medians = append(out.Medians, median)
		}
	}
	if len(out.Slots) < leastSlices {
		return fmt.Errorf("%w: only %d of %d slices began and ended on time", errStarved,
			len(out.Slots), len(out.Slots)+out.Lost)
	}
	g.visit.Slices = out
	return nil
}

func (g *member) timesTrips() bool { return workload.Of(g.load).Trips }

func (g *member) slice(ends []worker.Reply, k int) (rate, median float64, ok bool) {
	for _, e := range ends {
		s := e.Slices[k]
		width := time.Duration(s.Width).Seconds()
		if width < g.load.Slice/stretch || width > g.load.Slice*stretch {
			return 0, 0, false
		}
		n := float64(s.Received)
		if g.timesTrips() {
			n = float64(s.Trips) / float64(max(1, workload.QueryOf(g.load).Queries))
			if s.Median == 0 {
				return 0, 0, false
			}
			median = time.Duration(s.Median).Seconds()
		}
		rate += n / width
	}
	return rounded(rate), median, rate > 0
}

func (g *member) cpu(k int) (busy float64) {
	for _, e := range []worker.Reply{g.servers[0], g.clients[0]} {
		if k < len(e.Slices) && e.Slices[k].Width > 0 {
			busy += float64(e.Slices[k].CPU) / float64(e.Slices[k].Width)
		}
	}
	return busy
}

func rounded(x float64) float64 {
	if x == 0 {
		return 0
	}
	scale := math.Pow10(figures - 1 - int(math.Floor(math.Log10(math.Abs(x)))))
	return math.Round(x*scale) / scale
}

func (d *distant) sureOfSlices(when load.Schedule) error {
	for _, s := range when.Slices {
		if width := s.To - s.From; width > 0 && d.unsure() > time.Duration(width) {
			return fmt.Errorf(
				"the machines' clocks are only known to ± %s, too coarsely for slices of %s",
				d.unsure(), time.Duration(width))
		}
	}
	return nil
}
