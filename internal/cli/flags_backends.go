package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/machine/meter"
	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/peer"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

type builderFlags struct {
	on    []string
	wire  string
	rules labRules
	mesh  bool // the command is toll mesh

	nodes []string // names of a cluster's nodes
	image string   // image of a cluster's containers
	// address is where the other machines reach this one, or in a mesh of machines their network.
	address string
	of      map[string]settings
	all     *pflag.FlagSet
}

func (f *builderFlags) addBuilders(fl *pflag.FlagSet) {
	f.addOn(fl, []string{sample.Lab}, backendNames(), "what builds the modes: "+
		listBackends(backends, false)+", or several: "+strings.Join(backendNames()[:2], ","))
	f.addSettings(fl, comparesRuns)
}

func (f *builderFlags) addBuilder(fl *pflag.FlagSet, k commandKind) {
	f.addOn(fl, []string{sample.Lab}, backendNames(), "who builds: "+listBackends(backends, true))
	f.addSettings(fl, k)
}

func (f *builderFlags) addOn(fl *pflag.FlagSet, preset, names []string, help string) {
	add(fl, flagDef{name: "on", group: where, value: list(&f.on, preset...), word: "BACKEND", help: help,
		main: measuring + " path", offer: names})
}

// onlyLocal removes the backends with distant ends, which the command refuses, and their flags from
// help and completion, but for some flags.
func (f *builderFlags) onlyLocal(fl *pflag.FlagSet, but ...string) {
	names := namesOf(localBackends())
	fl.VisitAll(func(x *pflag.Flag) {
		x.Hidden = x.Hidden || len(owners(x)) > 0 && !usedBy(x, names) &&
			!slices.Contains(but, x.Name)
	})
	fl.Lookup("on").Usage = "what builds the modes: " + listBackends(localBackends(), false) +
		", or several: " +
		strings.Join(names, ",")
	offer(fl, "on", names)
}

func localBackends() []backend {
	return slices.DeleteFunc(slices.Clone(backends), func(b backend) bool {
		return sample.Distant(b.name)
	})
}

func (f *builderFlags) addSettings(fl *pflag.FlagSet, k commandKind) {
	f.of, f.all = map[string]settings{}, fl
	for _, b := range backends {
		if !f.mesh || b.meshModes != nil {
			f.of[b.name] = b.settings(f)
			f.of[b.name].add(fl, k)
		}
	}
}

// backends returns the backends of --on, or the peer if only --peer was given.
func (f *builderFlags) backends() ([]string, error) {
	if f.all != nil && !f.all.Changed("on") && f.all.Changed(peerFlag) {
		return []string{peer.Name}, nil
	}
	return parseAll(f.on, parseBackend)
}

func (f *builderFlags) one() (string, error) {
	on, err := f.backends()
	if err == nil && len(on) != 1 {
		err = usage(fmt.Errorf("--on %s: this command takes one backend", strings.Join(on, ",")),
			"--on "+on[0])
	}
	if err != nil {
		return "", err
	}
	return on[0], nil
}

func (f *builderFlags) with(ctx context.Context, on []string, wire sample.Wire,
	use func([]path.Builder) error) error {
	if err := f.fit(on); err != nil {
		return err
	}
	var builders []path.Builder
	run := func() error { return use(builders) }
	for _, b := range slices.Backward(backends) {
		if inner := run; slices.Contains(on, b.name) {
			run = func() error {
				return f.of[b.name].with(ctx, wire, func(built path.Builder) error {
					builders = append(builders, built)
					return inner()
				})
			}
		}
	}
	return run()
}

type timed interface {
	Time() (engine.Clock, engine.Meter)
}

// timeOf returns the clock and the meter of the first backend that has its own, or else the
// machine's.
func timeOf(builders []path.Builder) (engine.Clock, engine.Meter, error) {
	for _, b := range builders {
		if t, ok := b.(timed); ok {
			c, m := t.Time()
			return c, m, nil
		}
	}
	m, err := meter.New()
	return engine.Monotonic{}, m, err
}

// fit returns an error for flags of a backend that is not used, and for flags of a model in a run
// with other backends.
func (f *builderFlags) fit(on []string) error {
	for _, b := range backends {
		used := slices.Contains(on, b.name)
		others := slices.DeleteFunc(slices.Clone(on), func(s string) bool { return s == b.name })
		switch x := given(f.all, func(x *pflag.Flag) bool {
			return slices.Contains(owners(x), b.name) && (used || !usedBy(x, on))
		}); {
		case x == nil:
		case b.model && len(others) > 0:
			return usage(fmt.Errorf("--%s works only with --on %s, not with %s", x.Name, b.name,
				others[0]), "--on "+b.name+", or leave --"+x.Name+" out")
		case !used:
			return usage(fmt.Errorf("--%s is for %s only", x.Name,
				strings.Join(owners(x), " and ")), "--on "+b.name+", or leave --"+x.Name+" out")
		}
		if used {
			if err := f.of[b.name].check(); err != nil {
				return err
			}
		}
	}
	return nil
}

// owners returns the backends whose flag it is.
func owners(x *pflag.Flag) []string { return x.Annotations[ofOnes] }

func usedBy(x *pflag.Flag, on []string) bool {
	return slices.ContainsFunc(owners(x), func(name string) bool {
		return slices.Contains(on, name)
	})
}

// given returns the first flag that looked selects and whose value is not its default, or nil.
func given(fl *pflag.FlagSet, looked func(*pflag.Flag) bool) (first *pflag.Flag) {
	fl.VisitAll(func(x *pflag.Flag) {
		if first == nil && x.Value.String() != x.DefValue && looked(x) {
			first = x
		}
	})
	return first
}

// defaults returns the defaults of the first backend that has some, or else the flags' own.
func (f *builderFlags) defaults(on []string) (defaults, error) {
	for _, b := range backends {
		if !slices.Contains(on, b.name) {
			continue
		}
		others := slices.DeleteFunc(slices.Clone(on), func(s string) bool { return s == b.name })
		if d, err := f.of[b.name].defaults(others); d != nil || err != nil {
			if d == nil {
				d = &defaults{}
			}
			return *d, err
		}
	}
	return defaults{here: true}, nil
}

func reachedFrom(m mode.Name, from []string) bool {
	known, _ := mode.Find(m)
	return !slices.ContainsFunc(from, func(p string) bool {
		return len(known.RoutesFrom(mode.Placement(p))) == 0
	})
}

type settings interface {
	add(fl *pflag.FlagSet, k commandKind)
	// defaults returns the defaults of a run that also has the other backends, or nil for the
	// flags' defaults.
	defaults(others []string) (*defaults, error)
	// check checks the backend's flags. It is called only if the backend is used.
	check() error
	with(ctx context.Context, wire sample.Wire, use func(path.Builder) error) error
}

type defaults struct {
	modes    []string
	here     bool             // client and server are on one machine
	from     []mode.Placement // nil: the flag's default
	one      mode.Placement   // of commands without --baseline, which measure one placement; "": from
	baseline mode.Name        // "": the flag's
	mesh     string           // default of --mode of toll mesh
}

// commandKind is a set of flags. Each kind includes the flags of the kinds before.
type commandKind int

const (
	checksPaths commandKind = iota
	buildsPath
	comparesRuns // the commands that measure
)

func closing(b interface {
	path.Builder
	Close() error
}, use func(path.Builder) error) (err error) {
	defer func() { err = errors.Join(err, b.Close()) }()
	return use(b)
}
