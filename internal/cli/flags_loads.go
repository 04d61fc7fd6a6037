package cli

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/measure/load"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

type loadFlags struct {
	kinds []string
	flags map[string]loadFlag
}

var loadNames = names(func(w workload.Workload) bool { return w.Gist != "" })

func names(has func(workload.Workload) bool) (out []string) {
	for _, w := range workload.All() {
		if has(w) {
			out = append(out, w.Name)
		}
	}
	return out
}

func flagOf(w workload.Workload, name string) (f workload.Flag, ok bool) {
	i := slices.IndexFunc(w.Flags, func(f workload.Flag) bool { return f.Name == name })
	if i < 0 {
		return f, false
	}
	return w.Flags[i], true
}

const sliceFlag = "slice"

// loadsWith returns toll's own loads that have a flag without the help of another flag.
func loadsWith(flag string) []string {
	return names(func(w workload.Workload) bool {
		if flag == sliceFlag {
			return w.Gist != "" && w.NotSliced(w.New()) == ""
		}
		f, ok := flagOf(w, flag)
		return ok && w.Gist != "" && f.With == ""
	})
}

// addLoads adds --load, with kinds as the default, and the flags of all loads. Help shows the flags
// of the loads in takes.
func (f *traffic) addLoads(fl *pflag.FlagSet, takes []string, kinds ...string) {
	var words []string
	for _, n := range takes {
		w, _ := workload.Find(n)
		words = append(words, n+" ("+w.Gist+")")
	}
	f.addLoad(fl, kinds, takes, strings.Join(words, ", "))
	f.loads.add(fl, loadNames, func(string) bool { return true })
	for name := range f.loads.flags {
		if has := loadsWith(name); !slices.ContainsFunc(takes, func(l string) bool {
			return slices.Contains(has, l)
		}) {
			_ = fl.MarkHidden(name) // fails for flags that do not exist
		} else {
			fl.Lookup(name).Usage = flagHelp(name, takes)
		}
	}
}

func (f *traffic) addLoad(fl *pflag.FlagSet, preset, takes []string, help string) {
	add(fl, flagDef{name: "load", group: toSend, value: list(&f.loads.kinds, preset...), word: "LOAD",
		help: "the traffic: " + help, main: measuring, offer: loadWords(takes)})
}

func (f *loadFlags) add(fl *pflag.FlagSet, loads []string, wanted func(flag string) bool) {
	f.flags = map[string]loadFlag{}
	for _, n := range loads {
		w, _ := workload.Find(n)
		for _, x := range w.Flags {
			if _, ok := f.flags[x.Name]; ok || !wanted(x.Name) {
				continue
			}
			f.flags[x.Name] = newLoadFlag(x.Value)
			one := flagDef{name: x.Name, group: toSend, value: f.flags[x.Name].value,
				help: flagHelp(x.Name, loads)}
			if v, is := x.Value.(workload.Choice); is {
				if one.word, one.offer = "HOW", v.Words; len(v.Words) == 2 {
					one.word = strings.Join(v.Words, "|")
				}
			}
			add(fl, one)
			if _, is := x.Value.(workload.Rate); is { // its help already names the default
				fl.Lookup(x.Name).DefValue = ""
			}
		}
	}
}

// flagHelp returns what the flag does for each load, with the defaults that differ from the first
// load's.
func flagHelp(name string, loads []string) string {
	var have, what, defaults []string
	first, bare := "", false
	for _, n := range loads {
		w, _ := workload.Find(n)
		f, ok := flagOf(w, name)
		if !ok || f.With != "" {
			continue
		}
		if have = append(have, n); len(have) == 1 {
			first, bare = presetOf(f), f.Bare
		}
		if !slices.Contains(what, f.Help) {
			what = append(what, f.Help)
		}
		if preset := presetOf(f); preset != first {
			defaults = append(defaults, fmt.Sprintf(" (default of %s %s)", n, preset))
		}
	}
	text := strings.Join(what, ", ") + strings.Join(defaults, "")
	if bare {
		return text
	}
	return strings.Join(have, ", ") + ": " + text
}

func presetOf(f workload.Flag) string { return newLoadFlag(f.Value).value.String() }

// hasFlag reports whether a load has a flag, if need be by another flag that was given.
func hasFlag(fl *pflag.FlagSet, load, flag string) bool {
	if slices.Contains(loadsWith(flag), load) {
		return true
	}
	w, _ := workload.Find(load)
	x, ok := flagOf(w, flag)
	return ok && x.With != "" && fl.Changed(x.With)
}

// idle returns an error for a flag that the user gave and none of the loads has.
func (f *loadFlags) idle(fl *pflag.FlagSet, kinds []string) error {
	flags := []string{sliceFlag}
	for name := range f.flags {
		flags = append(flags, name)
	}
	slices.Sort(flags)
	for _, flag := range flags {
		if !fl.Changed(flag) || slices.ContainsFunc(kinds, func(kind string) bool {
			return hasFlag(fl, kind, flag)
		}) {
			continue
		}
		loads := loadsWith(flag)
		return usage(fmt.Errorf("--%s is for %s; the loads here are: %s", flag,
			strings.Join(loads, ", "), strings.Join(kinds, ", ")),
			"leave --"+flag+" out, or add --load "+loads[0])
	}
	return nil
}

