package cli

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/lab"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/text/suggest"
)

// A request is what a command's flags and arguments ask for.
type request struct {
	plan.Request
	whole map[string]string // why loads are not sliced, by their names
}

// request returns what the flags and arguments ask for. It leaves fields empty for which the
// command has no flag. The CPUs are watched from then on, because watching takes longer than the
// rest of a run's start.
func (f *runFlags) request(c *cobra.Command, args []string) (r request, err error) {
	f.watched = contentionSince(ownCPU)
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

// fromInside returns the default of --from: in a container if only outward targets are requested,
// but on the machine if all modes are native, which has no container.
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

// runFlags are the flags of the commands that measure: where the modes are built, what is measured,
// what is sent, how long, and what is written.
type runFlags struct {
	builderFlags
	targets
	traffic
	timing
	writing
}

type targets struct {
	from, to   []string
	ipv4, ipv6 bool
	tune       []string
	baseline   string
}

type traffic struct {
	loads   loadFlags
	sweeps  []string // each --sweep on the command line
	slicing sliceFlags
	window  time.Duration
	pin     string
	onePin  bool // the command measures one placement on CPUs only
}

type timing struct {
	rounds    int
	budget    time.Duration
	precision float64
	seed      uint64
	busy      bool // measure even on a busy machine
	// watched returns what others have taken of the CPUs since the request was read.
	watched func() sample.Contention
}

type writing struct {
	out           outputFlags
	save          string
	dryRun, quiet bool
	live          bool
}

const targetsHelp = "loopback (127.0.0.1), address (the machine's own), container, outside (the container's way out to another machine); with a 6 (loopback6 is ::1), over IPv6"

func addFrom(fl *pflag.FlagSet, into *[]string, of mode.Clients, usual ...mode.Placement) {
	var words []string
	for _, p := range usual {
		words = append(words, string(p))
	}
	add(fl, flagDef{name: "from", group: toMeasure, value: list(into, words...), word: "PLACE",
		help: "where the client runs: " + of.Help(), main: measuring, offer: fromWords(of)})
}

func fromWords(of mode.Clients) (words []string) {
	for _, p := range of.Placements() {
		words = append(words, string(p)+"\t"+p.Words())
	}
	return words
}

func (f *targets) addTo(fl *pflag.FlagSet) {
	addTarget(fl, list(&f.to), "what the client dials: "+targetsHelp+
		" (default all but outside over IPv4, and docker-proxy at ::1)", targetWords())
	addFamilies(fl, &f.ipv4, &f.ipv6, "dial")
}

func addTarget(fl *pflag.FlagSet, to pflag.Value, help string, words []string) {
	add(fl, flagDef{name: "to", group: toMeasure, value: to, word: "TARGET", help: help,
		main: "trace advise path", offer: words})
}

// addFamilies adds -4, unless four is nil, and -6. dial is a verb, or the verb and its object.
func addFamilies(fl *pflag.FlagSet, four, six *bool, dial string) {
	if four != nil {
		add(fl, flagDef{name: "ipv4", short: "4", group: toMeasure, value: toggle(four),
			help: dial + " over IPv4; with -6, over both, to see what IPv6 costs"})
	}
	add(fl, flagDef{name: "ipv6", short: "6", group: toMeasure, value: toggle(six),
		help: dial + " over IPv6", main: "compare path"})
}

func (f *targets) addTune(fl *pflag.FlagSet) {
	addTunes(fl, &f.tune, "measure each mode also with these settings: "+tuneWords+
		"; + joins the settings of a variant")
}

func addTunes(fl *pflag.FlagSet, to *[]string, help string) {
	add(fl, flagDef{name: "tune", group: toMeasure, value: list(to), word: "TUNE", help: help,
		main: "compare trace path", offer: tuneStarts()})
}

func (f *targets) addBaseline(fl *pflag.FlagSet) {
	f.addBase(fl, string(mode.Host), "the mode that others are compared with")
}

func (f *targets) addBase(fl *pflag.FlagSet, preset, help string) {
	add(fl, flagDef{name: "baseline", group: toMeasure, value: text(&f.baseline, preset),
		word: "MODE", help: help, main: "compare trace", offer: modeWords()})
}

const (
	minWindow = 10 * time.Millisecond
	maxWindow = workload.MaxWindow
)

func (f *traffic) addWindow(fl *pflag.FlagSet) {
	add(fl, flagDef{name: "window", group: howLong,
		value: timeFlag(&f.window, 250*time.Millisecond, minWindow, maxWindow),
		help:  "how long each visit measures, after the warm-up"})
}

func (f *runFlags) addRun(fl *pflag.FlagSet) {
	f.addBuilders(fl)
	f.out.addDetails(fl)
	f.addLive(fl)
	f.addRounds(fl)
	fl.Lookup("budget").Usage = "end within this time; a given budget that is too short for a verdict " +
		"is refused"
	add(fl, flagDef{name: "busy", group: howLong, value: toggle(&f.busy),
		help: "measure even while other programs use the CPUs"})
}

func (f *runFlags) addEndpoints(fl *pflag.FlagSet) {
	f.addBase(fl, "", "the endpoint that others are compared with (default the first)")
	f.out.addDetails(fl)
	f.addLive(fl)
	f.addRounds(fl)
}

func (f *runFlags) addRounds(fl *pflag.FlagSet) {
	f.timing.add(fl)
	f.writing.add(fl)
}

func (f *timing) add(fl *pflag.FlagSet) {
	add(fl,
		flagDef{name: "budget", group: howLong, main: measuring,
			value: timeFlag(&f.budget, time.Minute, 1, unlimited[time.Duration]()),
			help:  "end within this time; the default grows to the rounds that a verdict needs"},
		flagDef{name: precisionFlag, group: howLong, value: shareFlag(&f.precision, 0.02),
			help: "end when every ratio is known to ± this much"},
		flagDef{name: "rounds", group: howLong, value: wholeFlag(&f.rounds, 0, 0, unlimited[int]()),
			help: "make this many rounds, regardless of precision and, unless --budget is given, too, of the time"},
		flagDef{name: "seed", group: howLong, value: seedFlag(&f.seed),
			help: "seed of the random order (default a new one, which is printed)"})
}

func (f *writing) add(fl *pflag.FlagSet) {
	add(fl, flagDef{name: saveFlag, group: toWrite, value: text(&f.save, ""), word: "FILE",
		help: "also write every measurement to this file, for toll report and others",
		main: measuring, files: resultsFile, use: shows | trusts})
	f.out.add(fl, document.AReport)
	add(fl,
		flagDef{name: "dry-run", group: toWrite, value: toggle(&f.dryRun),
			help: "print the plan and measure nothing", use: trusts},
		flagDef{name: "quiet", group: toWrite, value: toggle(&f.quiet),
			help: "print no progress on the standard error", use: shows})
}

const precisionFlag = "precision"
