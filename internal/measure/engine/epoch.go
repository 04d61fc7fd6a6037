package engine

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/measure/load"
	"github.com/bridgetoll/bridgetoll/internal/measure/worker"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// member is a cell in an epoch. If it fails, the others continue.
type member struct {
	cell  int
	load  sample.Load
	path  *path.Path
	ends  *ends
	visit sample.Visit
	err   error

	before, after    []sample.Counters
	read, readAgain  int64
	slots            []int
	when             load.Schedule
	servers, clients []worker.Reply
	progress         progress
}

type progress int

const (
	notStarted progress = iota // not told to start: it moved nothing
	begun
	reported // its ends reported what they moved
)

func (g *member) hops() []path.Hop { return append(slices.Clone(g.path.Hops), g.path.Guards...) }

// epoch visits all cells at once. When all workers are connected, each cell gets its slices and its
// window.
func (r *run) epoch(ctx context.Context, round int, t plan.Turn) []sample.Visit {
	all := make([]*member, len(t.Cells))
	for i, cell := range t.Cells {
		c := r.Plan.Cells[cell]
		all[i] = &member{cell: cell, load: loadOf(r.Plan, c), path: r.paths[keyOf(r.Plan, c)],
			visit: sample.Visit{Turn: r.turn(round, cell)}}
	}
	r.host(ctx, round, all, r.budget.lengthOf(r.Plan, t))
	out := make([]sample.Visit, len(all))
	for i, g := range all {
		if g.err != nil {
			g.err = cmp.Or(left(g.path), g.err)
			g.visit.Outcome = r.outcome(g.err)
		}
		out[i] = g.visit
	}
	return out
}

// host measures the members' epoch, whose slices take length seconds.
func (r *run) host(ctx context.Context, round int, all []*member, length float64) {
	state := r.state(round)
	each := func(f func(g *member) error) { eachMember(all, f) }
	defer func() { // after a failure an end may be blocked for good
		_ = atOnce(len(all), func(i int) error {
			g := all[i]
			if g.ends == nil {
				return nil
			}
			err := g.ends.stop(g.err != nil || ctx.Err() != nil)
			g.err = cmp.Or(g.err, err)
			return nil
		})
	}()
	each(func(g *member) error { return r.start(ctx, g, state != sample.Untraced) })
	r.readPaths(all, func(g *member, c []sample.Counters) { g.before, g.read = c, r.Clock.Now() })
	r.open(ctx, all)
	t, err := r.attach(state, all)
	defer t.end()
	table := r.timetable(round, all, length)
	contended := r.contend(endsOf(all)...)
	if err == nil {
		err = r.undisturbed(func() error { return r.follow(ctx, table, all, t) })
	}
	if err != nil {
		each(func(*member) error { return err })
		return
	}
	each(func(g *member) (err error) {
		if g.servers, g.clients, err = g.ends.collect(ctx, g.load); err != nil {
			return err
		}
		g.progress = reported
		if err := g.ends.distant.note(ctx, &g.visit, g.fits); err != nil {
			return err
		}
		err = g.ends.note(g.load, g.servers, g.clients, &g.visit)
		if errors.Is(err, errStarved) {
			g.visit.Ends, err = g.visit.WithoutWindow(), nil
			g.visit.Metered = g.visit.WithoutCPU()
		}
		return err
	})
	contended()
	r.takeSlices(table, all)
	r.witness(all)
	r.takeTraces(t, all)
}

func (r *run) start(ctx context.Context, g *member, traced bool) (err error) {
	if err := left(g.path); err != nil {
		return err
	}
	g.ends = newEnds(r.Clock, g.path, sample.Shape{})
	g.ends.traced = traced
	if g.ends.distant, err = compareClocks(ctx, g.path); err != nil {
		return err
	}
	if err := r.relays.move(g.path, r.cpus(g.cell).Relay); err != nil {
		return err
	}
	return g.ends.start(ctx)
}

// open connects the members' ends at once, except for those that may listen at the same address,
// which it connects one after another.
func (r *run) open(ctx context.Context, all []*member) {
	type address struct {
		path *path.Path
		port uint16
	}
	on := map[address][]*member{}
	for _, g := range all {
		at := address{path: g.path}
		if slices.ContainsFunc(g.hops(), func(h path.Hop) bool { return h.Shared != nil }) {
			at = address{port: g.path.Servers[0].Listen.Port()}
		}
		on[at] = append(on[at], g)
	}
	var wg sync.WaitGroup
	for _, sharing := range on {
		wg.Go(func() {
			for _, g := range sharing {
				if g.err == nil {
					g.ends.shared = len(sharing) > 1
					// after a failure, the next member needs the port
					if g.err = g.ends.open(ctx, g.load, r.cpus(g.cell)); g.err != nil {
						_ = g.ends.stop(true)
						g.ends = nil
					}
				}
			}
		})
	}
	wg.Wait()
}

func (r *run) cpus(cell int) sample.CPUs {
	if r.Plan.Mesh != nil {
		return r.Plan.CPUs
	}
	return r.Plan.CPUsOf(r.Plan.Cells[cell])
}

func endsOf(all []*member) (out []*ends) {
	for _, g := range all {
		if g.err == nil {
			out = append(out, g.ends)
		}
	}
	return out
}