// load makes a load at a point of a sweep, with a window of at least window seconds.
func (f *loadFlags) load(fl *pflag.FlagSet, kind string, w sample.Wire, window float64,
	p sweepPoint) (sample.Load, error) {
	known, _ := workload.Find(kind)
	l := known.New()
	for _, x := range known.Flags {
		flag, ok := f.flags[x.Name]
		if !ok || !fl.Changed(x.Name) {
			continue
		}
		if err := flag.put(x.Value, &l); err != nil {
			return l, err
		}
	}
	if err := p.put(known, &l); err != nil {
		return l, err
	}
	known.Time(&l, w)
	l.Window = max(window, l.Window)
	if err := known.Check(l); err != nil {
		return l, usage(err, "")
	}
	if err := load.CanSend(workload.BulkOf(l).Send); err != nil {
		return l, &failure{exitNothing, fmt.Errorf("--send %s: %w", workload.BulkOf(l).Send, err),
			"leave --send out, or use a kernel that has it"}
	}
	if known.Threads(l) > workload.ManyThreads {
		l = plan.TakeTurns(l, turn(machine.Machine{}))
	}
	return l, enoughFiles(known, l)
}

// enoughFiles returns an error if the limit of open files is too low for a load. Each connection
// takes a file for each of toll's ends, and six for a docker-proxy with its pipes.
func enoughFiles(w workload.Workload, l sample.Load) error {
	const others, each = 100, 6
	if w.FilesFor == "" {
		return nil
	}
	here := machine.Machine{}
	if err := here.Headroom(machine.Crowd{Files: others + each*l.Streams}); err != nil {
		return &failure{code: exitNothing, err: fmt.Errorf(
			"--%s %d: %w", w.FilesFor, l.Streams, err)}
	}
	return nil
}

func (f *loadFlags) crowd(fl *pflag.FlagSet) error {
	for _, name := range f.kinds {
		w, _ := workload.Find(name)
		for _, x := range w.Flags {
			if x.NotOfCrowds && fl.Changed(x.Name) && f.flags[x.Name].value.String() != presetOf(x) {
				return usage(fmt.Errorf(
					"toll scale has no --%s: a crowd's load fills the window, in one direction",
					x.Name), "toll compare --"+x.Name)
			}
		}
	}
	return nil
}

func crowdless() (out []string) {
	for _, l := range crowdLoads {
		w, _ := workload.Find(l)
		for _, x := range w.Flags {
			if x.NotOfCrowds {
				out = append(out, x.Name)
			}
		}
	}
	return out
}

func only(r plan.Request, command string, loads ...string) error {
	for _, l := range r.Loads {
		if !slices.Contains(loads, l.Kind) {
			return usage(fmt.Errorf("toll %s has no load %s", command, l.Kind),
				fmt.Sprintf("toll compare --load %s, or toll %s --load %s", l.Kind, command,
					strings.Join(loads, ",")))
		}
	}
	return nil
}

type sliceFlags struct {
	same  float64       // 0: the command has no such flags
	slice time.Duration // 0: nothing is sliced
}

func (f *sliceFlags) add(fl *pflag.FlagSet) {
	slice := timeFlag(&f.slice, 4*time.Millisecond, minSlice, maxSlice)
	slice.orZero = true
	add(fl,
		flagDef{name: "same", group: howLong, value: shareFlag(&f.same, 0.03),
			help: "a difference within this counts as none: the verdict is same"},
		flagDef{name: sliceFlag, group: howLong, value: slice,
			help: strings.Join(loadsWith(sliceFlag), ", ") +
				": how long a turn is; if not given, bulk takes 16ms, query 10ms, and many streams longer; 0: measure one mode after another for --window each, as with other loads"})
	fl.Lookup("window").Usage += "; 50ms for loads measured in turns"
}

const (
	minSlice = time.Millisecond
	maxSlice = time.Second
)

// epochLength is the total time of the slices in an epoch, in seconds. Tests change it.
var epochLength = plan.UsualEpoch

// slicingOf returns how the loads of a run on the backends are cut into slices.
func (f *traffic) slicingOf(fl *pflag.FlagSet, on []string) plan.Slicing {
	s := plan.Slicing{Slice: f.slicing.slice.Seconds(), Asked: fl.Changed(sliceFlag),
		CPUs: runtime.NumCPU(), Visits: visitsOn(on)}
	if fl.Changed("window") {
		s.Window = f.window.Seconds()
	}
	return s
}

// into returns the request, whose loads are cut, with what the slices are judged by.
func (f sliceFlags) into(r request, fl *pflag.FlagSet) (request, error) {
	if f.same == 0 {
		return r, nil
	}
	r.Same, r.Epoch = f.same, epochLength
	if fl.Changed("same") && !fl.Changed(precisionFlag) {
		const within = 2. / 3 // a wider interval hardly ever lies within --same
		r.Precision = min(r.Precision, within*r.Same)
	}
	sliced := func(l sample.Load) bool { return l.Slice > 0 }
	if fl.Changed(sliceFlag) && f.slice > 0 && !slices.ContainsFunc(r.Loads, sliced) {
		l := r.Loads[0]
		return r, usage(fmt.Errorf("--slice %s: %s cannot be measured in slices: %s", f.slice,
			l.Kind, r.whole[l.Name()]), "leave --slice out")
	}
	return r, nil
}
