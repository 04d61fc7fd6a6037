package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/measure/load"
	"github.com/bridgetoll/bridgetoll/internal/measure/worker"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

const (
	// lead is the time from the schedule's sending to the common start.
	lead = 3 * time.Millisecond
	// leadEach is added for each worker in all visits made at once, because this process sends all
	// schedules and requests to meters.
	leadEach = 300 * time.Microsecond
	// tail is how long the load goes on after the window, for the meters.
	tail        = 10 * time.Millisecond
	openTimeout = 8 * time.Second
	// doneTimeout counts from the window's end.
	doneTimeout = 3 * time.Second
	// drainTimeout is added for each stream: what is queued must arrive.
	drainTimeout = 50 * time.Millisecond
	// graceTimeout bounds how long one end may go on after the other failed.
	graceTimeout = 100 * time.Millisecond
	exitTimeout  = 500 * time.Millisecond
	// eachTimeout is added to the timeouts for each worker of a visit.
	eachTimeout = 30 * time.Millisecond
)

func (r *run) visit(ctx context.Context, round, cell int) sample.Visit {
	c := r.Plan.Cells[cell]
	v := sample.Visit{Turn: r.turn(round, cell)}
	k, l := keyOf(r.Plan, c), loadOf(r.Plan, c)
	programs := workload.ExecOf(l).Program
	release, err := hold(r.paths[k])
	switch {
	case err != nil:
	case r.Endpoints != nil:
		err = r.ask(ctx, c, l, &v)
	case programs != nil:
		err = r.runPrograms(ctx, k, *programs, &v)
	default:
		err = r.measure(ctx, r.paths[k], l, c.Shape, &v)
	}
	if err = errors.Join(err, release()); err != nil {
		v.Outcome = r.outcome(err)
	}
	return v
}

// hold calls the path's Hold, if it has one. release is never nil.
func hold(p *path.Path) (release func() error, err error) {
	none := func() error { return nil }
	if p == nil || p.Hold == nil {
		return none, nil
	}
	if release, err = p.Hold(); err != nil {
		return none, err
	}
	return release, nil
}

func (r *run) turn(round, cell int) sample.Turn {
	return sample.Turn{Round: round, Cell: cell, At: r.elapsed()}
}

func (r *run) outcome(err error) sample.Outcome {
	r.notice(err)
	if cut := (*path.CutError)(nil); errors.As(err, &cut) {
		r.cut = cut
	}
	return sample.Outcome{Failure: path.OneLine(err),
		Starved: errors.Is(err, errStarved) || errors.Is(err, errBeside)}
}

func (r *run) ask(ctx context.Context, c sample.Cell, l sample.Load, v *sample.Visit) error {
	first, err := r.readAt(ctx, 0, nil)
	if err != nil {
		return err
	}
	if state := plan.TracingOf(r.Plan, v.Round); state != sample.Untraced {
		v.Trace = &sample.Trace{State: state}
	}
	if err := r.Endpoints.Visit(ctx, c, l, v); err != nil {
		v.Trace = nil
		return err
	}
	last, err := r.readAt(ctx, 0, nil)
	if err != nil {
		return err
	}
	m, throttled := first.until(last)
	// otherwise Visit recorded readings that are closer to what it measured
	if v.Throttled = throttled; v.Elapsed == 0 {
		v.Metered = m
	}
	return nil
}

// loadOf returns the cell's load with tunes that are options of the load.
func loadOf(p sample.Plan, c sample.Cell) sample.Load {
	l := p.LoadFor(c)
	if t, ok := c.Tune.Get(mode.Nodelay); ok {
		l.Nodelay = t.Value
	}
	return l
}

func (r *run) measure(ctx context.Context, p *path.Path, l sample.Load, shape sample.Shape,
	v *sample.Visit) error {
	return r.measureBeside(ctx, p, l, shape, v, newBarrier(r.Clock, 1).begin)
}