func eachMember(all []*member, f func(g *member) error) {
	_ = atOnce(len(all), func(i int) error {
		if all[i].err == nil {
			all[i].err = f(all[i])
		}
		return nil
	})
}

// readPaths reads the counters of each path once and passes them to take for each of its members.
func (r *run) readPaths(all []*member, take func(g *member, c []sample.Counters)) {
	var first []*member
	for _, g := range all {
		if g.err == nil && !slices.ContainsFunc(first, func(o *member) bool {
			return o.path == g.path
		}) {
			first = append(first, g)
		}
	}
	_ = atOnce(len(first), func(i int) error {
		counters, err := first[i].ends.distant.read(first[i].hops())
		for _, g := range all {
			if g.path != first[i].path || g.err != nil {
				continue
			}
			if g.err = err; err == nil {
				take(g, counters)
			}
		}
		return nil
	})
}

func (r *run) timetable(round int, all []*member, length float64) plan.Timetable {
	var cells []int
	pace := plan.Pace{Length: length, Known: r.known, Drain: r.drains}
	for _, g := range all {
		if g.err == nil {
			cells = append(cells, g.cell)
			pace.Unsure = max(pace.Unsure, g.ends.distant.unsure().Seconds())
			pace.Tail = max(pace.Tail, g.ends.distant.tail().Seconds())
		}
	}
	if len(cells) == 0 {
		return plan.Timetable{}
	}
	return plan.Epoch(r.Plan, cells, pace, round)
}

func (g *member) schedule(t plan.Timetable, start int64) {
	for i, s := range t.Slots {
		if s.Cell != g.cell {
			continue
		}
		slice := load.Slice{Start: start + s.Start, End: start + s.End}
		if s.Measured() {
			slice.From, slice.To = start+s.From, start+s.To
		}
		g.slots, g.when.Slices = append(g.slots, i), append(g.when.Slices, slice)
	}
	for _, w := range t.Windows {
		if w.Cell == g.cell {
			g.when.Start, g.when.End = start+w.Start, start+w.End
			g.when.From, g.when.To = start+w.From, start+w.To
			g.when.Hold = start + t.Length
		}
	}
}

// follow sends the schedules and reads the meters until the last window is over. Its error applies
// to the whole epoch.
func (r *run) follow(ctx context.Context, t plan.Timetable, all []*member, traced *tracing) error {
	if len(t.Windows) == 0 {
		return nil
	}
	ahead, ends := lead, 0
	for _, g := range all {
		if g.err == nil {
			ahead, ends = max(ahead, lead+g.ends.distant.lead()), ends+g.ends.count()
		}
	}
	ahead += time.Duration(ends) * leadEach
	resume, err := hushAll(ctx, all, ahead+time.Duration(t.Length))
	defer resume()
	if err != nil {
		return err
	}
	start := r.Clock.Now() + int64(ahead)
	traced.between(t, start)
	eachMember(all, func(g *member) error {
		g.schedule(t, start)
		if err := g.ends.distant.sureOfSlices(g.when); err != nil {
			return err
		}
		if err := g.ends.distant.meter(ctx, g.when.From, g.when.To); err != nil {
			return err
		}
		g.progress = begun
		return g.ends.schedule(g.when)
	})
	if err := r.Clock.Sleep(ctx, start); err != nil {
		return err
	}
	eachMember(all, func(g *member) error { g.ends.distant.mark(); return nil })
	if err := r.detach(ctx, traced, t, start); err != nil {
		return err
	}
	for _, w := range t.Windows {
		i := slices.IndexFunc(all, func(g *member) bool { return g.cell == w.Cell })
		if err := r.meterWindow(ctx, all[i]); err != nil {
			return err
		}
	}
	return nil
}

func hushAll(ctx context.Context, all []*member, took time.Duration) (resume func(), err error) {
	var (
		done []path.Channel
		undo []func()
	)
	resume = func() {
		for _, u := range undo {
			u()
		}
	}
	for _, g := range all {
		if g.err != nil || g.path.Channel == nil || slices.Contains(done, g.path.Channel) {
			continue
		}
		quiet, err := g.ends.distant.hush(ctx, took)
		if err != nil {
			return resume, err
		}
		done, undo = append(done, g.path.Channel), append(undo, quiet)
	}
	return resume, nil
}

func (r *run) meterWindow(ctx context.Context, g *member) error {
	if g.err != nil {
		return nil
	}
	far, pids := g.ends.distant, pidsOf(g.path, nil)
	first, err := r.readAt(ctx, g.when.From, pids)
	if err != nil {
		return err
	}
	last, err := r.readAt(ctx, g.when.To, pids)
	if err != nil {
		return err
	}
	if r.Clock.Now() < g.when.End { // later, replies use the channel, and only the agents can tell
		if g.err = far.quiet(); g.err != nil {
			return nil
		}
	}
	g.ends.metered(first, last, g.fits, &g.visit)
	return nil
}

// fits reports whether the time between two readings of the meters, in s, is close enough to the
// load's window. A late reading also counts other things.
func fits(l sample.Load, took float64) bool {
	return math.Abs(took-l.Window) <= maxMeterError*l.Window
}

func (g *member) fits(took float64) bool { return fits(g.load, took) }
