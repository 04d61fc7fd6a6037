package cli

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

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
	"github.com/bridgetoll/bridgetoll/internal/text/suggest"
)

type programFlags struct {
	recipe         string
	server, client string
	ready          string
	metrics        []string
	window         time.Duration
	timeout        time.Duration
	noRoot         bool
	addressed      bool // the client may connect without {host} and {addr}
	windowed       bool // --window is given
}

func (f *programFlags) add(fl *pflag.FlagSet) {
	recipes := recipeWords()
	add(fl,
		flagDef{name: "recipe", group: toMeasure, value: text(&f.recipe, ""), word: "NAME",
			help: "a well-known pair of programs: " + strings.Join(recipes, ", "),
			main: "run", offer: recipes},
		flagDef{name: "server", group: toMeasure, value: text(&f.server, ""), word: "COMMAND", main: "run",
			help: "the server's command line, for a shell; {port} stands for the port to listen on"},
		flagDef{name: "client", group: toMeasure, value: text(&f.client, ""), word: "COMMAND", main: "run",
			help: "the client's command line; {host} {port}, or {addr}, stand for the server's address"},
		flagDef{name: "ready", group: toMeasure, value: text(&f.ready, ""), word: "WHEN", main: "run",
			help:  "how toll knows that the server is ready: tcp or udp (it has opened its port), or a regular expression for its output (default tcp)",
			offer: []string{"tcp", "udp"}},
		flagDef{name: "metric", group: toMeasure, value: texts(&f.metrics), word: "METRIC", main: "run",
			help: "NAME[:UNIT][:higher|:lower]=REGEXP: a number in the client's output, the expression's first group; the first metric decides (default how long the client takes)"},
		flagDef{name: "no-root", group: toMeasure, value: toggle(&f.noRoot),
			help: "run them as an ordinary user, in a user namespace: some servers refuse to run as root"},
		flagDef{name: "window", group: howLong, value: clientWindow(&f.window), help: secondsHelp},
		flagDef{name: "timeout", group: howLong,
			value: timeFlag(&f.timeout, 20*time.Second, time.Second, maxTimeout),
			help:  "how long the server may take to get ready, and the client to end"})
}

const (
	maxSeconds = 3600
	maxTimeout = 2 * time.Hour
	maxMetrics = 32
)

func newRun(e env) *cobra.Command {
	var (
		f runFlags
		p programFlags
	)
	c := &cobra.Command{
		Use:   "run [MODE… | [NAME=]HOST:PORT…] (--recipe NAME | --client CMD …)",
		Short: "Compare modes, or routes to your server, under your own programs",
		Long: `run starts a server and a client of yours over each mode, in shuffled rounds, and
compares what the client prints. They are any two programs, or a recipe. Each visit
starts the server and stops it. Files in {dir}, which is in memory, last until the end
of the run.

/bin/sh runs the command lines. {host} and {port} stand for where the server
listens, {addr} for both (with brackets around IPv6), {port2} for a second port,
{seconds} for --window.

With HOST:PORT only the client is started, against a server that runs already: over each
route that you name, from each place of --from, on this machine or in a container's
network. The client is a program of this machine.`,
		Example: `  toll run --recipe redis
  toll run host bridge publish-proxy --recipe iperf3 --window 2s
  toll run --recipe pgbench --from host,container --budget 3m
  toll run --server 'python3 -m http.server {port}' \
      --client 'curl -so /dev/null http://{addr}/'
  toll run --server './server -p {port}' --ready 'listening on' \
      --client './bench {host}:{port}' --metric 'latency:ms=p50 ([\d.]+)'
  toll run --recipe redis direct=172.17.0.2:6379 published=127.0.0.1:6379
  sudo toll run shop:8080 --client 'curl -so /dev/null http://{addr}/' \
      --from container:web,network:backend`,
		RunE: func(c *cobra.Command, args []string) error {
			p.windowed = c.Flags().Changed("window")
			modes, routes := splitRoutes(args)
			if to := slices.Concat(f.to, routes); routed(to, f.from) {
				return f.running(c, e, &p, modes, to)
			}
			r, err := f.request(c, args)
			if u, ok := errors.AsType[*suggest.UnknownError](err); ok && u.Unlike() &&
				u.What == "mode" && meant(u.Words[0]) == "" {
				return usage(err, u.Hint()+"; a running server, also a container's, is HOST:PORT: "+
					"toll ports lists them")
			}
			if err != nil {
				return err
			}
			l, err := p.load()
			if err != nil {
				return err
			}
			r.Loads = []sample.Load{l}
			return f.makeAndRun(c, e, r)
		},
	}
	fl := c.Flags()
	p.add(fl)
	addFrom(fl, &f.from, mode.OfModes|mode.OfServers, mode.FromHost)
	f.addTo(fl)
	fl.Lookup("to").Usage = runToHelp
	f.addBaseline(fl)
	f.addTune(fl)
	f.addRun(fl)
	f.onlyLocal(fl, peerOfRun...)
	return c
}

