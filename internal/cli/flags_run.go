package cli

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

type runFlags struct {
	builderFlags

	from, to       []string
	ipv4, ipv6     bool
	tune           []string
	rounds         int
	window, budget time.Duration
	windowSet      bool
	budgetSet      bool
	pinSet         bool
	onePin         bool // the command measures one placement on CPUs only
	precision      float64
	baseline, pin  string
	seed           uint64
	loads          loadFlags
	sweep          sweepFlags
	slicing        sliceFlags
	save           string
	out            outputFlags
	dryRun, quiet  bool
	live           bool
	title          string
	noHistory      bool
	busy           bool              // measure even on a busy machine
	trace          *sample.TracePlan // what is traced; nil: nothing
	hooksForNAT    bool              // trace by hook if a path has NAT and the kernel can

	// plan makes the plan; nil: plan.Make. steps changes the run's steps; it may be nil.
	plan  func(plan.Request) (sample.Plan, error)
	steps func(*engine.Config)
}

const targetsHelp = "loopback (127.0.0.1), address (the machine's own), container, outside (the container's way out to another machine); with a 6 (loopback6 is ::1), over IPv6"

func addFrom(fl *pflag.FlagSet, into *[]string, of mode.Clients, usual ...mode.Placement) {
	var words []string
	for _, p := range usual {
		words = append(words, string(p))
	}
	fl.StringSliceVar(into, "from", words, "where the client runs: "+of.Help())
	offerFrom(fl, of)
}

func offerFrom(fl *pflag.FlagSet, of mode.Clients) {
	var words []string
	for _, p := range of.Placements() {
		words = append(words, string(p)+"\t"+p.Words())
	}
	offer(fl, "from", words)
}

func (f *runFlags) addTo(fl *pflag.FlagSet) {
	fl.StringSliceVar(
		&f.to, "to", nil,
		"what the client dials: "+targetsHelp+" (default all but outside over IPv4, and docker-proxy at ::1)")
	fl.BoolVarP(&f.ipv4, "ipv4", "4", false,
		"dial over IPv4; with -6, over both, to see what IPv6 costs")
	fl.BoolVarP(&f.ipv6, "ipv6", "6", false, "dial over IPv6")
}

func (f *runFlags) addTune(fl *pflag.FlagSet) {
	fl.StringSliceVar(&f.tune, "tune", nil,
		"measure each mode also with these settings: "+tuneWords+"; + joins the settings of a variant")
}

func (f *runFlags) addBaseline(fl *pflag.FlagSet) {
	fl.StringVar(&f.baseline, "baseline", string(mode.Host),
		"the mode that others are compared with")
}

func (f *runFlags) addWindow(fl *pflag.FlagSet) {
	fl.Var(timeFlag(&f.window, 250*time.Millisecond, minWindow, maxWindow), "window",
		"how long each visit measures, after the warm-up")
}

func (f *runFlags) addRun(fl *pflag.FlagSet) {
	f.addBuilders(fl)
	f.addRounds(fl)
	fl.Lookup("budget").Usage = "end within this time; a given budget that is too short for a verdict " +
		"is refused"
	fl.BoolVar(&f.busy, "busy", false, "measure even while other programs use the CPUs")
	f.addLive(fl)
}

func (f *runFlags) addEndpoints(fl *pflag.FlagSet) {
	fl.StringVar(&f.baseline, "baseline", "",
		"the endpoint that others are compared with (default the first)")
	f.addRounds(fl)
	f.addLive(fl)
}

func (f *runFlags) addRounds(fl *pflag.FlagSet) {
	fl.Var(timeFlag(&f.budget, time.Minute, 1, unlimited[time.Duration]()), "budget",
		"end within this time; the default grows to the rounds that a verdict needs")
	fl.Var(shareFlag(&f.precision, 0.02), "precision",
		"end when every ratio is known to ± this much")
	fl.Var(wholeFlag(&f.rounds, 0, 0, unlimited[int]()), "rounds",
		"make this many rounds, regardless of precision and, unless --budget is given, too, of the time")
	fl.Var(
		seedFlag(&f.seed), "seed", "seed of the random order (default a new one, which is printed)")
	fl.StringVar(
		&f.save, saveFlag, "",
		"also write every measurement to this file, for toll report and others")
	f.out.add(fl, document.AReport)
	fl.BoolVar(&f.dryRun, "dry-run", false, "print the plan and measure nothing")
	fl.BoolVar(&f.noHistory, "no-history", false,
		"neither keep the run in the history (toll history) nor learn from it")
	fl.BoolVar(&f.quiet, "quiet", false, "print no progress on the standard error")
}
