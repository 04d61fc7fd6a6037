package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/meter"
	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/paths/lab"
	"github.com/bridgetoll/bridgetoll/internal/paths/rootless"
	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// Go aborts a process that cannot create a thread, without an explanation, so toll first checks
// that there are enough threads and files. These numbers were measured and rounded up.
const (
	ownThreads = 10 // threads of a toll that measures nothing
	ownFiles   = 10

	runThreads  = 34 // threads of a toll inside and outside a user namespace, and of a visit's two workers
	pathThreads = 6  // for namespaces and for concurrent requests
	runFiles    = 20
	pathFiles   = 2
)

func ownHeadroom() error {
	if lab.Entered() || rootless.Entered() {
		return nil
	}
	return tooLittle("toll itself", machine.Machine{}.Headroom(
		machine.Crowd{Threads: ownThreads, Files: ownFiles}))
}

// runHeadroom returns an error if the limits of threads or files are too low for the plan. most is
// the largest number of threads of one end. Inside a user namespace it checks nothing, because the
// toll outside has checked.
func runHeadroom(p sample.Plan, most int) error {
	if lab.Entered() || rootless.Entered() {
		return nil
	}
	paths := map[sample.Cell]bool{}
	for _, c := range p.Cells {
		c.Load, c.Pin, c.Control, c.Placebo = "", "", false, false
		paths[c] = true
	}
	return tooLittle(units.Plural(len(paths), "path"), machine.Machine{}.Headroom(machine.Crowd{
		Threads: runThreads + pathThreads*len(paths) + 2*most,
		Files:   runFiles + pathFiles*len(paths),
	}))
}

// pathHeadroom is runHeadroom for a command that builds one path at a time.
func pathHeadroom() error { return runHeadroom(sample.Plan{Cells: make([]sample.Cell, 1)}, 1) }

