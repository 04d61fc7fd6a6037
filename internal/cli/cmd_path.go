package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/paths/lab"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/view"
)

// probe is large enough to tell the load's packets from an ARP request.
var probe = sample.Load{Kind: workload.RR,
	Options: sample.RROptions{Messages: sample.Messages{Request: 1000, Reply: 1000}}, Warmup: 0.03,
	Window: 0.2}

type pathFlags struct {
	builderFlags

	from, to string
	ipv6     bool
	tune     []string
	out      outputFlags
}

func newPath(e env) *cobra.Command {
	var f pathFlags
	c := &cobra.Command{
		Use:   "path MODE",
		Short: "Draw what packets cross in a mode, with counters",
		Long: `path builds the mode, sends a little traffic and draws what the packets cross, in
order, with the counters of each hop before and after.`,
		Example: `  toll path bridge --from container
  toll path publish-nat --to address
  toll path bridge -6
  toll path overlay --from remote-container --wire mtu=9000
  sudo toll path publish-proxy --on docker`,
		Args: oneArgument("mode", "toll path bridge --from container"),
		RunE: func(c *cobra.Command, args []string) error {
			return f.draw(c.Context(), e, args[0])
		},
	}
	fl := c.Flags()
	add(fl, flagDef{name: "from", group: toMeasure, value: text(&f.from, ""), word: "PLACE",
		help: "where the client runs: " + mode.OfModes.Help() + " (default the first that the mode has)",
		main: "path", offer: fromWords(mode.OfModes)})
	addTarget(fl, text(&f.to, ""),
		"what the client dials: "+targetsHelp+" (default the first that the mode has)", targetWords())
	addFamilies(fl, nil, &f.ipv6, "dial")
	addTunes(fl, &f.tune, "settings to put on the path: "+tuneWords+"; join several by +")
	f.addBuilder(fl, buildsPath)
	f.out.add(fl, document.APath)
	return c
}

func (f *pathFlags) draw(ctx context.Context, e env, name string) error {
	if err := f.out.check(); err != nil {
		return err
	}
	on, err := f.one()
	if err != nil {
		return err
	}
	d, err := f.defaults([]string{on})
	if err != nil {
		return err
	}
	if len(d.from) > 0 && f.from == "" {
		only := []string{string(d.from[0])}
		if between, err := engine.MeshSpec(mode.Name(name)); err == nil {
			f.from = string(between.From)
		}
		if len(d.from) == 1 && reachedFrom(mode.Name(name), only) {
			f.from = only[0]
		}
	}
	route, err := chooseRoute(name, f.from, f.to, f.ipv6)
	if err != nil {
		return err
	}
	if route.Tune, err = oneVariant(f.tune); err != nil {
		return err
	}
	between, err := parseWire(f.wire)
	if err != nil {
		return err
	}
	if f.wire != "" && on == sample.Lab && !lab.Applies(between, route.Mode, route.From, route.To) {
		return idleWire([]string{string(route.From)})
	}
	if err := pathHeadroom(); err != nil {
		return err
	}
	return f.with(ctx, []string{on}, between, func(b []path.Builder) error {
		trace, err := walk(ctx, b[0], route, between)
		if err != nil {
			return err
		}
		err = f.out.print(e, view.Path(trace))
		if err == nil && !trace.Visit.Witness.OK {
			err = &failure{code: exitCells}
		}
		return err
	})
}

func oneVariant(words []string) (mode.Tunes, error) {
	variants, err := parseAll(words, mode.ParseTunes)
	switch {
	case err != nil || len(variants) == 0:
		return "", err
	case len(variants) > 1:
		return "", notOne("toll path", "variant", len(variants),
			"join its settings by +: --tune "+strings.Join(words, "+"))
	}
	return variants[0], nil
}

// chooseRoute returns the mode's first route unless the words name another.
func chooseRoute(name, from, to string, six bool) (path.Spec, error) {
	var s path.Spec
	n, err := parseOne(name, mode.ParseName)
	if err != nil {
		return s, err
	}
	m, _ := mode.Find(n)
	routes := m.Routes
	if from != "" {
		p, err := parseOne(from, mode.ParsePlacement)
		if err != nil {
			return s, err
		}
		if routes = m.RoutesFrom(p); len(routes) == 0 {
			why, _ := m.WhyNot(p)
			return s, usage(fmt.Errorf("%s cannot be reached from %s: %s", name, from, why),
				fmt.Sprintf("toll path %s --from %s", name, m.Routes[0].From))
		}
	}
	if six {
		routes = slices.DeleteFunc(slices.Clone(routes), func(r mode.Route) bool {
			return r.To.Four()
		})
		if len(routes) == 0 {
			return s, usage(fmt.Errorf("%s has no path over IPv6 from that placement", name),
				"toll modes "+name+" lists its paths")
		}
	}
	if to == "" {
		return path.Spec{Mode: n, From: routes[0].From, To: routes[0].To}, nil
	}
	t, err := parseOne(to, mode.ParseTarget)
	if err != nil {
		return s, err
	}
	for _, r := range routes {
		if r.To == t {
			return path.Spec{Mode: n, From: r.From, To: r.To}, nil
		}
	}
	hint := fmt.Sprintf("toll path %s --from %s", name, routes[0].From)
	if routes[0].To != mode.ToContainer { // otherwise --to has no other value
		hint += " --to " + string(routes[0].To)
	}
	return s, usage(fmt.Errorf("%s from %s has no target %s", name, routes[0].From, to), hint)
}

// tries is the largest number of times that a visit is tried on a busy machine. Repeating it is
// harmless, because load does not change where packets go.
const tries = 3

func walk(ctx context.Context, b path.Builder, s path.Spec, w sample.Wire) (*view.Trace, error) {
	probe := probe
	probe.Warmup += workload.Settled * w.RoundTrip()
	probe.Window += workload.Measured * w.RoundTrip()
	p := sample.Plan{Rounds: 1, Loads: []sample.Load{probe},
		Cells: []sample.Cell{{Mode: s.Mode, From: s.From, To: s.To, Tune: s.Tune, Load: probe.Kind,
			On: b.Name()}}}
	p, err := engine.Check(ctx, p, []path.Builder{b})
	if err != nil {
		return nil, err
	}
	if err := plan.Measurable(p, nil, nil); err != nil {
		return nil, err
	}
	c := engine.Config{Plan: p, Builders: []path.Builder{b}}
	if c.Clock, c.Meter, err = timeOf(c.Builders); err != nil {
		return nil, err
	}
	here := machine.Machine{}
	c.Environment, _ = here.Read()
	c.Environment.Tool = version
	for i := 1; ; i++ {
		f, err := visitOnce(ctx, c)
		if err != nil {
			return nil, err
		}
		v := f.Visits[len(f.Visits)-1] // earlier ones failed and were repeated
		switch {
		case v.Failure == "":
			return &view.Trace{Path: f.Header.Paths[0], Visit: v,
				Cards: f.Header.Environment.Cards}, nil
		case i == tries || !v.Starved:
			return nil, fmt.Errorf("no traffic got through %s: %s", s, v.Failure)
		}
	}
}

func visitOnce(ctx context.Context, c engine.Config) (*sample.File, error) {
	var records bytes.Buffer
	c.Out = sample.NewWriter(&records)
	_, err := engine.Run(ctx, c)
	if stop := interrupted(ctx); stop != nil {
		return nil, stop
	}
	if err != nil {
		return nil, err
	}
	f, err := sample.Read(&records)
	if err != nil {
		return nil, err
	}
	if len(f.Visits) == 0 {
		return nil, errors.New("the path was not measured")
	}
	return f, nil
}
