package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/measure/load"
	"github.com/bridgetoll/bridgetoll/internal/measure/worker"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

type process struct {
	line interface{ Close() error }
	proc *path.Process
	role worker.Role
}

// hand is a worker.
type hand struct {
	*worker.Control
	process
}

func start(place path.Place, role worker.Role) (*hand, error) {
	p, err := place.Start(path.Command{Args: []string{worker.Arg}, Env: worker.Env()})
	if err != nil {
		return nil, err
	}
	s := worker.NewControl(p.In, p.Out)
	return &hand{s, process{s, p, role}}, nil
}

// stop closes the process's input, at which it exits. It kills the process at once if now is set,
// otherwise after limit. It returns an error if the process failed before it was killed.
func (h process) stop(now bool, limit time.Duration) error {
	var errs []error
	if now {
		errs = append(errs, h.proc.Kill())
	}
	_ = h.line.Close()
	var exit error
	ended := make(chan struct{})
	go func() { exit = h.proc.Wait(); close(ended) }()
	select {
	case <-ended:
		if !now && exit != nil {
			errs = append(errs, fmt.Errorf("%s: %w", h.role, exit))
		}
	case <-time.After(limit):
		errs = append(errs, h.proc.Kill())
		<-ended
	}
	return errors.Join(errs...)
}

// ends has the workers of a visit: one for each server, and shape.Procs (0: one) for each client.
type ends struct {
	clock   Clock
	path    *path.Path
	distant *distant
	shape   sample.Shape
	servers []*hand
	clients []*hand
	budget  int  // connections that the client may open; 0: no limit
	shared  bool // other ends are on the path, too
	traced  bool
}

func newEnds(c Clock, p *path.Path, s sample.Shape) *ends {
	procs := max(1, s.Procs)
	return &ends{clock: c, path: p, distant: &distant{path: p}, shape: s,
		servers: make([]*hand, len(p.Servers)), clients: make([]*hand, procs*len(p.Clients))}
}

func (e *ends) count() int { return len(e.servers) + len(e.clients) }

func (e *ends) all() []*hand { return append(append([]*hand{}, e.servers...), e.clients...) }

// of returns to which client, and to which of its processes, e.clients[i] belongs.
func (e *ends) of(i int) (client, proc int) {
	procs := max(1, e.shape.Procs)
	return i / procs, i % procs
}

func atOnce(n int, f func(i int) error) error {
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return few(errs)
}

func few(errs []error) error {
	const most = 3
	var out []error
	n := 0
	for _, err := range errs {
		if err == nil {
			continue
		}
		if n++; n <= most {
			out = append(out, err)
		}
	}
	if n > most {
		out = append(out, fmt.Errorf("and %d more errors", n-most))
	}
	return errors.Join(out...)
}

func (e *ends) start(ctx context.Context) error {
	return atOnce(e.count(), func(i int) (err error) {
		if ctx.Err() != nil { // the start of many takes seconds
			return ctx.Err()
		}
		if i < len(e.servers) {
			e.servers[i], err = start(e.path.Servers[i], worker.Server)
			return err
		}
		i -= len(e.servers)
		client, _ := e.of(i)
		e.clients[i], err = start(e.path.Clients[client], worker.Client)
		return err
	})
}

func (e *ends) stop(now bool) error {
	all := append(append([]*hand{}, e.clients...), e.servers...)
	limit := exitTimeout + time.Duration(len(all))*eachTimeout
	if e.distant.far() {
		limit += farExit
	}
	return atOnce(len(all), func(i int) error {
		if all[i] == nil {
			return nil
		}
		return all[i].stop(now, limit)
	})
}

func (e *ends) open(ctx context.Context, l sample.Load, cpus sample.CPUs) error {
	limit := openTimeout + time.Duration(e.count())*eachTimeout
	ctx, cancel := e.clock.Timeout(
		ctx, limit, errors.New("client and server did not connect in time"))
	defer cancel()
	err := atOnce(len(e.servers), func(i int) error {
		o := worker.Request{Role: worker.Server, Load: e.serverLoad(l, i),
			Addr: e.path.Servers[i].Listen, CPUs: pinned(cpus.Server, e.path.Servers[i].Machine),
			Crowd: e.shape.Crowd(), Shared: e.shared}
		if err := e.servers[i].Open(ctx, o); err != nil {
			return fmt.Errorf("server: %w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return atOnce(len(e.clients), func(i int) error {
		client, _ := e.of(i)
		to := e.path.Clients[client]
		o := worker.Request{Role: worker.Client, Load: l, Addr: to.Dial,
			CPUs: pinned(cpus.Client, to.Machine), Crowd: e.shape.Crowd(), Client: i,
			Budget: e.budget, Bounds: e.traced}
		if err := e.clients[i].Open(ctx, o); err != nil {
			return fmt.Errorf("client: %w", err)
		}
		return nil
	})
}

// pinned returns cpus, or nil for another machine, because the plan's CPUs are this machine's.
func pinned(cpus []int, m path.Machine) []int {
	if m != nil {
		return nil
	}
	return cpus
}

func (e *ends) serverLoad(l sample.Load, server int) sample.Load {
	if !e.shape.Crowd() {
		return l
	}
	n := 0
	for i := range e.clients {
		if client, _ := e.of(i); e.path.Clients[client].Server == server {
			n++
		}
	}
	l.Streams = n * max(1, l.Streams)
	return l
}

func (e *ends) schedule(when load.Schedule) error {
	all := e.all()
	return atOnce(len(all), func(i int) error {
		return all[i].Go(e.distant.shifted(when, e.machine(i)))
	})
}

func (e *ends) machine(i int) path.Machine {
	if i < len(e.servers) {
		return e.path.Servers[i].Machine
	}
	client, _ := e.of(i - len(e.servers))
	return e.path.Clients[client].Machine
}

// collect waits for the ends' replies. After an end's error it waits a moment for the other ends,
// because their errors may be more specific: a client sees only a reset if its server dies.
func (e *ends) collect(ctx context.Context, l sample.Load) (servers, clients []worker.Reply,
	err error) {
	streams := len(e.clients) * max(1, l.Streams)
	limit := doneTimeout + time.Duration(streams)*drainTimeout
	ctx, cancel := e.clock.Timeout(
		ctx, limit, fmt.Errorf("the load did not end within %s of its window", limit))
	defer cancel()
	return e.replies(ctx)
}

func (e *ends) replies(ctx context.Context) (servers, clients []worker.Reply, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	servers, clients = make([]worker.Reply, len(e.servers)), make([]worker.Reply, len(e.clients))
	all := e.all()
	err = atOnce(len(all), func(i int) error {
		r, err := all[i].Done(ctx)
		if i < len(servers) {
			servers[i] = r
		} else {
			clients[i-len(servers)] = r
		}
		switch {
		case errors.Is(err, context.Canceled):
			return nil
		case err != nil:
			time.AfterFunc(graceTimeout, cancel)
			return fmt.Errorf("%s: %w", all[i].role, err)
		}
		return nil
	})
	return servers, clients, err
}
