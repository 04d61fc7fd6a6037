package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/measure/endpoint"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

const tracedExample = "sudo toll trace published=http://127.0.0.1:8080/ direct=http://172.17.0.2:80/"

// The warm-up of a visit to a route, and its window unless --window is given, in s.
const (
	routeWarmup = 0.03
	routeWindow = 0.2
)

// routeFlags lists the flags of toll trace that apply to routes.
var routeFlags = []string{"from", "ipv4", "ipv6", "against", "password-env", "budget", "rounds",
	"seed", "save", "window", formatName, outputFlag, "force", "dry-run", "no-history", "quiet", "live",
	"details"}

// traceRoutes traces requests over routes to a server that runs.
func (f *runFlags) traceRoutes(c *cobra.Command, e env, words []string, passwordEnv string) error {
	if err := noOthers(c.Flags(), routeFlags, "the address of a server that runs",
		tracedExample); err != nil {
		return err
	}
	at, err := parseTraced(words)
	if err != nil {
		return err
	}
	password, err := secret("password-env", passwordEnv)
	if err != nil {
		return err
	}
	places := placeFlags{from: f.from, ipv4: f.ipv4, ipv6: f.ipv6}
	w, from, err := places.ask(c.Flags(), endpoint.Client{Requests: true, Password: password,
		Locate: locateServers()}, at, tracedExample)
	if err != nil {
		return err
	}
	if !c.Flags().Changed("against") {
		f.baseline = "" // the first route
	}
	window := routeWindow
	if c.Flags().Changed("window") {
		window = f.window.Seconds()
	}
	f.trace = &sample.TracePlan{}
	return f.endpoints(c, e, w, []sample.Load{{Kind: workload.Request, Warmup: routeWarmup,
		Options: sample.RequestOptions{Asks: endpoint.Asks(at)}, Window: window}}, from)
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
			return nil, usage(err, tracedExample)
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
