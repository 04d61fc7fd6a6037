package main

import (
	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

func newCompare(e env) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "compare [MODE…]",
		Short: "Measure modes side by side and judge what each costs",
		Long: `compare measures the modes (Docker's usual ones unless some are named; "all" is
every one), in turns of a few milliseconds where the load allows it, and prints
what each costs against the baseline, with 95 % intervals. Rounds go on until
every verdict is certain, every ratio is known to --precision or --budget is
spent.`,
		Example: `  toll compare
  toll compare bridge publish-proxy --from host,container,remote
  toll compare overlay macvlan-bridge --from remote-container --wire rate=10gbit,delay=50us
  toll compare bridge --tune mtu=9000,gro=on+rps=on
  sudo toll compare --on lab,docker
  toll compare --load rr --request 64 --reply 1024 --budget 2m --save run.jsonl`,
		RunE: f.command(e, nil),
	}
	fl := c.Flags()
	fl.SortFlags = false
	f.addFrom(fl, mode.FromHost)
	f.addTo(fl)
	f.addLoads(fl, workload.Bulk, workload.RR)
	f.addTune(fl)
	f.addBaseline(fl)
	f.addPin(fl)
	f.addWindow(fl)
	f.slicing.add(fl)
	f.addRun(fl)
	return c
}
