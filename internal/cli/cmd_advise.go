package cli

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

It changes nothing on the machine: levers apply to toll's own containers and networks.
With --on docker, bridge-nf sets a sysctl of the machine, which is restored.`,
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
			var later []sample.Plan
			return f.study(e, study{request: toAdvise,
				plan: func(r plan.Request) (p sample.Plan, err error) {
					p, later, err = advice(r, here, levers)
					return p, err
				},
				steps: func(c *engine.Config) { searching(c, later) }})(c, args)
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

func toAdvise(r *plan.Request) error {
	if err := only(*r, "advise", adviseLoads...); err != nil {
		return err
	}
	if in := mode.Inward(r.To); len(in) > 0 {
		return usage(fmt.Errorf("--to %s: toll advise chooses the inward target itself", in[0]),
			"leave --to out, or --to outside")
	}
	r.Baseline = mode.Bridge
	if len(r.Modes) > 0 {
		r.Baseline = r.Modes[0]
	}
	return nil
}

const adviseBudget = 5 * time.Minute

// advice returns the plan of the first mode's search, and in later the plans for the other modes.
func advice(r plan.Request, here lever.Host, named []string) (first sample.Plan,
	later []sample.Plan, err error) {
	modes := r.Modes
	if len(modes) == 0 {
		modes = []mode.Name{r.Baseline}
	}
	var also []string
	for i, m := range modes {
		r.Baseline = m
		levers := lever.Plan(m, here, named)
		if len(levers) == 0 {
			return first, nil, fmt.Errorf("nothing to try: no lever applies to %s", m)
		}
		p, err := plan.Advice(r, levers)
		switch {
		case err != nil:
			return p, nil, err
		case i == 0:
			first = p
		default:
			later, also = append(later, p), append(also, string(m))
		}
	}
	first.Also = also
	return first, later, nil
}

// The shares of a search's time: that must be left for continuing with undecided levers; and, of what
// is left, for that continuation.
const (
	leastMore = 0.2
	moreShare = 0.5
)

type searches struct {
	later []sample.Plan // searches that have not begun
	time  float64       // time of the current search, in seconds
	floor float64       // part of the budget for the later searches, in seconds
}

// searching makes the run search. Each later search begins with an equal share of the time that is
// left.
func searching(c *engine.Config, later []sample.Plan) {
	s := &searches{later: later}
	s.share(c.Plan.Budget)
	if c.Plan.Rounds == 0 {
		c.First = plan.AloneShare * s.time
	}
	c.Next = s.next
}

// share begins a search with left seconds, minus the later searches' share.
func (s *searches) share(left float64) {
	s.time = max(0, left) / float64(len(s.later)+1)
	s.floor = max(0, left) - s.time
}

func (s *searches) next(p sample.Plan, visits []sample.Visit,
	left float64) (sample.Step, []sample.Cell, float64) {
	if step, cells, seconds := s.further(p, visits, left-s.floor); len(cells) > 0 {
		return step, cells, seconds
	}
	if len(s.later) == 0 {
		return sample.Step{}, nil, 0
	}
	next := s.later[0]
	s.later = s.later[1:]
	s.share(left)
	return sample.Step{Begins: &sample.Search{
			Baseline: next.Baseline, Elsewhere: next.Elsewhere, Levers: next.Levers},
			Skipped: next.Skipped},
		next.Cells, plan.AloneShare * s.time
}

// further returns the search's next step and its cells. Without cells the search ends.
func (s *searches) further(p sample.Plan, visits []sample.Visit,
	left float64) (sample.Step, []sample.Cell, float64) {
	step, waiting := advise.Next(p, visits)
	own := p.Now()
	n := len(own.Steps)
	switch {
	case waiting == 0 && p.Rounds == 0 && left > leastMore*s.time:
		return step, advise.Open(p, visits), moreShare * left
	case waiting == 0, left <= 0 && p.Rounds == 0 && n > 0 && own.Steps[n-1].Lever != "":
		return step, nil, 0
	}
	return step, plan.PairOf(own, step.Before, step.After), max(0, left) / float64(waiting)
}

func setDefault(f *pflag.Flag, value string) {
	_ = f.Value.Set(value) // toll's own defaults are valid
	f.DefValue = f.Value.String()
}