const secondsHelp = "{seconds}, in whole seconds, for clients that take how long to run"

func clientWindow(to *time.Duration) pflag.Value {
	return timeFlag(to, time.Second, time.Second, maxSeconds*time.Second)
}

// seconds returns the value of {seconds}.
func (f *programFlags) seconds() int { return int(math.Ceil(f.window.Seconds())) }

func (f *programFlags) load() (l sample.Load, err error) {
	p := sample.Program{Ready: program.ReadyTCP}
	if f.recipe != "" {
		if p, err = f.fromRecipe(); err != nil {
			return l, err
		}
	}
	for _, o := range []struct {
		to   *string
		text string
	}{{&p.Server, f.server}, {&p.Client, f.client}, {&p.Ready, f.ready}} {
		if o.text != "" {
			*o.to = o.text
		}
	}
	p.NoRoot = p.NoRoot || f.noRoot
	if err := f.check(p); err != nil {
		return l, err
	}
	return f.finished(p)
}

func (f *programFlags) finished(p sample.Program) (l sample.Load, err error) {
	if len(f.metrics) > 0 {
		if p.Gauges, err = parseMetrics(f.metrics); err != nil {
			return l, err
		}
	}
	p.Seconds, p.Timeout = f.seconds(), f.timeout.Seconds()
	p.Second = program.NeedsSecond(p.Server) || program.NeedsSecond(p.Client)
	return sample.Load{Kind: workload.Exec, Options: sample.ExecOptions{Program: &p},
		Window: float64(p.Seconds)}, nil
}

// fromRecipe returns the programs of --recipe. It returns an error if they are not installed,
// unless --server or --client replaces one.
func (f *programFlags) fromRecipe() (p sample.Program, err error) {
	r, err := program.FindRecipe(f.recipe)
	if err != nil {
		return p, usage(err, "")
	}
	if f.server == "" && f.client == "" {
		if err := r.Check(); err != nil {
			return p, &failure{code: exitNothing, err: fmt.Errorf("recipe %s: %w", r.Name, err)}
		}
	}
	return r.Program()
}

func (f *programFlags) check(p sample.Program) error {
	switch {
	case p.Server == "" && p.Client != "":
		return usage(errors.New("no server is given: give --server, or HOST:PORT of a running one"),
			"toll run 127.0.0.1:6379 --client …")
	case p.Server == "" || p.Client == "":
		return usage(errors.New("no programs are given: give --recipe, or --server and --client"),
			"toll run --recipe redis")
	case !hasAny(p.Server, "{port}", "{addr}"):
		return usage(
			errors.New("--server has no {port} and no {addr}: the server would not know where to listen"),
			"--server 'nc -l {port}'")
	}
	if _, err := regexp.Compile(p.Ready); err != nil {
		return usage(fmt.Errorf("--ready: %w", err),
			"tcp, udp, or a regular expression (https://golang.org/s/re2syntax)")
	}
	return f.checkBoth(p)
}

func (f *programFlags) checkBoth(p sample.Program) error {
	switch {
	case !f.addressed && !hasAny(p.Client, "{host}", "{addr}"):
		return usage(
			errors.New("--client has no {host} and no {addr}: the client would not know where to connect"),
			"--client 'curl http://{addr}/'")
	case f.windowed && !hasAny(p.Server+p.Client, "{seconds}"):
		return usage(errNoSeconds, "toll run 127.0.0.1:5201 --client 'iperf3 -c {host} -t {seconds}'")
	case hasAny(p.Client, "{seconds}") && f.timeout.Seconds() <= float64(f.seconds()):
		return usage(fmt.Errorf("--timeout %s is too short: the client alone runs for %d s",
			f.timeout, f.seconds()),
			fmt.Sprintf("--timeout %ds", min(10+2*f.seconds(), int(maxTimeout.Seconds()))))
	case len(f.metrics) > maxMetrics:
		return usage(fmt.Errorf("--metric was given %d times, at most %d are possible",
			len(f.metrics), maxMetrics), "")
	}
	return nil
}

var errNoSeconds = errors.New("--window is {seconds}, which --client does not have")

func hasAny(s string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s, w) })
}

func parseMetrics(words []string) ([]sample.Gauge, error) {
	var out []sample.Gauge
	seen := map[string]bool{}
	for _, w := range words {
		g, err := program.ParseGauge(w)
		if err == nil && seen[g.Name] {
			err = fmt.Errorf("the name %s is used twice", g.Name)
		}
		if err != nil {
			return nil, usage(fmt.Errorf("--metric %q: %w", w, err),
				`--metric 'latency:ms=p50 ([\d.]+)'`)
		}
		seen[g.Name] = true
		out = append(out, g)
	}
	return out, nil
}

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
