package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/measure/endpoint"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

func tracedExample() string {
	return remedy.AsRoot("toll trace direct=http://172.17.0.2:80/ published=http://127.0.0.1:8080/")
}

// The warm-up of a visit to a route, and its window unless --window is given, in s.
const (
	routeWarmup = 0.03
	routeWindow = 0.2
)

// routeFlags lists the flags of toll trace that apply to routes.
var routeFlags = []string{"from", "ipv4", "ipv6", "baseline", secretFlag, "budget", "rounds",
	"seed", "save", "window", clientFlag, formatName, outputFlag, "force", "dry-run",
	"quiet", "live", "details"}

// requester says who makes the requests of a trace over routes.
type requester struct {
	passwordEnv string // names the variable with the password of toll's own client
	program     programFlags
}

const clientFlag = "client"

func (a *requester) add(fl *pflag.FlagSet) {
	add(fl,
		flagDef{name: secretFlag, group: toMeasure, value: text(&a.passwordEnv, ""),
			word: "VARIABLE",
			help: "environment variable that holds the password for the server at an address"},
		flagDef{name: clientFlag, group: toMeasure, value: text(&a.program.client, ""),
			word: "COMMAND", main: "trace",
			help: "the command line of a client that makes the requests over each route, instead of " +
				"toll; {host} {port}, or {addr}, stand for the route's address, and {seconds} for --window"})
}

// refuse refuses the flags where no address is given.
func (a *requester) refuse(fl *pflag.FlagSet) error {
	for _, name := range []string{secretFlag, clientFlag} {
		if fl.Changed(name) {
			return usage(fmt.Errorf("--%s needs the address of a server", name), tracedExample())
		}
	}
	return nil
}

// client returns who makes the requests to addresses, and the load that they are.
func (a *requester) client(fl *pflag.FlagSet, at []endpoint.Address, window float64,
	budget time.Duration) (out endpoint.Client, l sample.Load, err error) {
	out = endpoint.Client{Requests: true, Locate: locateServers()}
	if !fl.Changed(clientFlag) {
		out.Password, err = secret(secretFlag, a.passwordEnv)
		return out, sample.Load{Kind: workload.Request, Warmup: routeWarmup, Window: window,
			Options: sample.RequestOptions{Asks: endpoint.Asks(at)}}, err
	}
	if fl.Changed(secretFlag) {
		return out, l, usage(fmt.Errorf("--%s does not go with --client", secretFlag), clientExample())
	}
	const grace = 20 * time.Second
	a.program.window = time.Second
	if fl.Changed("window") {
		if !strings.Contains(a.program.client, "{seconds}") {
			return out, l, usage(errNoSeconds, clientExample())
		}
		a.program.window = time.Duration(window * float64(time.Second))
	}
	a.program.timeout = max(budget, a.program.window) + grace
	if l, err = a.program.clientAlone(true); err != nil {
		return out, l, err
	}
	out.Program = workload.ExecOf(l).Program
	l.Kind, l.Options = workload.Request, sample.RequestOptions{Client: out.Program.Client}
	return out, l, nil
}

func clientExample() string {
	return remedy.AsRoot("toll trace 127.0.0.1:6379 --client 'redis-cli -h {host} -p {port} -r 99 ping'")
}

// traceRoutes traces requests over routes to a server that runs.
func (f *runFlags) traceRoutes(c *cobra.Command, e env, words []string, by *requester) error {
	if err := noOthers(c.Flags(), routeFlags, "the address of a server that runs",
		tracedExample()); err != nil {
		return err
	}
	at, err := parseTraced(words)
	if err != nil {
		return err
	}
	window := routeWindow
	if c.Flags().Changed("window") {
		window = f.window.Seconds()
	}
	client, load, err := by.client(c.Flags(), at, window, f.budget)
	if err != nil {
		return err
	}
	places := placeFlags{from: f.from, ipv4: f.ipv4, ipv6: f.ipv6}
	example := tracedExample()
	if client.Program != nil {
		example = clientExample()
	}
	w, from, err := places.ask(c.Flags(), client, at, example)
	if err != nil {
		return err
	}
	return f.endpoints(c, e, w, plan.Request{Study: sample.StudyTrace,
		Loads: []sample.Load{load}, Trace: &sample.TracePlan{}}, from)
}

// noOthers refuses the flags that were given but are not in names: they do not go with what.
func noOthers(fl *pflag.FlagSet, names []string, what, example string) error {
	var other []string
	fl.Visit(func(x *pflag.Flag) {
		if !slices.Contains(names, x.Name) {
			other = append(other, "--"+x.Name)
		}
	})
	if len(other) == 0 {
		return nil
	}
	return usage(fmt.Errorf("%s does not go with %s", strings.Join(other, ", "), what), example)
}

// parseTraced parses [NAME=]URL and [NAME=]HOST:PORT.
func parseTraced(words []string) ([]endpoint.Address, error) {
	var out []endpoint.Address
	for _, w := range words {
		var one []endpoint.Address
		var err error
		if strings.Contains(w, "://") {
			one, err = endpoint.ParseAddresses([]string{w})
		} else {
			one, err = endpoint.ParseRoutes([]string{w}, endpoint.Families{})
		}
		if err == nil && slices.ContainsFunc(out, func(a endpoint.Address) bool {
			return a.Name == one[0].Name
		}) {
			err = fmt.Errorf("two routes are called %s: name them, as in direct=…", one[0].Name)
		}
		if err != nil {
			return nil, usage(err, tracedExample())
		}
		out = append(out, one...)
	}
	if len(out) > mostTraced {
		return nil, usage(errors.New("too many routes"), fmt.Sprintf("at most %d", mostTraced))
	}
	return out, nil
}

// mostTraced bounds the routes of a trace.
const mostTraced = 8