func (r *run) measureBeside(ctx context.Context, p *path.Path, l sample.Load, shape sample.Shape,
	v *sample.Visit, begin beginning) (err error) {
	if err := left(p); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = cmp.Or(left(p), err)
		}
	}()
	if l, err = r.prepare(p, l, v); err != nil {
		return err
	}
	defer r.drain(p, v)
	e := newEnds(r.Clock, p, shape)
	if e.distant, err = compareClocks(ctx, p); err != nil {
		return err
	}
	if v.Headroom != nil {
		e.budget = v.Headroom.Budget
	}
	defer func() {
		// After a failure the other ends may be blocked for good.
		err = errors.Join(err, e.stop(err != nil))
	}()
	cpus := r.cpus(v.Cell)
	if err := r.relays.move(p, cpus.Relay); err != nil {
		return err
	}
	began := r.Clock.Now()
	if err := e.start(ctx); err != nil {
		return err
	}
	hops := append(append([]path.Hop{}, p.Hops...), p.Guards...)
	read := r.Clock.Now()
	before, err := e.distant.read(hops)
	if err != nil {
		return err
	}
	if err := e.open(ctx, l, cpus); err != nil {
		return err
	}
	if shape.Crowd() {
		v.Setup = time.Duration(r.Clock.Now() - began).Seconds()
	}
	contended := r.contend(e)
	servers, clients, err := r.window(ctx, e, l, v, begin)
	contended()
	if err != nil {
		return err
	}
	after, err := e.distant.read(hops)
	if err != nil {
		return err
	}
	seconds := time.Duration(r.Clock.Now() - read).Seconds()
	v.Proof = proof(hops, before, after, path.Witness(
		hops, before, after, e.moved(l, servers, clients, seconds)...))
	return nil
}

func proof(hops []path.Hop, before, after []sample.Counters, w sample.Witness) sample.Proof {
	out := sample.Proof{Hops: make([]sample.HopReading, len(hops)), Witness: w}
	for i, h := range hops {
		out.Hops[i] = sample.HopReading{Kind: string(h.Kind), Name: h.Name, Where: h.Where,
			Before: before[i], After: after[i]}
	}
	return out
}

func (r *run) window(ctx context.Context, e *ends, l sample.Load, v *sample.Visit,
	begin beginning) (servers, clients []worker.Reply, err error) {
	far := e.distant
	took := time.Duration(ns(l.Warmup + l.Window))
	if workload.BulkOf(l).Bytes > 0 {
		took = transferLimit(l, r.Plan.Wire)
	} else if err := far.sure(l.Warmup, l.Window); err != nil {
		return nil, nil, err
	}
	start, resume, err := begin(ctx, far, needs{
		lead: lead + far.lead(), ends: e.count(), took: took + tail + far.tail()})
	if err != nil {
		return nil, nil, err
	}
	defer resume()
	when := load.Schedule{Start: start, From: start + ns(l.Warmup),
		To: start + ns(l.Warmup+l.Window)}
	when.End = when.To + int64(tail+far.tail())
	if workload.BulkOf(l).Bytes > 0 {
		return r.transfer(ctx, e, l, when, v)
	}
	if err := far.meter(ctx, when.From, when.To); err != nil {
		return nil, nil, err
	}
	if err := e.schedule(when); err != nil {
		return nil, nil, err
	}
	pids := pidsOf(e.path, nil)
	first, err := r.readAt(ctx, when.From, pids)
	if err != nil {
		return nil, nil, err
	}
	far.mark()
	together := r.watch(e, v.Cell)
	last, err := r.readAt(ctx, when.To, pids)
	v.Together = together()
	if err != nil {
		return nil, nil, err
	}
	if r.Clock.Now() < when.End { // later, replies use the channel, and only the agents can tell
		if err := far.quiet(); err != nil {
			return nil, nil, err
		}
	}
	resume()
	inWindow := func(took float64) bool { return fits(l, took) }
	e.metered(first, last, inWindow, v)
	if servers, clients, err = e.collect(ctx, l); err != nil {
		return nil, nil, err
	}
	if err := far.note(ctx, v, inWindow); err != nil {
		return nil, nil, err
	}
	return servers, clients, e.note(l, servers, clients, v)
}

// maxMeterError bounds the difference between the meters' window and the load's, as a share.
const maxMeterError = 0.1

// stretch is the largest ratio of a window's planned and measured lengths, either way, and slip an
// allowance in seconds for another thread's turn on the CPU.
const (
	stretch = 1.25
	slip    = 0.01
)

// errStarved is the failure of a visit that may succeed if it is repeated.
var errStarved = errors.New(sample.TooBusy)

func punctual(planned float64, ends ...sample.Party) error {
	for _, e := range ends {
		if e.Window < planned/stretch-slip || e.Window > planned*stretch+slip {
			return fmt.Errorf("%w: a window of %.3g s was planned, and %s were measured",
				errStarved, planned, workload.Briefly(e.Window))
		}
	}
	return nil
}

func ns(seconds float64) int64 { return int64(seconds * float64(time.Second)) }
