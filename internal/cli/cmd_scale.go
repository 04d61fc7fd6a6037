package cli

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

var crowdLoads = names(func(w workload.Workload) bool { return w.Crowds })

func newScale(e env) *cobra.Command {
	var (
		f       runFlags
		clients []string
	)
	c := &cobra.Command{
		Use:   "scale [MODE…]",
		Short: "Measure modes with many servers, clients and processes",
		Long: `scale measures each mode (bridge unless others are named) with one client container,
then with more that work at once. A shape is servers × client containers × processes in
each; client i uses server i modulo the number of servers. It prints the total
throughput, each client's share, how fair the shares are, and the CPU time.`,
		Example: `  toll scale
  toll scale bridge pipework ovs --clients 1,2,4,8,16,20
  toll scale bridge ovs --clients 1x1x1,2x2x1,20x20x1      pairs of a server and a client
  toll scale bridge --clients 1x1,1x4,4x1,4x4,16x16
  toll scale bridge publish-proxy --load rr --clients 1,8,64 --save run.jsonl`,
		RunE: func(c *cobra.Command, args []string) error {
			r, err := f.request(c, args)
			if err == nil {
				err = cmp.Or(only(r.Request, "scale", crowdLoads...), f.loads.crowd(c.Flags()))
			}
			if err != nil {
				return err
			}
			r.Study = sample.StudyScale
			if len(r.Modes) == 0 {
				r.Modes = []mode.Name{mode.Bridge}
			}
			here := machine.Machine{}
			r.Turn = turn(here)
			if r.Shapes, err = parseShapes(clients); err != nil {
				return err
			}
			if err := crowdHeadroom(here, r.Shapes, plan.MostThreads(r.Loads)); err != nil {
				return err
			}
			return f.makeAndRun(c, e, r)
		},
	}
	fl := c.Flags()
	addFrom(fl, &f.from, mode.OfModes, mode.FromContainer)
	f.addTo(fl)
	add(fl, flagDef{name: "clients", group: toMeasure, value: list(&clients, "1", "2", "4", "8", "16"),
		word: "SHAPES", main: "scale",
		help: "numbers of client containers N, with one server; CxP: with P processes in each; SxCxP: and S servers"})
	f.addLoads(fl, crowdLoads, workload.Bulk)
	for _, name := range crowdless() {
		_ = fl.MarkHidden(name) // fails for flags that do not exist
	}
	f.addBaseline(fl)
	f.addTune(fl)
	f.addWindow(fl)
	f.addRun(fl)
	f.onlyLocal(fl)
	return c
}

func parseShapes(words []string) (out []sample.Shape, err error) {
	for _, w := range words {
		s, err := sample.ParseShape(w)
		if err != nil {
			return nil, usage(fmt.Errorf("--clients %s: %w", w, err), "--clients 1,4,4x16,2x8x4")
		}
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out, nil
}
