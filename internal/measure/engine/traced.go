package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	kernel "github.com/bridgetoll/bridgetoll/internal/kernel/trace"
	"github.com/bridgetoll/bridgetoll/internal/measure/trace"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Tracer records where packets are in the kernel.
type Tracer interface {
	Attach(c kernel.Config) (Recording, error)
	// Missing lists the tracepoints that the kernel lacks.
	Missing() []string
	// Others lists the programs of other recorders that are attached now.
	Others() []string
}

// Recording is a *kernel.Recording, or a test's own.
type Recording interface {
	Between(from, until int64)
	Stop() error
	Log() (byCPU [][]kernel.Event, lost int)
}

// Kernel is the kernel's tracer.
type Kernel struct{ *kernel.Tracer }

var _ Tracer = Kernel{}

// Attach begins to record.
func (k Kernel) Attach(c kernel.Config) (Recording, error) { return k.Tracer.Attach(c) }

const (
	// eachEvents is the size of each CPU's log, aloneEvents the size if there is one CPU, whose
	// trips are short. mostEvents limits all logs together.
	eachEvents  = 1 << 20
	aloneEvents = 3 << 20
	mostEvents  = 1 << 22
)

// tracing traces an epoch; nil: it is not traced.
type tracing struct {
	state   sample.Tracing
	devices map[*path.Path]map[trace.Device]sample.Link
	rec     Recording
	stop    func() error
	room    int // events in each CPU's log
}

// errBeside is the failure of visits that another program's tracing disturbed.
var errBeside = errors.New("another program traced the kernel")

// besides holds the programs of others that were attached before the first epoch, without those of
// another toll trace, which come and go.
type besides struct {
	known bool
	usual []string
}

// undisturbed calls follow, and returns errBeside if other programs than usual were at the
// tracepoints before or after.
func (r *run) undisturbed(follow func() error) error {
	if r.Tracer == nil {
		return follow()
	}
	if err := r.alone(); err != nil {
		return err
	}
	return cmp.Or(follow(), r.alone())
}

func (r *run) alone() error {
	now, b := r.Tracer.Others(), &r.besides
	if !b.known {
		b.known, b.usual = true, slices.DeleteFunc(slices.Clone(now), isToll)
	}
	switch fresh, gone := beyond(now, b.usual), beyond(b.usual, now); {
	case slices.ContainsFunc(fresh, isToll):
		return fmt.Errorf("%w: another toll trace", errBeside)
	case len(fresh) > 0:
		return fmt.Errorf("%w: %s", errBeside, some(fresh))
	case len(gone) > 0:
		return fmt.Errorf("%w and stopped: %s", errBeside, some(gone))
	}
	return nil
}

func isToll(program string) bool { return strings.HasPrefix(program, kernel.OwnPrefix) }

// beyond returns the entries of list that of lacks.
func beyond(list, of []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(x string) bool {
		return slices.Contains(of, x)
	})
}

// some names a program, and the number of further ones.
func some(programs []string) string {
	if n := len(programs) - 1; n > 0 {
		return fmt.Sprintf("%s, and %d more", programs[0], n)
	}
	return programs[0]
}

func (r *run) state(round int) sample.Tracing {
	if r.Tracer == nil {
		return sample.Untraced
	}
	return plan.TracingOf(r.Plan, round)
}

// attach starts to trace an epoch. It returns nil if nothing is traced.
func (r *run) attach(state sample.Tracing, all []*member) (t *tracing, err error) {
	all = slices.DeleteFunc(slices.Clone(all), func(g *member) bool { return g.err != nil })
	if state == sample.Untraced || len(all) == 0 {
		return nil, nil
	}
	t = &tracing{state: state, devices: map[*path.Path]map[trace.Device]sample.Link{}}
	spaces, err := t.survey(all)
	defer func() {
		for _, f := range spaces {
			f.Close()
		}
		if err != nil {
			err = fmt.Errorf("trace: %w", err)
		}
		r.untraced = err
	}()
	if err != nil {
		return nil, err
	}
	c := r.traced(all)
	if state == sample.TracedThrice {
		c.Copies = sample.TraceCopies
	}
	if state == sample.TracedHooks {
		for _, f := range spaces {
			c.Hooks = append(c.Hooks, int(f.Fd()))
		}
	}
	t.room = c.Events
	if t.rec, err = r.Tracer.Attach(c); err != nil {
		return nil, err
	}
	t.stop = sync.OnceValue(func() error {
		if err := t.rec.Stop(); err != nil {
			return fmt.Errorf("stop tracing: %w", err)
		}
		return nil
	})
	return t, nil
}

// survey notes the devices of all paths and returns the namespaces to trace. The caller closes
// them, even after an error.
func (t *tracing) survey(all []*member) (spaces []*os.File, err error) {
	seen := map[uint32]bool{}
	for _, g := range all {
		if t.devices[g.path] != nil || g.path.Namespaces == nil {
			continue
		}
		own := map[trace.Device]sample.Link{}
		t.devices[g.path] = own
		found, err := g.path.Namespaces()
		for _, n := range found {
			fresh := false
			for _, l := range n.Links {
				fresh = fresh || !seen[l.NetNS]
				seen[l.NetNS] = true
				own[trace.Device{NetNS: l.NetNS, Index: l.Index}] = l
			}
			if !fresh {
				n.Close()
				continue
			}
			spaces = append(spaces, n.File)
		}
		if err != nil {
			return spaces, err
		}
	}
	return spaces, nil
}

