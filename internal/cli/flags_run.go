package cli

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

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
