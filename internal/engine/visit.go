package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/load"
	"github.com/bridgetoll/bridgetoll/internal/meter"
	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/path"
	"github.com/bridgetoll/bridgetoll/internal/sample"
	"github.com/bridgetoll/bridgetoll/internal/worker"
)

const (
	// lead is the time from the schedule's sending to the common start.
	lead = 3 * time.Millisecond
	// tail is how long the load goes on after the window, for the meters.
	tail = 10 * time.Millisecond
	// openTimeout bounds how long the two ends may take to be connected.
	openTimeout = 8 * time.Second
	// doneTimeout bounds how long after the window they may take to finish.
	doneTimeout = 3 * time.Second
	// drainTimeout is added for each stream: what is queued must arrive.
	drainTimeout = 50 * time.Millisecond
	// graceTimeout is how long one end may go on after the other failed.
	graceTimeout = 100 * time.Millisecond
	// exitTimeout is how long a worker may take to exit by itself.
	exitTimeout = 500 * time.Millisecond
)

// visit visits a cell. What goes wrong is in the visit's Failure.
func (r *run) visit(ctx context.Context, round, cell int) sample.Visit {
	c := r.Plan.Cells[cell]
	v := sample.Visit{Round: round, Cell: cell, At: r.elapsed()}
	if err := r.measure(ctx, r.paths[keyOf(c)], loadOf(r.Plan, c), &v); err != nil {
		v.Failure = err.Error()
	}
	return v
}

// loadOf is the cell's load with the tune that is the load's own.
func loadOf(p sample.Plan, c sample.Cell) sample.Load {
	l := p.LoadOf(c.Load)
	if t, ok := mode.Tunes(c.Tune).Get(mode.Nodelay); ok {
		l.Nodelay = t.Value
	}
	return l
}

// hand is a worker: its process and the line to it.
type hand struct {
	*worker.Session
	proc *path.Process
	role worker.Role
}

func start(place path.Place, role worker.Role) (*hand, error) {
	p, err := place.Start(path.Command{Args: []string{worker.Arg}, Env: worker.Env})
	if err != nil {
		return nil, err
	}
	return &hand{worker.NewSession(p.In, p.Out), p, role}, nil
}

// stop ends the worker and says how it ended if it had to be killed or died.
func (h *hand) stop(now bool) error {
	if h == nil {
		return nil
	}
	var errs []error
	if now {
		errs = append(errs, h.proc.Kill())
	}
	_ = h.Close() // a pipe whose reader is gone: the exit status says more
	var exit error
	ended := make(chan struct{})
	go func() { exit = h.proc.Wait(); close(ended) }()
	select {
	case <-ended:
		if !now && exit != nil {
			errs = append(errs, fmt.Errorf("%s: %w", h.role, exit))
		}
	case <-time.After(exitTimeout):
		errs = append(errs, h.proc.Kill())
		<-ended
	}
	return errors.Join(errs...)
}

// measure makes one visit: workers, counters, warm-up, window, counters.
func (r *run) measure(ctx context.Context, p *path.Path, l sample.Load, v *sample.Visit) (err error) {
	var server, client *hand
	defer func() {
		// After a failure the other end may be blocked for good: kill both.
		bad := err != nil
		err = errors.Join(err, client.stop(bad), server.stop(bad))
	}()
	if server, client, err = startBoth(p); err != nil {
		return err
	}
	hops := append(append([]path.Hop{}, p.Hops...), p.Guards...)
	before, err := path.ReadAll(hops)
	if err != nil {
		return err
	}
	if err := r.connect(ctx, p, l, server, client); err != nil {
		return err
	}
	if err := r.window(ctx, p, l, server, client, v); err != nil {
		return err
	}
	after, err := path.ReadAll(hops)
	if err != nil {
		return err
	}
	for i, h := range hops {
		v.Hops = append(v.Hops, sample.HopReading{Kind: string(h.Kind), Name: h.Name, Where: h.Where,
			Before: before[i], After: after[i]})
	}
	v.Witness = path.Witness(hops, before, after, moved(l, *v))
	return nil
}

// moved is what the ends say that they moved in the whole visit.
func moved(l sample.Load, v sample.Visit) path.Moved {
	m := path.Moved{Forward: v.Server.TotalRecv, Backward: v.Client.TotalRecv, Connections: v.Client.Connections,
		Resent: v.Client.TCP.Resent + v.Server.TCP.Resent}
	if l.Request > 0 {
		m.Trips = v.Server.TotalRecv / int64(l.Request)
	}
	return m
}

func startBoth(p *path.Path) (server, client *hand, err error) {
	var wg sync.WaitGroup
	var serverErr, clientErr error
	wg.Add(1)
	go func() {
		defer wg.Done()
		server, serverErr = start(p.Server, worker.Server)
	}()
	client, clientErr = start(p.Client, worker.Client)
	wg.Wait()
	return server, client, errors.Join(serverErr, clientErr)
}

