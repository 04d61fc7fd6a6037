package cli

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/lever"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

var adviseLoads = names(func(w workload.Workload) bool {
	return w.Gist != "" && w.Name != workload.Stream
})

func newAdvise(e env) *cobra.Command {
	var (
		f      runFlags
		levers []string
	)
	c := &cobra.Command{
		Use:   "advise [MODE…]",
		Short: "Try what would make a mode faster, and say what helped",
		Long: `advise tries on this machine what might make a mode (bridge unless others are named)
faster: it measures each setting or other mode (lever) alone, then adds those that
helped and harmed nothing one by one. It recommends levers that helped both times and
harmed nothing, and prints the lines that make them permanent.

Levers apply to toll's own containers and networks. Two act on the machine while they
are measured, as root: idle-poll keeps its CPUs awake, and with --on docker bridge-nf
sets a sysctl, which is restored.`,
		Example: `  toll advise
  toll advise publish-proxy --from host,remote
  toll advise bridge publish-nat
  toll advise rootless-publish
  toll advise --to outside                                     the way out of containers
  toll advise --lever bigtcp,bigtcp-container --budget 2m
  toll advise --format markdown --output advice.md --save advice.jsonl`,
		RunE: func(c *cobra.Command, args []string) error {
			if slices.Contains(args, allModes) {
				return usage(fmt.Errorf("advise takes modes by name, not %s", allModes),
					"toll advise bridge publish-nat")
			}
			if _, err := parseAll(levers, closed("lever", lever.Names()...)); err != nil {
				return err
			}
			facts, _ := machine.Machine{}.Read() // what cannot be read is left empty
			here := lever.Host{CPUs: facts.CPUs,
				Congestion: cmp.Or(c.Flags().Lookup("congestion").Value.String(), facts.Congestion)}
			r, err := f.request(c, args)
			if err != nil {
				return err
			}
			if err := only(r.Request, "advise", adviseLoads...); err != nil {
				return err
			}
			if in := mode.Inward(r.To); len(in) > 0 {
				return usage(fmt.Errorf("--to %s: toll advise chooses the inward target itself",
					in[0]), "leave --to out, or --to outside")
			}
			r.Baseline = mode.Bridge
			all, err := plan.Searches(r.Request, here, levers)
			if err != nil {
				var last sample.Plan
				if len(all) > 0 {
					last = all[len(all)-1]
				}
				_, err = planned(last, err)
				return err
			}
			return f.run(c, e, r, all[0], all[1:]...)
		},
	}
	fl := c.Flags()
	addFrom(fl, &f.from, mode.OfModes, mode.FromHost, mode.FromContainer, mode.FromRemote)
	addTarget(fl, list(&f.to),
		"outside: the way out (default the way in, or the way out of modes without one)",
		[]string{string(mode.ToOutside), string(mode.ToOutside6)})
	add(fl, flagDef{name: "lever", group: toMeasure, value: list(&levers), word: "LEVER",
		help: "try only these (default all for the mode)", main: "advise", offer: lever.Names()})
	f.addLoads(fl, adviseLoads, workload.Bulk, workload.BulkReverse, workload.RR, workload.CRR,
		workload.UDP)
	f.addPin(fl, sample.PinFar)
	f.addWindow(fl)
	f.slicing.add(fl)
	f.addRun(fl)
	setDefault(fl.Lookup("budget"), adviseBudget.String())
	return c
}

const adviseBudget = 5 * time.Minute

func setDefault(f *pflag.Flag, value string) {
	_ = f.Value.Set(value) // toll's own defaults are valid
	f.DefValue = f.Value.String()
}
