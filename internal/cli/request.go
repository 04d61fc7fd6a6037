package cli

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/lab"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/suggest"
)

// A request is what a command's flags and arguments ask for.
type request struct {
	plan.Request
	whole map[string]string // why loads are not sliced, by their names
}

// request returns what the flags and arguments ask for. It leaves fields empty for which the command
// has no flag.
func (f *runFlags) request(c *cobra.Command, args []string) (r request, err error) {
	fl := c.Flags()
	if r.On, err = f.backends(); err != nil {
		return r, err
	}
	d, err := f.defaults(r.On)
	if err == nil {
		r.Pin, err = f.pinOf(fl, !d.here, len(f.sweeps) > 0)
	}
	if err := errors.Join(err, f.checkLive()); err != nil {
		return r, err
	}
	if err := f.out.check(place{saveFlag, f.save}); err != nil {
		return r, err
	}
	to := f.orDefault(d, fl, args)
	if len(args) == 0 {
		args = d.modes
	}
	if r.Modes, err = parseModes(args, r.On); err != nil {
		return r, joinedByCommas(err, fl, f.from)
	}
	if r.Request, err = to.into(r.Request); err != nil {
		return r, err
	}
	if r.Wire, err = parseWire(f.wire); err != nil {
		return r, err
	}
	r.Request = f.timing.into(r.Request, fl)
	return f.traffic.into(r, fl)
}

// joinedByCommas returns the error of the modes. If all unknown ones are placements and --from was
// given, its hint is --from with these, too.
func joinedByCommas(all error, fl *pflag.FlagSet, from []string) error {
	unknown, ok := errors.AsType[*suggest.UnknownError](all)
	if !ok || !fl.Changed("from") {
		return all
	}
	for _, w := range unknown.Words {
		if _, err := mode.ParsePlacement(w); err != nil {
			return all
		}
	}
	from = slices.DeleteFunc(slices.Concat(from, unknown.Words), func(s string) bool {
		return s == ""
	})
	return usage(errors.New(unknown.Error()), "--from "+strings.Join(from, ","))
}

// orDefault returns the targets with the backends' defaults for the flags that were not given.
func (f targets) orDefault(d defaults, fl *pflag.FlagSet, modes []string) targets {
	baseline := fl.Lookup("baseline")
	if !fl.Changed("from") && d.from != nil {
		f.from = nil
		for _, p := range d.from {
			f.from = append(f.from, string(p))
		}
		if baseline == nil && d.one != "" {
			f.from = []string{string(d.one)}
		}
	}
	if len(modes) == 0 {
		modes = d.modes
	}
	if !fl.Changed("from") {
		f.from = f.fromInside(modes)
	}
	if baseline != nil && !baseline.Changed && d.baseline != "" && reachedFrom(d.baseline, f.from) {
		f.baseline = string(d.baseline)
	}
	return f
}

// fromInside returns the default of --from: in a container if only outward targets are requested, but
// on the machine if all modes are native, which has no container.
func (f targets) fromInside(modes []string) []string {
	inward := func(to string) bool { return !mode.Target(to).Outside() }
	contained := func(m string) bool { return m != string(mode.Native) }
	switch {
	case len(f.to) == 0 || slices.ContainsFunc(f.to, inward):
		return f.from
	case len(modes) > 0 && !slices.ContainsFunc(modes, contained):
		return []string{string(mode.FromHost)}
	}
	return []string{string(mode.FromContainer)}
}

func (f targets) into(r plan.Request) (_ plan.Request, err error) {
	if r.From, err = parseAll(f.from, mode.ParsePlacement); err != nil {
		return r, err
	}
	if r.To, err = parseAll(f.to, mode.ParseTarget); err != nil {
		return r, err
	}
	r.To = inFamilies(r.To, f.ipv4, f.ipv6)
	if f.baseline != "" {
		if r.Baseline, err = parseOne(f.baseline, mode.ParseName); err != nil {
			return r, err
		}
	}
	r.Tunes, err = parseAll(f.tune, mode.ParseTunes)
	return r, err
}

func (f timing) into(r plan.Request, fl *pflag.FlagSet) plan.Request {
	r.Rounds, r.Budget, r.Bound = f.rounds, f.budget.Seconds(), fl.Changed("budget")
	r.Precision, r.Seed = f.precision, f.seed
	if !fl.Changed("seed") {
		r.Seed = uint64(rand.Uint32())
	}
	return r
}

