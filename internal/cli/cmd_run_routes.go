package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/measure/endpoint"
	"github.com/bridgetoll/bridgetoll/internal/measure/program"
	"github.com/bridgetoll/bridgetoll/internal/paths/peer"
	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

const (
	runToHelp      = "what the client dials: " + targetsHelp
	runningExample = "toll run 127.0.0.1:6379 --client 'redis-benchmark -h {host} -p {port}'"
)

// routed reports whether to has routes instead of targets, or from has places that only routes
// have.
func routed(to, from []string) bool {
	return slices.ContainsFunc(to, isRoute) ||
		slices.ContainsFunc(from, func(w string) bool { return strings.Contains(w, ":") })
}

func (f *runFlags) running(c *cobra.Command, e env, p *programFlags, modes, to []string) error {
	if err := fitsRunning(c.Flags(), modes, to); err != nil {
		return err
	}
	if len(to) == 0 {
		return usage(fmt.Errorf("--from %s needs the HOST:PORT of a running server",
			strings.Join(f.from, ",")), runningExample)
	}
	if slices.ContainsFunc(to, func(w string) bool { return strings.Contains(w, "://") }) {
		return usage(errors.New("toll run takes [NAME=]HOST:PORT, not a URL"),
			asRoutes(to, p.given()...))
	}
	l, err := p.clientAlone(!f.elsewhere(c.Flags()))
	if err != nil {
		return err
	}
	at, err := endpoint.ParseRoutes(to, endpoint.Families{Four: f.ipv4, Six: f.ipv6})
	if err != nil {
		return usage(err, "such as 127.0.0.1:6379 direct=172.17.0.2:6379")
	}
	there := f.of[peer.Name].(*peerFlags) //nolint:forcetypeassert // it is that backend's
	at, from, err := fromPlaces(at, f.from, c.Flags(), there, false)
	if err != nil {
		return err
	}
	bar := newProgress(e.stderr, f.quiet)
	w, err := endpoint.New(endpoint.Client{
		Program: workload.ExecOf(l).Program, Reach: from.reach, Locate: locateServers(),
		Progress: func(name string) { bar.first(name) }}, at)
	if err != nil {
		return err
	}
	return f.endpoints(c, e, w, plan.Request{Loads: []sample.Load{l}}, from)
}

// given returns the flags that name the client.
func (f *programFlags) given() (args []string) {
	if f.recipe != "" {
		args = append(args, "--recipe", f.recipe)
	}
	if f.client != "" {
		args = append(args, "--client", f.client)
	}
	return args
}

func (f *runFlags) elsewhere(fl *pflag.FlagSet) bool {
	return fl.Changed(peerFlag) && (!fl.Changed("from") ||
		slices.Equal(f.from, []string{vantage.Remote}))
}

// peerOfRun lists the flags that place the client of toll run HOST:PORT on a peer.
var peerOfRun = []string{peerFlag, "peer-binary", "peer-sudo"}

func fitsRunning(fl *pflag.FlagSet, modes, to []string) error {
	const why = "that server already runs"
	if len(modes) > 0 {
		return usage(fmt.Errorf("mode %s cannot be combined with HOST:PORT: %s", modes[0], why),
			"leave the mode or HOST:PORT out")
	}
	flags := []string{"server", "ready", "tune", "on"}
	fl.VisitAll(func(x *pflag.Flag) {
		if len(owners(x)) > 0 && !slices.Contains(peerOfRun, x.Name) {
			flags = append(flags, x.Name)
		}
	})
	for _, name := range flags {
		if fl.Changed(name) {
			return usage(fmt.Errorf("--%s cannot be combined with HOST:PORT: %s", name, why),
				"leave --"+name+" or HOST:PORT out")
		}
	}
	for _, w := range to {
		if _, err := mode.ParseTarget(w); err == nil {
			return usage(fmt.Errorf("--to %s cannot be combined with HOST:PORT: %s", w, why),
				"give only HOST:PORT, or none")
		}
	}
	return nil
}

// clientAlone returns the load of a client whose server runs already. here means that the client
// runs on this machine, so that the recipe can check that it is installed.
func (f *programFlags) clientAlone(here bool) (l sample.Load, err error) {
	var p sample.Program
	if f.recipe != "" {
		r, err := program.FindRecipe(f.recipe)
		if err != nil {
			return l, usage(err, "")
		}
		if f.client == "" && here {
			if err := r.CheckClient(); err != nil {
				return l, &failure{code: exitNothing, err: fmt.Errorf("recipe %s: %w", r.Name, err)}
			}
		}
		if p, err = r.Program(); err != nil {
			return l, err
		}
	}
	p.Server, p.Ready, p.NoRoot = "", "", f.noRoot
	if f.client != "" {
		p.Client, p.Recipe = f.client, "" // the recipe would name another client
	}
	if err := f.checkClient(p); err != nil {
		return l, err
	}
	return f.finished(p)
}

func (f *programFlags) checkClient(p sample.Program) error {
	switch {
	case p.Client == "":
		return usage(errors.New("no client is given: give --client or --recipe"), runningExample)
	case program.NeedsSecond(p.Client):
		return usage(errors.New("--client has {port2}, but the server has only one port"),
			"write the second port into --client")
	}
	return f.checkBoth(p)
}
