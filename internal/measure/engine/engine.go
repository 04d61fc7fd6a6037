// Package engine carries out a plan: it builds each path once, visits every cell once a round in
// the plan's order, and writes each visit as it happens. It judges nothing.
//
// A call to a lost machine fails, and so does every later visit that needs it; the run continues
// with the rest. Processes' CPU time comes from their own clocks in ns, the machine's total from
// /proc/stat in ticks of 10 ms.
package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine/meter"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/hint"
)

// Meter reads the machine's clocks and those of processes.
type Meter interface {
	Read(pids ...int) (meter.Reading, error)
	// Together samples whether clients and servers run on one CPU until stop is called.
	Together(pairs ...meter.Pair) (stop func() (share *float64))
}

// Clock is CLOCK_MONOTONIC, or a test's own.
type Clock interface {
	Now() int64 // ns
	// Sleep returns at t. If ctx ends before, it returns ctx's cause.
	Sleep(ctx context.Context, t int64) error
	// Timeout returns a context that ends with a cause if an end of a path does not answer in time.
	Timeout(ctx context.Context, in time.Duration, cause error) (context.Context, context.CancelFunc)
}

// Config configures a run. All fields are required unless noted.
type Config struct {
	Plan        sample.Plan
	Environment sample.Environment
	Command     []string // as in sample.Header
	Builders    []path.Builder
	Meter       Meter
	Clock       Clock
	Out         *sample.Writer
	// Endpoints replace the builders' paths; nil: paths are measured.
	Endpoints Endpoints
	// Built is called with the plan of what was built. An error ends the run before it measures.
	// May be nil.
	Built func(sample.Plan) error
	// Judge is called with the plan and the paths of what was built. Nil: no cell becomes known
	// during the run.
	Judge func(sample.Header) Judge
	// MeshConverged is called after each sweep except the first few. It reports whether the mesh is
	// known precisely enough. May be nil.
	MeshConverged func(sample.Plan, []sample.PairVisit) bool
	// Next is called when everything planned is known or its time is over. It returns the next
	// step, the cells to measure from then on, including the baseline's, and for how many seconds.
	// left is the rest of the budget in seconds. If Next is nil or returns no cells, the run ends.
	Next func(p sample.Plan, visits []sample.Visit, left float64) (
		s sample.Step, cells []sample.Cell, seconds float64)
	// First is the time, in seconds, for what is planned before the first step; 0: the budget.
	First float64
	// Tracer traces the epochs that the plan selects; nil: none is traced.
	Tracer Tracer
	// Before is called once the paths are built, and returns this machine's contention until then.
	// An error ends the run before it measures. Nil: contention is unknown.
	Before func(context.Context) (*sample.Contention, error)
	// Contention returns a function that reports what others took of this machine's CPUs since the
	// call. own returns the run's CPU time in s, or NaN if unknown. Nil: contention is unknown.
	Contention func(own func() float64) func() sample.Contention
	// EndIfBusy ends the run after a round in which others left too little CPU time.
	EndIfBusy bool
	// Throttled returns how often CPU limits have stopped this process's cgroups; nil: unknown.
	Throttled func() int
	// Progress is called before each visit. May be nil.
	Progress func(Progress)
}

// Judge judges visits during a run.
type Judge interface {
	Add(v sample.Visit)
	// Known reports by cell whether more measurements would change nothing.
	Known() []bool
}

// Endpoints visits external endpoints, which it identifies by their cells.
type Endpoints interface {
	// Paths describes the routes.
	Paths() []sample.Path
	// Visit makes a visit and records it in v.
	Visit(ctx context.Context, c sample.Cell, l sample.Load, v *sample.Visit) error
}

// Progress is the present state of a run.
type Progress struct {
	Round   int // from 0
	Cell    sample.Cell
	Epoch   bool
	Tracing sample.Tracing // of the round
	Visit   int            // in this round, from 0
	Visits  int            // in a round, including epochs
	Elapsed float64
	Total   float64 // estimate of the whole run, seconds

	// Sweep, Rounds and Pairs are for a mesh: Pairs visits at once in Round of Rounds of the Sweep.
	Sweep, Rounds, Pairs int
}

// Check returns the plan with the cells moved to Skipped whose paths cannot be built here, or whose
// builders cannot tell. The error is an unknown backend, or ctx's cause.
func Check(ctx context.Context, p sample.Plan, builders []path.Builder) (sample.Plan, error) {
	p = skipApart(p)
	keys := paths(p)
	answers, err := each(keys, builders, func(b path.Builder, k key) error {
		return b.Check(ctx, k.spec)
	})
	if err != nil {
		return p, err
	}
	if ctx.Err() != nil { // an interrupted builder's result is not valid
		return p, context.Cause(ctx)
	}
	return plan.Drop(p, func(c sample.Cell) *sample.Skip {
		return skipFor(c, answers[keyOf(p, c)])
	}), nil
}