// into returns a request that has everything else with what is sent. A command without flags of
// loads adds the loads later.
func (f *traffic) into(r request, fl *pflag.FlagSet) (_ request, err error) {
	if len(f.loads.kinds) > 0 {
		loads, values, err := f.loadsOver(fl, r.Wire)
		if err != nil {
			return r, err
		}
		r.Request = values.into(r.Request)
		r.Loads = loads
		r.Loads, r.whole = f.slicingOf(fl, r.On).Cut(r.Request)
	}
	if r.Request, err = f.pinned(r.Request, fl.Changed("pin")); err != nil {
		return r, err
	}
	return f.slicing.into(r, fl)
}

// inFamilies returns the targets unchanged if no family is chosen. An empty list means all targets.
func inFamilies(to []mode.Target, four, six bool) (out []mode.Target) {
	if !four && !six {
		return to
	}
	if len(to) == 0 {
		to = mode.Inward(mode.Targets())
	}
	for _, f := range []struct {
		asked bool
		like  func(mode.Target) mode.Target
	}{{four, mode.Target.Over4}, {six, mode.Target.Over6}} {
		for _, t := range to {
			if t = f.like(t); f.asked && !slices.Contains(out, t) {
				out = append(out, t)
			}
		}
	}
	return out
}

func (f *runFlags) wireApplies(p sample.Plan, on []string) error {
	// Without the lab, fit has refused --wire.
	if f.wire == "" || p.Wire == nil || !slices.Contains(on, sample.Lab) {
		return nil
	}
	var from []string
	for _, c := range p.Cells {
		if lab.Applies(*p.Wire, c.Mode, c.From, c.To) {
			return nil
		}
		if word := string(c.From); !slices.Contains(from, word) {
			from = append(from, word)
		}
	}
	return idleWire(from)
}

func (f *runFlags) targetsApply(p sample.Plan) error {
	var dialled, from []string
	for _, c := range p.Cells {
		if word := string(c.To); !slices.Contains(dialled, word) {
			dialled = append(dialled, word)
		}
		if word := string(c.From); !slices.Contains(from, word) {
			from = append(from, word)
		}
	}
	for _, word := range f.to {
		t, err := mode.ParseTarget(word)
		if err != nil || slices.ContainsFunc(dialled, func(to string) bool {
			return mode.Target(to).Over4() == t.Over4()
		}) {
			continue
		}
		return usage(fmt.Errorf("--to %s: none of these modes has that target from %s", word,
			strings.Join(from, " or ")),
			"leave --to out, or --to "+strings.Join(dialled, ","))
	}
	return nil
}

func idleWire(from []string) error {
	return usage(fmt.Errorf("--wire is for paths between two machines; the placements here are: %s",
		strings.Join(from, ", ")),
		"leave --wire out, or add --from remote")
}

// loadsOver returns the loads over a wire, at each point of the sweep, not yet sliced.
func (f *traffic) loadsOver(fl *pflag.FlagSet, w sample.Wire) (out []sample.Load, values sweep,
	err error) {
	kinds, err := parseAll(f.loads.kinds, parseLoad)
	if err != nil {
		return nil, values, err
	}
	if values, err = parseSweep(f.sweeps); err != nil {
		return nil, values, err
	}
	if kinds, err = values.loads(kinds, fl); err != nil {
		return nil, values, err
	}
	if err := f.loads.idle(fl, kinds); err != nil {
		return nil, values, err
	}
	window, err := f.windowFor(fl, w)
	if err != nil {
		return nil, values, err
	}
	for _, kind := range kinds {
		for _, point := range values.points() {
			l, err := f.loads.load(fl, kind, w, window, point)
			if err != nil {
				return nil, values, point.explain(err)
			}
			out = append(out, l)
		}
	}
	return out, values, nil
}

// windowFor returns --window, or a longer default over a slow wire, in seconds.
func (f *traffic) windowFor(fl *pflag.FlagSet, w sample.Wire) (float64, error) {
	least := workload.Measured * w.RoundTrip()
	if f.window.Seconds() >= least {
		return f.window.Seconds(), nil
	}
	if fl.Changed("window") {
		return 0,
			usage(fmt.Errorf(
				"--window %s: over a wire with a delay of %gs it must hold %d round trips",
				f.window, w.Delay, workload.Measured),
				fmt.Sprintf("--window %gs", least))
	}
	return least, nil
}

// congestionHere returns this machine's congestion control, or "" if it is unknown. Tests without a
// kernel replace it.
var congestionHere = func() string {
	facts, _ := machine.Machine{}.Read() // what cannot be read is left empty
	return facts.Congestion
}
