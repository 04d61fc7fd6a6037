package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

var ladderLoads = []string{workload.RR, workload.Bulk, workload.Stream}

func newLadder(e env) *cobra.Command {
	var (
		f      runFlags
		traced bool
	)
	c := &cobra.Command{
		Use:   "ladder [MODE…]",
		Short: "Price each part of a mode: bridge, NAT, docker-proxy",
		Long: `ladder measures a series of modes, each with one part more than another (from the
machine itself: native, host, bridge, publish-nat, publish-proxy), and prints what each
part adds to latency and CPU time and costs in throughput, with 95 % intervals.

Without names the series has Docker's usual modes; with names, these and all below them
("all": every mode). A mode that cannot be built here is left out: the next one is then
priced with both parts. With --to outside it shows what each part adds to a container's
connections to another machine. With --trace, as root, it prints next to each price where
in the kernel the time goes (toll trace).`,
		Example: `  toll ladder
  toll ladder publish-proxy --load rr
  toll ladder --load stream --tokens 50 --budget 3m
  sudo toll ladder --trace
  toll ladder overlay-encrypted --from remote-container --wire mtu=9000
  toll ladder all --to outside --load bulk
  toll ladder all --from container --budget 5m --save ladder.jsonl`,
		RunE: func(c *cobra.Command, args []string) error {
			all := len(args) == 0 || slices.Contains(args, allModes)
			if traced {
				f.trace = &sample.TracePlan{}
				if !c.Flags().Changed("load") {
					f.loads.kinds = []string{workload.RR}
				}
			}
			return f.command(e, func(r *plan.Request) error {
				if traced {
					err := f.traceInto(r, c.Flags(), "ladder --trace", workload.RR)
					if err != nil {
						return err
					}
				}
				return climb(r, all)
			})(c, args)
		},
	}
	fl := c.Flags()
	addFrom(fl, &f.from, mode.OfModes, mode.FromHost)
	outward := []string{string(mode.ToOutside), string(mode.ToOutside6)}
	addTarget(fl, list(&f.to),
		"outside: the way out of a container to another machine; with a 6, over IPv6", outward)
	add(fl, flagDef{name: "trace", group: toMeasure, value: toggle(&traced), main: "ladder",
		help: "also trace round trips in the kernel, to show where each price comes from; needs root"})
	f.addLoads(fl, ladderLoads, workload.RR, workload.Bulk)
	f.addPin(fl, sample.PinFar)
	f.addWindow(fl)
	f.slicing.add(fl)
	f.addRun(fl)
	return c
}

// climb sets the modes of r to the rungs from the bottom up to the modes that r names.
func climb(r *plan.Request, all bool) error {
	if err := only(*r, "ladder", ladderLoads...); err != nil {
		return err
	}
	if len(r.From) != 1 {
		return usage(fmt.Errorf("toll ladder takes one --from, %d were given", len(r.From)),
			"one run for each: --from "+string(r.From[0]))
	}
	if len(r.To) > 1 || len(mode.Inward(r.To)) > 0 {
		return usage(errors.New("toll ladder chooses the inward targets itself"),
			"leave --to out, or --to "+string(mode.ToOutside))
	}
	from, to := r.From[0], r.Modes
	if len(to) == 0 {
		to = mode.Usual()
	}
	var direction mode.Target
	if len(r.To) > 0 {
		direction, r.To = r.To[0], nil
	}
	for _, n := range r.Modes {
		if _, ok := mode.FindRung(from, direction, n); !ok && !all {
			m, _ := mode.Find(n)
			why, around := m.WhyNot(from)
			if direction.Outside() {
				why, around = m.WhyNotOut(from)
			}
			return usage(fmt.Errorf("there is no ladder to %s from %s: %s", n, from, why), around)
		}
	}
	rungs := mode.Climb(from, direction, to)
	if len(rungs) == 0 {
		return usage(fmt.Errorf("there is no ladder outward from %s", from),
			"--from "+string(mode.FromContainer))
	}
	if len(rungs) < 2 {
		hint := "toll ladder --from " + string(from)
		if direction.Outside() {
			hint += " --to " + string(direction)
		}
		return usage(fmt.Errorf("%s is the bottom of the ladder from %s: it has no part to price",
			rungs[0].Mode, from), hint)
	}
	r.Study, r.Baseline = sample.StudyLadder, rungs[0].Mode
	for _, rung := range rungs {
		r.To = append(r.To, rung.To)
		if !slices.Contains(r.Modes, rung.Mode) {
			r.Modes = append(r.Modes, rung.Mode)
		}
	}
	return nil
}
