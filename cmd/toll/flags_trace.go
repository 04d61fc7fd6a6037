package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/trace"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

const precisionFlag = "precision"

// traceEpoch is shorter than other epochs (s): each round has one state, and states need several
// rounds each.
const traceEpoch = 1.0

// traceInto refuses what cannot be traced.
func (f *runFlags) traceInto(r *plan.Request, fl *pflag.FlagSet, command string,
	loads ...string) error {
	if err := only(*r, command, loads...); err != nil {
		return err
	}
	for _, on := range r.On {
		if sample.Distant(on) {
			return usage(fmt.Errorf(
				"--on %s cannot be traced: one end is on another machine, with a kernel of its own", on),
				"--on lab or --on docker, or toll ladder --on "+on)
		}
	}
	if fl.Changed(precisionFlag) {
		return usage(errors.New("--precision: a traced run ends by --budget or --rounds"),
			"leave --precision out")
	}
	for _, l := range r.Loads {
		if l.Slice == 0 {
			return usage(fmt.Errorf("%s is traced in slices only: %s", l.Kind,
				cmp.Or(f.slicing.whole[wholeKey(l)], "--slice 0")), "leave that flag out")
		}
		if l.Streams > 1 {
			return usage(fmt.Errorf("--connections %d: a trace follows one connection", l.Streams),
				"leave --connections out")
		}
	}
	r.Epoch = min(r.Epoch, traceEpoch)
	return nil
}

// Tests without a kernel replace canTrace.
var canTrace = trace.Check

// mayTrace only warns before a dry run, whose plan needs no tracer. Mistakes on the command line
// come first.
func (f *runFlags) mayTrace(e env, on []string) error {
	if err := f.fit(on); err != nil {
		return err
	}
	err := canTrace()
	if err == nil {
		return nil
	}
	err = fmt.Errorf("tracing is impossible here: %w", err)
	if f.dryRun {
		if !f.quiet {
			warn(e, err.Error())
		}
		return nil
	}
	return &failure{code: exitNothing, err: err}
}
