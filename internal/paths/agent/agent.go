// Package agent connects toll to other machines. On each of them toll runs as an agent, which dials
// the toll that measures, starts its workers there and reads counters, settings, meters and clocks:
//
//	toll (Hub)                              agent on another machine
//	                        <- TLS 1.3, both sides with the run's key
//	                        <- hello (identity, host, kernel, version)
//	welcome                 ->
//	request                 -> JSON lines, each with a number
//	                        <- answer of that number; notes of processes that ended
//	start (one-time token)  ->
//	                        <- a further TLS connection, which begins with the token
//	standard input          -> and is the process's
//	                        <- standard output
//
// No port of a machine is opened, so agents may be behind any NAT. Each process has a connection of
// its own. (Over ssh and exec yamux carries the connections; TLS stays, because yamux does not
// close each direction separately.)
//
// What an agent started dies with it, and an agent ends itself when its control connection ends or
// is silent for too long.
//
// The channel is quiet during a window (Hub.Hush). Agents count its bytes; if it carried any, the
// visit has no result.
//
// Clocks of two machines are never subtracted: each end has a schedule by its own CLOCK_MONOTONIC
// (Agent.Clock).
package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Arg is the argument that makes toll an agent.
const Arg = "agent"

// Agent is the hub's end of a connection to an agent: a place for processes, and its machine. Once
// the agent is lost, every call returns an error with the agent's name.
type Agent struct {
	hub   *Hub
	hello Hello
	line  *control
	raw   net.Conn
	ready bool
	lost  chan struct{}
	// time of the last message to the agent, by this machine's clock
	spoken atomic.Int64

	mu      sync.Mutex
	err     error
	last    uint64
	waiting map[uint64]chan answer
	procs   map[uint64]*remote
}

var (
	_ path.Place   = (*Agent)(nil)
	_ path.Machine = (*Agent)(nil)
)

// Hello returns the agent's introduction.
func (a *Agent) Hello() Hello { return a.hello }

// Name returns the name that the agent gave itself.
func (a *Agent) Name() string { return a.hello.Name }

// Err returns why the agent is lost, such as a *path.CutError, or nil while it is connected.
func (a *Agent) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// Lost returns a channel that is closed when the agent is lost.
func (a *Agent) Lost() <-chan struct{} { return a.lost }

// As returns the agent as a place with the given name.
func (a *Agent) As(name string) path.Place { return named{a, name} }

type named struct {
	*Agent
	name string
}

func (n named) Name() string { return n.name }

func (a *Agent) lose(why error) {
	if errors.Is(why, io.EOF) || errors.Is(why, net.ErrClosed) {
		why = errors.New("it closed the connection")
	}
	a.mu.Lock()
	if a.err != nil {
		a.mu.Unlock()
		return
	}
	a.err = &leftError{a.hello.Name, why}
	if cut := (*path.CutError)(nil); errors.As(why, &cut) {
		a.err = cut
	}
	procs := a.procs
	a.procs = map[uint64]*remote{}
	close(a.lost)
	a.mu.Unlock()
	a.hub.drop(a.raw)
	a.hub.forget(a)
	for _, p := range procs {
		p.end(a.err)
		p.cut()
	}
}

// A leftError is what requests to a lost agent, and its processes, end with.
type leftError struct {
	name string
	why  error
}

func (e *leftError) Error() string { return e.name + " left: " + e.why.Error() }
func (e *leftError) Unwrap() error { return e.why }

var errDismissed = errors.New("it was released")

// Dismiss closes the connection to the agent, which then exits. Nothing is sent afterwards.
func (a *Agent) Dismiss() { a.lose(errDismissed) }

func (a *Agent) listen() {
	for {
		line, err := receive(a.line.in, maxLine)
		if err != nil {
			a.lose(err)
			return
		}
		ans, err := parseAnswer(line)
		if err != nil {
			a.lose(err)
			return
		}
		if ans.Exit != nil {
			a.ended(*ans.Exit)
			continue
		}
		a.mu.Lock()
		c := a.waiting[ans.ID]
		delete(a.waiting, ans.ID)
		a.mu.Unlock()
		if c != nil {
			c <- ans
		}
	}
}

func (a *Agent) keepAlive() {
	t := time.NewTicker(a.hub.silence / pings)
	defer t.Stop()
	for {
		select {
		case <-a.lost:
			return
		case <-t.C:
		}
		if a.hub.ping() {
			a.ping(request{Ping: true})
		}
	}
}

// ping sends a request. If no answer comes, the agent counts as lost.
func (a *Agent) ping(o request) {
	defer a.hub.pinged()
	_, _ = a.ask(context.Background(), o, 0)
}

// number returns an unused number for a request, a process, a metering or a box.
func (a *Agent) number() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last++
	return a.last
}

