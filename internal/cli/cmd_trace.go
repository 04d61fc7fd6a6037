package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/kernel/trace"
	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

const hooksFlag = "hooks"

var traceLoads = []string{workload.RR, workload.UDPRR}

func newTrace(e env) *cobra.Command {
	var (
		f runFlags
		t sample.TracePlan
		// attach is the server that --attach names; "": none.
		attach string
		by     requester
	)
	c := &cobra.Command{
		Use:   "trace [MODE… | [NAME=]ADDRESS…]",
		Short: "Show where the microseconds of a mode or a request go",
		Long: `trace follows round trips through the kernel, and shows where a mode (bridge unless
others are named) adds time: in which hop of the path, in wake-ups, or in a relay such
as docker-proxy.

Rounds of three kinds take turns: untraced, to measure what the mode adds; traced by BPF
programs, which record each step of a packet; and traced three times over, to measure
what tracing costs. The programs end with toll.

With the ADDRESS of a server that runs (http://, redis://, postgres://, mysql://,
sqlserver://, dns:// or HOST:PORT), toll makes one request after another over each route
(GET, PING, select 1 or a query), and divides their time among the client, the network,
each relay and the server, by the packets that it captures at each of them. Rounds without captures show
how long requests take, and what the captures cost. With --client another program makes
the requests, one at a time on each of its connections, or over UDP (udp://HOST:PORT).

With --attach it watches the requests that come to a server of this machine, sends none,
and divides their time: the server, its TCP, its device's queue; and shows the slowest.

It needs root and a kernel with BTF. toll ladder needs neither, and shows what each part
of a mode costs.`,
		Example: `  sudo toll trace http://127.0.0.1:8080/health
  sudo toll trace direct=172.17.0.2:6379 published=127.0.0.1:6379
  sudo toll trace redis:6379 --client 'redis-cli -h {host} -p {port} -r 99 ping'
  sudo toll trace bridge
  sudo toll trace bridge --from container --hooks
  sudo toll trace publish-proxy publish-nat --to loopback --details
  sudo toll trace publish-nat --baseline bridge --from container   # what NAT takes
  sudo toll trace bridge --on docker --save trace.jsonl
  sudo toll trace dns://127.0.0.1:53/example.org
  sudo toll trace --attach 5432 --budget 10s
  sudo toll trace --attach 53/udp`,
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed(attachFlag) {
				return f.attachTo(c.Context(), e, c.Flags(), attach, args)
			}
			if slices.ContainsFunc(args, isRoute) {
				return f.traceRoutes(c, e, args, &by)
			}
			if err := by.refuse(c.Flags()); err != nil {
				return err
			}
			r, err := f.request(c, args)
			if err != nil {
				return err
			}
			r.Study, r.Trace = sample.StudyTrace, &t
			if len(r.Modes) == 0 {
				r.Modes = []mode.Name{mode.Bridge}
			}
			if err := traceable(r, c.Flags(), "trace", traceLoads...); err != nil {
				return err
			}
			p, err := planned(plan.Make(r.Request))
			if err != nil {
				return err
			}
			if !c.Flags().Changed(hooksFlag) {
				p.Trace = &sample.TracePlan{Hooks: translates(p) && checkHooks() == nil}
			}
			return f.run(c, e, r, p)
		},
	}
	fl := c.Flags()
	fl.SortFlags = false
	addFrom(fl, &f.from, mode.OfModes|mode.OfServers, mode.FromHost)
	f.addTo(fl)
	f.addBase(fl, string(mode.Host), "the MODE that others are compared with (of routes: the first)")
	add(fl,
		flagDef{name: hooksFlag, group: toMeasure, value: toggle(&t.Hooks), main: "trace",
			help: "also split netfilter by hook (PREROUTING, FORWARD …) and NAT, in further rounds: " +
				"this changes the path (default: if a path has NAT)"},
		flagDef{name: attachFlag, group: toMeasure, value: text(&attach, ""), word: "PORT",
			help: "watch the requests to the server at this PORT, PORT/udp, or ADDRESS:PORT, for --budget",
			main: "trace"})
	by.add(fl)
	f.addLoads(fl, traceLoads, workload.RR)
	f.addTune(fl)
	f.addPin(fl, sample.PinFar)
	f.onePin = true
	f.addWindow(fl)
	f.slicing.add(fl)
	f.addRun(fl)
	f.onlyLocal(fl)
	f.out.addDetails(fl)
	fl.Lookup("details").Usage = "also print every segment of a trip, with its p99"
	fl.Lookup("budget").Usage = "end within this time"
	setDefault(fl.Lookup("budget"), "30s")
	_ = fl.MarkHidden(precisionFlag) // fails for flags that do not exist
	return c
}

