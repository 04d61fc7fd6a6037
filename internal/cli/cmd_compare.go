package cli

import (
	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

func newCompare(e env) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "compare [MODE…]",
		Short: "Measure modes side by side and judge what each costs",
		Long: `compare measures network modes side by side, and prints what each costs against
the baseline, with 95 % intervals. Without names it measures Docker's usual modes;
"all" stands for every mode.

The modes take turns of a few milliseconds, in a new order each time. The run ends
when every verdict is certain, when every ratio is known to --precision, or when
--budget is spent.`,
		Example: `  toll compare
  toll compare --budget 10s --load rr
  toll compare bridge publish-proxy --from host,container,remote
  toll compare bridge publish-nat -46
  toll compare bridge --tune mtu=9000,gro=on+rps=on
  toll compare bridge publish-proxy --sweep request=1,64,1400,16k
  toll compare --load rr --request 64 --reply 1024 --save run.jsonl
  toll compare overlay macvlan-bridge --from remote-container \
      --wire rate=10gbit,delay=50us
  sudo toll compare --on lab,docker`,
		RunE: func(c *cobra.Command, args []string) error {
			r, err := f.request(c, args)
			if err != nil {
				return err
			}
			r.Request = r.Beside(!c.Flags().Changed("congestion") && analysis.Paces(congestionHere()))
			return f.makeAndRun(c, e, r)
		},
	}
	fl := c.Flags()
	addFrom(fl, &f.from, mode.OfModes, mode.FromHost)
	f.addTo(fl)
	f.addLoads(fl, loadNames, workload.Bulk, workload.RR)
	f.addSweep(fl)
	f.addBaseline(fl)
	f.addTune(fl)
	f.addPin(fl, bothPins)
	f.addWindow(fl)
	f.slicing.add(fl)
	f.addRun(fl)
	return c
}
