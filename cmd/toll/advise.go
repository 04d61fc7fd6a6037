package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/judge/advise"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/lever"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/suggest"
)

// adviseLoads are those that a search can use: of our own, between two ends.
var adviseLoads = names(func(w workload.Workload) bool { return w.Gist != "" && w.Name != workload.Stream })

func newAdvise(e env) *cobra.Command {
	var (
		f      runFlags
		levers []string
	)
	c := &cobra.Command{
		Use:   "advise [MODE]",
		Short: "Try what would make a mode faster, and say what helped",
		Long: `advise tries on this machine what would make a mode (bridge unless another is named)
faster: each lever alone, then those that helped and harmed nothing one after
another, each against what was chosen before. It recommends only what helped both
times and cost nothing that was measured, and prints the lines that make it permanent.

It changes nothing on the machine: levers are put on toll's own containers and networks.`,
		Example: `  toll advise
  toll advise publish-proxy --from host,remote
  toll advise --lever bigtcp,bigtcp-container --budget 2m
  toll advise --format markdown --output advice.md --save advice.jsonl`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage(fmt.Errorf("advise takes one mode, %d were given", len(args)), "one run for each: toll advise "+args[0])
			}
			if slices.Contains(args, allModes) {
				return usage(fmt.Errorf("advise takes one mode, not %s", allModes), "toll advise bridge")
			}
			for _, name := range levers {
				if _, err := suggest.Parse("lever", name, lever.Names()); err != nil {
					return usage(err, "")
				}
			}
			facts, _ := machine.Machine{}.Read() // what cannot be read is left empty
			here := lever.Host{CPUs: facts.CPUs, Congestion: cmp.Or(c.Flags().Lookup("congestion").Value.String(), facts.Congestion)}
			f.plan = func(r plan.Request) (sample.Plan, error) { return advice(r, here, levers) }
			f.steps = searching
			return f.command(e, func(r *plan.Request) error {
				if err := only(*r, "advise", adviseLoads...); err != nil {
					return err
				}
				r.Baseline = mode.Bridge
				if len(r.Modes) > 0 {
					r.Baseline = r.Modes[0]
				}
				return nil
			})(c, args)
		},
	}
	fl := c.Flags()
	fl.SortFlags = false
	fl.StringSliceVar(&f.from, "from", []string{string(mode.FromHost), string(mode.FromContainer), string(mode.FromRemote)}, "where the client runs: "+placesHelp)
	fl.StringSliceVar(&levers, "lever", nil, "try only these (default all that there are for the mode)")
	f.addLoads(fl, adviseLoads, workload.Bulk, workload.BulkReverse, workload.RR, workload.CRR, workload.UDP)
	f.addPin(fl)
	f.addWindow(fl)
	f.slicing.add(fl)
	f.addRun(fl)
	f.out.addDetails(fl)
	setDefault(fl.Lookup("budget"), adviseBudget.String())
	return c
}

// adviseBudget is how long a search takes unless the user says otherwise.
const adviseBudget = 5 * time.Minute

// advice plans the search's first part.
func advice(r plan.Request, here lever.Host, named []string) (sample.Plan, error) {
	levers := lever.Plan(r.Baseline, here, named)
	if len(levers) == 0 {
		return sample.Plan{}, fmt.Errorf("nothing to try: there is no such lever for %s", r.Baseline)
	}
	return plan.Advice(r, levers)
}

// Shares of time: of the budget that in which each lever is tried alone; of the budget that which must be
// left so that those of which nothing is certain go on; of what is left that in which they do.
const (
	firstShare = 0.5
	leastMore  = 0.2
	moreShare  = 0.5
)

// searching makes a run a search.
func searching(c *engine.Config) {
	if c.Plan.Rounds == 0 {
		c.First = firstShare * c.Plan.Budget
	}
	c.Next = func(p sample.Plan, visits []sample.Visit, left float64) (sample.Step, []sample.Cell, float64) {
		step, waiting := advise.Next(p, visits)
		switch {
		case waiting == 0 && p.Rounds == 0 && left > leastMore*p.Budget:
			var cells []sample.Cell
			for _, i := range advise.Open(p, visits) {
				cells = append(cells, p.Cells[i])
			}
			return step, cells, moreShare * left
		case waiting == 0, left <= 0 && p.Rounds == 0 && len(p.Steps) > 0 && p.Steps[len(p.Steps)-1].Lever != "":
			return step, nil, 0
		}
		return step, plan.PairOf(p, step.Before, step.After), max(0, left) / float64(waiting)
	}
}

// setDefault gives a flag another default.
func setDefault(f *pflag.Flag, value string) {
	_ = f.Value.Set(value) // of ours
	f.DefValue = f.Value.String()
}