func tooLittle(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// turn returns the seconds by which each additional client process may lengthen a thread's wait for
// a CPU, because the process and its server thread may each run for a scheduler slice first.
func turn(here machine.Machine) float64 {
	const slice = 0.003 // the longest base_slice_ns that the kernel chooses
	facts, _ := here.Read()
	cpus := float64(max(1, len(facts.CPUsAllowed)))
	if facts.CgroupCPUs > 0 {
		cpus = min(cpus, facts.CgroupCPUs)
	}
	return 2 * slice / cpus
}

func crowdHeadroom(here machine.Machine, shapes []sample.Shape, streams int) error {
	const (
		files      = 4 // toll's files for a process: two pipes and the process
		toll       = 1000
		threads    = 10
		bytes      = 3 << 20
		connection = 256 << 10
	)
	for _, s := range shapes {
		processes := s.Servers + s.Clients*s.Procs
		connections := s.Clients * s.Procs * streams
		err := here.Headroom(machine.Crowd{
			Threads: toll + threads*processes + 2*connections,
			Files:   toll/2 + files*processes,
			Memory:  uint64(bytes*processes + connection*connections),
		})
		if err != nil {
			return tooLittle(s.String(), err)
		}
	}
	return nil
}

// How long a machine is watched before a run, in ns, and how long a run waits for a busy one.
const (
	busyLook  = int64(120 * time.Millisecond) // 12 ticks of the kernel's clock on each CPU
	busyAgain = int64(time.Second)
	busyWait  = int64(time.Minute)
	busyCalm  = 2 // consecutive samples that must be free
)

// Tests replace contentionSince.
var contentionSince = func(own func() float64) func() sample.Contention {
	return machine.Machine{}.Contention(own)
}

// watchContention makes the run watch this machine's CPUs. c.Before judges the time since the
// request was read, and waits until other programs leave enough CPU time; after a minute it returns
// an error. With --busy it does not wait. If the traffic runs between other machines or to
// endpoints that toll did not start, nothing is watched. With --live watchContention waits before
// it returns: there is no screen yet.
func (f *runFlags) watchContention(ctx context.Context, e env, p *progress,
	c *engine.Config) error {
	if c.Plan.Foreign() || c.Plan.Mesh != nil ||
		slices.ContainsFunc(c.Plan.Cells, func(c sample.Cell) bool { return sample.Distant(c.On) }) {
		return nil
	}
	goOn, clock := f.busy || busyEnv.set(), c.Clock
	c.Contention, c.EndIfBusy = contentionSince, !goOn
	c.Before = func(ctx context.Context) (*sample.Contention, error) {
		before, err := lookAtLeast(ctx, clock, f.watched)
		if err == nil && before.TooBusy() {
			before, err = waitForCPUs(ctx, p, clock, goOn)
			p.clear()
		}
		if err == nil && before.TooBusy() && f.busy && !f.quiet {
			warn(e, "the machine is too busy to measure: "+contentionWords(before))
		}
		return &before, err
	}
	if !f.live {
		return nil
	}
	before, err := c.Before(ctx)
	c.Before = func(context.Context) (*sample.Contention, error) { return before, nil }
	return err
}

// beforeRequests watches this machine while nothing is asked of the servers, and returns what a
// run's Before reports: nil if no client is here. It neither waits nor refuses: later, a server
// here keeps the CPUs busy itself, for toll or for others.
func beforeRequests(ctx context.Context, from places) (
	func(context.Context) (*sample.Contention, error), error) {
	if !slices.ContainsFunc(from.from, func(v *vantage.Vantage) bool { return !v.Distant() }) {
		return nil, nil
	}
	clock, _, err := timeOf(nil)
	if err != nil {
		return nil, err
	}
	c, err := lookAtLeast(ctx, clock, contentionSince(ownCPU))
	return func(context.Context) (*sample.Contention, error) { return &c, nil }, err
}

// ownCPU returns the CPU time of this process and of what it started, in s. It lacks what toll
// makes others do: a container engine, the kernel's threads. So what is left may be too much for
// others, but not too little.
func ownCPU() float64 {
	return max(meter.ProcessCPU(os.Getpid()), meter.FamilyCPU(os.Getpid())).Seconds()
}

// lookAtLeast returns what since reports once it has watched for busyLook.
func lookAtLeast(ctx context.Context, clock engine.Clock,
	since func() sample.Contention) (sample.Contention, error) {
	c := since()
	left := busyLook - int64(c.Elapsed*float64(time.Second))
	if left <= 0 {
		return c, nil
	}
	err := clock.Sleep(ctx, clock.Now()+left)
	return since(), err
}

// waitForCPUs waits until other programs leave enough CPU time, while toll does nothing. With goOn
// it does not wait.
func waitForCPUs(ctx context.Context, p *progress, clock engine.Clock,
	goOn bool) (sample.Contention, error) {
	look := func(took int64) (sample.Contention, error) {
		since := contentionSince(ownCPU)
		err := clock.Sleep(ctx, clock.Now()+took)
		return since(), err
	}
	c, err := look(busyLook)
	if err != nil || goOn || !c.TooBusy() {
		return c, err
	}
	end := clock.Now() + busyWait
	busiest, calm := c, 0
	for calm < busyCalm {
		left := time.Duration(end - clock.Now())
		if left <= 0 {
			return c, busyError(busiest)
		}
		p.waitsFor(left, c)
		if c, err = look(busyAgain); err != nil {
			return c, err
		}
		calm++
		if c.TooBusy() {
			busiest, calm = c, 0
		}
	}
	return c, nil
}

func busyError(c sample.Contention) error {
	need := "one free CPU"
	if c.Needed() < 1 {
		need = "half a free CPU"
	}
	return &failure{exitNothing,
		fmt.Errorf("the machine was too busy to measure for %.0f s: %s",
			time.Duration(busyWait).Seconds(), contentionWords(c)),
		fmt.Sprintf(
			"client and server need at least %s, better two: end other programs, or measure later; "+
				"--busy measures anyway, and most verdicts will be unclear", need)}
}

func contentionWords(c sample.Contention) string { return c.Words("keep") }