// ask sends a request and waits for the answer until ctx ends or the agent is lost. An agent that
// does not answer within the hub's silence plus longer counts as lost.
func (a *Agent) ask(ctx context.Context, o request, longer time.Duration) (answer, error) {
	o.ID = a.number()
	line, err := encode(o)
	if err != nil {
		return answer{}, fmt.Errorf("%s: request: %w", a.hello.Name, err)
	}
	c := make(chan answer, 1)
	a.mu.Lock()
	err = a.err
	if err == nil {
		a.waiting[o.ID] = c
	}
	a.mu.Unlock()
	if err != nil {
		return answer{}, err
	}
	defer func() {
		a.mu.Lock()
		delete(a.waiting, o.ID)
		a.mu.Unlock()
	}()
	limit := a.hub.silence + max(0, longer)
	t := time.NewTimer(limit)
	defer t.Stop()
	a.spoken.Store(now())
	if err := a.line.write(line); err != nil {
		a.lose(err)
		return answer{}, a.Err()
	}
	select {
	case ans := <-c:
		return ans, a.refusal(ans)
	case <-ctx.Done():
		return answer{}, fmt.Errorf("%s: %w", a.hello.Name, context.Cause(ctx))
	case <-t.C:
		a.lose(fmt.Errorf("it gave no answer for %s", limit.Round(time.Millisecond)))
	case <-a.lost:
	}
	return answer{}, a.Err()
}

// ErrNone means that ESP states are missing, so there are no counts.
var ErrNone = errors.New("nothing to count")

func (a *Agent) refusal(ans answer) error {
	switch {
	case ans.Error == "":
		return nil
	case ans.None:
		return fmt.Errorf("%s: %w: %s", a.hello.Name, ErrNone, ans.Error)
	case ans.Remedy != "":
		return &machine.UnsupportedError{Missing: a.hello.Name + ": " + ans.Error, Remedy: ans.Remedy}
	case ans.Lacks == "":
		return fmt.Errorf("%s: %s", a.hello.Name, ans.Error)
	}
	return &machine.UnsupportedError{Missing: fmt.Sprintf("%s lacks %s", a.hello.Name, ans.Lacks),
		Remedy: "give the agents' containers " + ans.Lacks + " (--cap-add)",
		Err:    errors.New(ans.Error)}
}

// Clock measures the offset between the agent's clock and this machine's by several round trips.
func (a *Agent) Clock(ctx context.Context) (path.Offset, error) {
	return compareClocks(now, func() (int64, error) {
		ans, err := a.ask(ctx, request{Clock: true}, 0)
		return ans.Clock, err
	})
}

// Meter implements path.Machine. The pids are those in the agent's PID namespace.
func (a *Agent) Meter(ctx context.Context, from, to int64, pids ...int) (path.Metering, error) {
	m := meterRequest{Number: a.number(), From: from, To: to, PIDs: pids}
	sent := time.Now()
	ans, err := a.ask(ctx, request{Meter: &m}, 0)
	if err != nil {
		return nil, err
	}
	until := time.Duration(max(from, to) - ans.Clock)
	return func(ctx context.Context) (path.Use, error) {
		ans, err := a.ask(ctx, request{Use: m.Number}, until-time.Since(sent))
		switch {
		case err != nil:
			return path.Use{}, err
		case ans.Use == nil:
			return path.Use{}, fmt.Errorf("%s: no reading", a.hello.Name)
		}
		return *ans.Use, nil
	}, nil
}

// Counters reads the counters in one request and returns their values in the same order. It returns
// a *machine.UnsupportedError if the agent lacks a capability, and ErrNone if there are no ESP
// states.
func (a *Agent) Counters(ctx context.Context, what []Counter) ([]sample.Counters, error) {
	if len(what) == 0 {
		return nil, a.Err()
	}
	ans, err := a.ask(ctx, request{Counters: what}, 0)
	switch {
	case err != nil:
		return nil, err
	case len(ans.Counters) != len(what):
		return nil, fmt.Errorf("%s: %d counters were requested, %d returned", a.hello.Name, len(what),
			len(ans.Counters))
	}
	return ans.Counters, nil
}

const readLimit = 5 * time.Second

// Read returns a function for path.Hop.Read that reads one counter. The function takes at most 5 s.
func (a *Agent) Read(c Counter) func() (sample.Counters, error) {
	return func() (sample.Counters, error) {
		ctx, cancel := context.WithTimeoutCause(
			context.Background(), readLimit, fmt.Errorf("it gave no counter within %s", readLimit))
		defer cancel()
		all, err := a.Counters(ctx, []Counter{c})
		if err != nil {
			return sample.Counters{}, err
		}
		return all[0], nil
	}
}

// Interfaces lists the devices of a network namespace, named as in Counter.
func (a *Agent) Interfaces(ctx context.Context, namespace string) ([]Interface, error) {
	ans, err := a.ask(ctx, request{List: &listRequest{Namespace: namespace}}, 0)
	for i := range ans.Interfaces {
		ans.Interfaces[i].Where = a.hello.Name
	}
	return ans.Interfaces, err
}

// Route returns the route to an address in the agent's own namespace.
func (a *Agent) Route(ctx context.Context, to netip.Addr) (link.Route, error) {
	ans, err := a.ask(ctx, request{Route: &to}, 0)
	switch {
	case err != nil:
		return link.Route{}, err
	case ans.Way == nil:
		return link.Route{}, fmt.Errorf("%s: the agent reported no route", a.hello.Name)
	}
	return *ans.Way, nil
}

// Files returns the names in a directory that the agent sees, such as /run/docker/netns. "" is /.
func (a *Agent) Files(ctx context.Context, dir string) ([]string, error) {
	if dir == "" {
		dir = "/"
	}
	ans, err := a.ask(ctx, request{List: &listRequest{Dir: dir}}, 0)
	return ans.Files, err
}