// traceable returns an error if the request cannot be traced.
func traceable(r request, fl *pflag.FlagSet, command string, loads ...string) error {
	if err := only(r.Request, command, loads...); err != nil {
		return err
	}
	for _, on := range r.On {
		if sample.Distant(on) {
			return usage(fmt.Errorf("--on %s cannot be traced: one end is on another machine, "+
				"with a kernel of its own", on),
				"--on lab or --on docker, or toll ladder --on "+on)
		}
	}
	if fl.Changed(precisionFlag) {
		return usage(errors.New("--precision cannot end a traced run, only --budget or --rounds can"),
			"leave --precision out")
	}
	for _, l := range r.Loads {
		if l.Slice == 0 {
			return usage(fmt.Errorf("%s can be traced only in slices: %s", l.Kind,
				cmp.Or(r.whole[l.Name()], "--slice 0")), "leave that flag out")
		}
		if l.Streams > 1 {
			return usage(fmt.Errorf("--connections %d: a trace follows one connection", l.Streams),
				"leave --connections out")
		}
	}
	return nil
}

// checkHooks returns nil if the kernel can trace hooks. Tests without a kernel replace it.
var checkHooks = trace.CheckHooks

// translates reports whether a planned path crosses NAT.
func translates(p sample.Plan) bool {
	return slices.ContainsFunc(p.Cells, func(c sample.Cell) bool {
		m, _ := mode.Find(c.Mode)
		r, ok := m.Route(c.From, c.To)
		return ok && (slices.Contains(r.Hops, mode.HopDNAT) || slices.Contains(r.Hops, mode.HopSNAT))
	})
}

// openTracer returns a tracer. It attaches the programs once, because only that shows what the
// kernel and the user's capabilities allow. Tests without a kernel replace it.
var openTracer = func(hooks bool) (engine.Tracer, func() error, error) {
	t, err := trace.Open()
	if err != nil {
		return nil, nil, err
	}
	if hooks {
		if err := checkHooks(); err != nil {
			return nil, nil, errors.Join(err, t.Close())
		}
	}
	r, err := t.Attach(trace.Config{CPUs: []int{0}, Events: 1})
	if err == nil {
		err = r.Stop()
	}
	if err != nil {
		return nil, nil, errors.Join(err, t.Close())
	}
	return engine.Kernel{Tracer: t}, t.Close, nil
}

// openTracer returns a tracer. Before a dry run, which traces nothing, it only warns. It is called
// after the command line is checked.
func (f *runFlags) openTracer(e env, p sample.TracePlan, on []string) (engine.Tracer, func() error, error) {
	if err := f.fit(on); err != nil {
		return nil, nil, err
	}
	t, closeTracer, err := openTracer(p.Hooks)
	if err == nil {
		return t, closeTracer, nil
	}
	err = fmt.Errorf("cannot trace here: %w", err)
	if !f.dryRun {
		return nil, nil, err
	}
	if !f.quiet {
		warn(e, err.Error())
	}
	return nil, func() error { return nil }, nil
}
