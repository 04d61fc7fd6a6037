package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

var ladderLoads = []string{workload.RR, workload.Bulk, workload.BulkReverse, workload.Stream}

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
			if traced && !c.Flags().Changed("load") {
				f.loads.kinds = []string{workload.RR}
			}
			r, err := f.request(c, args)
			if err == nil && traced {
				r.Trace = &sample.TracePlan{}
				err = traceable(r, c.Flags(), "ladder --trace", workload.RR)
			}
			if err == nil {
				err = only(r.Request, "ladder", ladderLoads...)
			}
			if err != nil {
				return err
			}
			all := len(args) == 0 || slices.Contains(args, allModes)
			if r.Request, err = plan.Climb(r.Request, all); err != nil {
				return usage(err, "")
			}
			return f.makeAndRun(c, e, r)
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