func paths(p sample.Plan) []key {
	var out []key
	for _, c := range p.Cells {
		if k := keyOf(p, c); !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}

func each(keys []key, builders []path.Builder,
	f func(path.Builder, key) error) (map[key]error, error) {
	var (
		wg  sync.WaitGroup
		mu  sync.Mutex
		out = map[key]error{}
	)
	for _, k := range keys {
		b, err := builder(builders, k.on)
		if err != nil {
			wg.Wait()
			return nil, err
		}
		wg.Go(func() {
			err := f(b, k)
			mu.Lock()
			defer mu.Unlock()
			out[k] = err
		})
	}
	wg.Wait()
	return out, nil
}

func skipFor(c sample.Cell, err error) *sample.Skip {
	if err == nil {
		return nil
	}
	s := &sample.Skip{Mode: c.Mode, From: c.From, To: c.To, Tune: c.Tune, On: c.On,
		Reason: path.OneLine(err), Remedy: hint.Of(err)}
	if sample.UDP(c.Load) { // over TCP it may exist
		s.Load = c.Load
	}
	return s
}

type key struct {
	on   string
	spec path.Spec
}

func keyOf(p sample.Plan, c sample.Cell) key {
	program := workload.ExecOf(p.Loads.Of(c.Load)).Program
	return key{c.On, path.Spec{Mode: c.Mode, From: c.From, To: c.To, Tune: c.Tune,
		Servers: c.Shape.Servers, Clients: c.Shape.Clients, UDP: sample.UDP(c.Load),
		Second: program != nil && program.Second}}
}

type run struct {
	Config
	paths    map[key]*path.Path
	keepers  map[key]*pair // for paths on which programs ran
	visits   []sample.Visit
	fails    []int // in a row, by cell
	judge    Judge
	known    []bool    // by cell, as judged
	drains   []float64 // by cell, how long its slices drain, in s
	began    int64
	roundsIn int // complete ones
	sweepsIn int // complete ones, of a mesh
	step     stage

	relays     relays
	inspection inspection
	budget     budget
	cut        error
	untraced   error // why an epoch could not be traced
	besides    besides
	contention *sample.Contention // while loads ran; nil: unknown
	disturbed  atomic.Bool
	described  []sample.Path
}

// Run makes the run and returns how it ended. An error means that it could not continue, not that a
// cell failed. All paths are closed when it returns.
func Run(ctx context.Context, c Config) (end sample.End, err error) {
	r := &run{Config: c, paths: map[key]*path.Path{}, keepers: map[key]*pair{},
		began: c.Clock.Now()}
	defer func() { err = errors.Join(err, r.close()) }()
	described, err := r.build(ctx)
	if err == nil && c.Built != nil {
		err = c.Built(r.Plan)
	}
	var before *sample.Contention
	if err == nil && c.Before != nil {
		asked := c.Clock.Now() // no part of the budget is spent on waiting
		before, err = c.Before(ctx)
		r.began += c.Clock.Now() - asked
	}
	if err != nil {
		return r.end(ctx, sample.EndedByFailure, err), err
	}
	r.fails, r.drains = make([]int, len(r.Plan.Cells)), firstDrains(r.Plan)
	r.described = described
	if c.Judge != nil {
		r.judge = c.Judge(sample.Header{Plan: r.Plan, Paths: r.described})
	}
	c.Environment.Cards = r.cards()
	r.step = stage{until: r.Plan.Budget}
	if c.First > 0 {
		r.step.until = c.First
	}
	if err := c.Out.Header(sample.Header{Started: time.Now().UTC(), Command: c.Command,
		Environment: c.Environment,
		Plan:        r.Plan, Paths: described, Contention: before}); err != nil {
		return r.end(ctx, sample.EndedByFailure, err), err
	}
	r.survey()
	visitAll := r.rounds
	if r.Plan.Mesh != nil {
		visitAll = r.mesh
	}
	reason, err := visitAll(ctx)
	if err == nil {
		if err = r.inspect(ctx, r.roundsIn); err != nil {
			reason = sample.EndedByFailure
		}
	}
	end = r.end(ctx, reason, err)
	return end, errors.Join(err, c.Out.End(end))
}

func (r *run) end(ctx context.Context, reason string, err error) sample.End {
	e := sample.End{Reason: reason, Rounds: r.roundsIn, Sweeps: r.sweepsIn, Elapsed: r.elapsed(),
		Contention: r.contention}
	if ctx.Err() != nil {
		e.Reason = sample.EndedByInterrupt
	} else if err != nil {
		e.Detail = path.OneLine(err)
	}
	return e
}

func (r *run) elapsed() float64 { return time.Duration(r.Clock.Now() - r.began).Seconds() }

func (r *run) close() error {
	for k := range r.keepers {
		_ = r.dismiss(k, true)
	}
	errs := make(chan error, len(r.paths))
	for _, p := range r.paths {
		go func() { errs <- p.Close() }()
	}
	var all []error
	for range r.paths {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}