func (r *run) traced(all []*member) (c kernel.Config) {
	pinned := true
	for _, g := range all {
		c.Ports = append(c.Ports, g.path.Clients[0].Dial.Port(), g.path.Servers[0].Listen.Port())
		relays := pidsOf(g.path, nil)
		c.PIDs = append(append(c.PIDs, relays...), g.path.Copiers...)
		for _, e := range g.ends.all() {
			c.PIDs = append(c.PIDs, e.proc.PID)
		}
		cpus := r.cpus(g.cell)
		pinned = pinned && len(cpus.Client) > 0 && len(cpus.Server) > 0 &&
			(len(cpus.Relay) > 0 || len(relays) == 0) && len(g.path.Copiers) == 0 &&
			!steers(r.Plan.Cells[g.cell].Tune)
		c.CPUs = slices.Concat(c.CPUs, cpus.Client, cpus.Server, cpus.Relay)
	}
	if !pinned {
		c.CPUs = append(c.CPUs, r.Environment.CPUsAllowed...)
	}
	c.CPUs, c.Ports, c.PIDs = set(c.CPUs), set(c.Ports), set(c.PIDs)
	if c.Events = min(eachEvents, mostEvents/max(1, len(c.CPUs))); len(c.CPUs) == 1 {
		c.Events = aloneEvents
	}
	return c
}

// steers reports whether packets may be left to other CPUs.
func steers(t mode.Tunes) bool {
	return slices.ContainsFunc(t.List(), func(t mode.Tune) bool {
		return slices.Contains([]mode.Key{mode.RPS, mode.XPS, mode.Queues, mode.Threaded}, t.Key)
	})
}

func set[T int | uint16](xs []T) []T {
	slices.Sort(xs)
	return slices.Compact(xs)
}

// between limits the recording to the measured slices of an epoch that begins at start.
func (t *tracing) between(table plan.Timetable, start int64) {
	first := slices.IndexFunc(table.Slots, plan.Slot.Measured)
	if t == nil || first < 0 {
		return
	}
	t.rec.Between(start+table.Slots[first].From, start+table.Slots[len(table.Slots)-1].End)
}

// detach waits for the end of the slices and stops tracing.
func (r *run) detach(ctx context.Context, t *tracing, table plan.Timetable, start int64) error {
	if t == nil {
		return nil
	}
	if err := r.Clock.Sleep(ctx, start+table.Slots[len(table.Slots)-1].End); err != nil {
		return err
	}
	r.untraced = t.stop()
	return r.untraced
}

func (t *tracing) end() {
	if t != nil {
		_ = t.stop()
	}
}

// takeTraces follows the cells' trips. It leaves out the windows' results, because programs were
// being detached, and the slices' results, because the traces have more detail.
func (r *run) takeTraces(t *tracing, all []*member) {
	if t == nil {
		return
	}
	log := trace.Log{Missing: r.Tracer.Missing()}
	log.CPUs, log.Lost = t.rec.Log()
	eachMember(all, func(g *member) error {
		g.visit.Trace = trace.Follow(log, t.cell(g), t.recorded(log, g.trips()))
		g.visit.Trace.State = t.state
		g.visit.Ends, g.visit.Timings = g.visit.WithoutWindow(), sample.Timings{}
		g.visit.Metered, g.visit.Slices = sample.Metered{}, nil
		return nil
	})
}

// recorded leaves out the slices that end after a CPU's log was full.
func (t *tracing) recorded(log trace.Log, all []trace.Slice) []trace.Slice {
	for _, events := range log.CPUs {
		if n := len(events); n > 0 && n == t.room {
			all = slices.DeleteFunc(all, func(s trace.Slice) bool {
				return s.Bounds[len(s.Bounds)-1] > events[n-1].TS
			})
		}
	}
	return all
}

func (t *tracing) cell(g *member) trace.Cell {
	return trace.Cell{Client: g.ends.clients[0].proc.PID, Server: g.ends.servers[0].proc.PID,
		Relays: pidsOf(g.path, nil), Copiers: g.path.Copiers, UDP: sample.UDP(g.load.Kind),
		Devices: t.devices[g.path],
		Hops:    g.path.Kinds()}
}

// trips returns the slices with trips. It changes the client's reply, so it is called once.
func (g *member) trips() (out []trace.Slice) {
	for k, slot := range g.slots {
		s := trace.Slice{Slot: slot, Bounds: g.clients[0].Slices[k].Bounds}
		for i := 1; i < len(s.Bounds); i++ {
			s.Bounds[i] += s.Bounds[i-1]
		}
		if len(s.Bounds) > 1 {
			out = append(out, s)
		}
	}
	return out
}
