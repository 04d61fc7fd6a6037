package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/meter"
	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// busyEnv also silences the warning before the run.
var busyEnv = envSwitch{"TOLL_BUSY", "yes", "busy"}

// How long a machine is watched before a run, in ns, and how long a run waits for a busy one.
const (
	busyLook  = int64(150 * time.Millisecond)
	busyAgain = int64(time.Second)
	busyWait  = int64(time.Minute)
	busyCalm  = 2 // consecutive samples that must be free
)

// Tests replace contentionSince.
var contentionSince = func(own func() float64) func() sample.Contention {
	return machine.Machine{}.Contention(own)
}

// watchContention waits until other programs leave enough CPU time. After a minute it returns an
// error. With --busy it does not wait. It does not watch this machine if the traffic runs between
// other machines or to endpoints that toll did not start.
func (f *runFlags) watchContention(ctx context.Context, e env, p *progress,
	c *engine.Config) error {
	if c.Plan.Foreign() || c.Plan.Mesh != nil || f.of == nil || distantOf(f.on) != "" {
		return nil
	}
	goOn := f.busy || busyEnv.set()
	before, err := waitForCPUs(ctx, p, c.Clock, goOn)
	p.clear()
	if err != nil {
		return err
	}
	c.Before, c.EndIfBusy = &before, !goOn
	c.Contention = contentionSince
	if before.TooBusy() && f.busy && !f.quiet {
		warn(e, "the machine is too busy to measure: "+contentionWords(before))
	}
	return nil
}

// waitForCPUs waits until other programs leave enough CPU time. With goOn it does not wait.
func waitForCPUs(ctx context.Context, p *progress, clock engine.Clock,
	goOn bool) (sample.Contention, error) {
	look := func(took int64) (sample.Contention, error) {
		own := func() float64 { return meter.ProcessCPU(os.Getpid()).Seconds() }
		since := contentionSince(own)
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
		p.waitsFor(left, contentionWords(c))
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