// connect brings both ends to where they wait for the schedule.
func (r *run) connect(ctx context.Context, p *path.Path, l sample.Load, server, client *hand) error {
	ctx, cancel := context.WithTimeoutCause(ctx, openTimeout, errors.New("the ends were not connected in time"))
	defer cancel()
	if err := server.Open(ctx, worker.Order{Role: worker.Server, Load: l, Addr: p.Listen, CPUs: r.Plan.CPUs.Server}); err != nil {
		return fmt.Errorf("server: %w", err)
	}
	if err := client.Open(ctx, worker.Order{Role: worker.Client, Load: l, Addr: p.Dial, CPUs: r.Plan.CPUs.Client}); err != nil {
		return fmt.Errorf("client: %w", err)
	}
	return nil
}

// window runs the load and reads the meters at the window's bounds.
func (r *run) window(ctx context.Context, p *path.Path, l sample.Load, server, client *hand, v *sample.Visit) error {
	begin := r.Clock.Now() + int64(lead)
	when := load.Schedule{Start: begin, From: begin + ns(l.Warmup), To: begin + ns(l.Warmup+l.Window)}
	when.End = when.To + int64(tail)
	if err := errors.Join(server.Go(when), client.Go(when)); err != nil {
		return err
	}
	var pids []int
	if p.Proxy != nil {
		pids = append(pids, p.Proxy.PID)
	}
	first, throttled, err := r.readAt(ctx, when.From, pids)
	if err != nil {
		return err
	}
	last, throttledNow, err := r.readAt(ctx, when.To, pids)
	if err != nil {
		return err
	}
	// A reading that came too late also saw what is not the window: better no
	// figure than a wrong one.
	if took := last.At.Sub(first.At).Seconds(); math.Abs(took-l.Window) <= maxMeterError*l.Window {
		v.Machine, v.Elapsed = meter.Since(first, last), took
	}
	v.Throttled = throttledNow - throttled
	if p.Proxy != nil {
		v.Proxy = &sample.ProxyUse{Name: p.Proxy.Name, CPU: last.Procs[0] - first.Procs[0]}
	}
	if err := collect(ctx, l, server, client, v); err != nil {
		return err
	}
	return punctual(l.Window, v.Client, v.Server)
}

func (r *run) readAt(ctx context.Context, t int64, pids []int) (meter.Reading, int, error) {
	if err := r.Clock.Sleep(ctx, t); err != nil {
		return meter.Reading{}, 0, err
	}
	reading, err := r.Meter.Read(pids...)
	throttled := 0
	if r.Throttled != nil {
		throttled = r.Throttled()
	}
	return reading, throttled, err
}

// collect waits for both ends' words. If one fails the other is given a
// moment to say why: what a client sees of a dead server is only a reset.
func collect(ctx context.Context, l sample.Load, server, client *hand, v *sample.Visit) error {
	limit := doneTimeout + time.Duration(l.Streams)*drainTimeout
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the load did not end within %s of its window", limit))
	defer cancel()
	type answer struct {
		err     error
		latency *sample.EncodedHisto
	}
	ask := func(h *hand, to *sample.Party) <-chan answer {
		out := make(chan answer, 1)
		go func() {
			p, latency, err := h.Done(ctx)
			if err != nil {
				err = fmt.Errorf("%s: %w", h.role, err)
				time.AfterFunc(graceTimeout, cancel)
			}
			*to = p
			out <- answer{err, latency}
		}()
		return out
	}
	fromClient, fromServer := ask(client, &v.Client), ask(server, &v.Server)
	c, s := <-fromClient, <-fromServer
	v.Latency = c.latency
	if errors.Is(s.err, context.Canceled) { // it had nothing to say
		s.err = nil
	}
	if errors.Is(c.err, context.Canceled) {
		c.err = nil
	}
	return errors.Join(s.err, c.err)
}

// maxMeterError is by how much the meters' window may differ from the load's.
const maxMeterError = 0.1

// stretch is how much shorter or longer than planned a window may have been.
const stretch = 2

// punctual refuses a visit whose ends were kept off their CPUs for so long
// that they measured another window than the plan's: its rates mean nothing.
func punctual(planned float64, ends ...sample.Party) error {
	for _, e := range ends {
		if e.Window < planned/stretch || e.Window > planned*stretch {
			return fmt.Errorf("the machine was too busy: a window of %.3g s was planned, and %.3g s were measured", planned, e.Window)
		}
	}
	return nil
}

func ns(seconds float64) int64 { return int64(seconds * float64(time.Second)) }
