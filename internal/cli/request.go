package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/lab"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/lever"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// toRequest returns the request of the flags and arguments. It leaves fields empty for which the
// command has no flag.
func (f *runFlags) toRequest(args []string) (r plan.Request, err error) {
	if r.On, err = parseAll(f.on, parseBackend); err != nil {
		return r, err
	}
	if r.Modes, err = parseModes(args, r.On); err != nil {
		return r, err
	}
	if err := f.targets.into(&r); err != nil {
		return r, err
	}
	if r.Wire, err = parseWire(f.wire); err != nil {
		return r, err
	}
	f.timing.into(&r, f.loads.given)
	return r, f.traffic.into(&r, f.on)
}

func (f *targets) into(r *plan.Request) (err error) {
	if r.From, err = parseAll(f.from, mode.ParsePlacement); err != nil {
		return err
	}
	if r.To, err = parseAll(f.to, mode.ParseTarget); err != nil {
		return err
	}
	r.To = inFamilies(r.To, f.ipv4, f.ipv6)
	if f.baseline != "" {
		if r.Baseline, err = parseOne(f.baseline, mode.ParseName); err != nil {
			return err
		}
	}
	r.Tunes, err = parseAll(f.tune, mode.ParseTunes)
	return err
}

func (f *timing) into(r *plan.Request, given func(flag string) bool) {
	r.Rounds, r.Budget, r.Bound = f.rounds, f.budget.Seconds(), given("budget")
	r.Precision, r.Seed = f.precision, f.seed
}

// into adds what is sent to a request that has everything else.
func (f *traffic) into(r *plan.Request, on []string) (err error) {
	if slices.ContainsFunc(r.Tunes, mode.Tunes.OfMachine) {
		f.slicing.held = heldVisits
	}
	f.slicing.queued = queues(*r)
	if r.Loads, err = f.loadsOver(r.Wire, on); err != nil {
		return err
	}
	if err := f.pinInto(r); err != nil {
		return err
	}
	return f.slicing.into(r, f.loads.given)
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

func (f *runFlags) wireApplies(p sample.Plan) error {
	// Without the lab, fit has refused --wire.
	if f.wire == "" || p.Wire == nil || !slices.Contains(f.on, sample.Lab) {
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

// loadsOver returns the loads of a run over a wire on the backends, or nil if the command has no
// flags of loads.
func (f *traffic) loadsOver(w sample.Wire, on []string) ([]sample.Load, error) {
	if len(f.loads.kinds) == 0 {
		return nil, nil
	}
	kinds, err := parseAll(f.loads.kinds, parseLoad)
	if err != nil {
		return nil, err
	}
	if kinds, err = f.sweep.loads(kinds, f.loads.given); err != nil {
		return nil, err
	}
	f.loads.kinds = kinds
	if err := f.loads.idle(); err != nil {
		return nil, err
	}
	window, err := f.windowFor(w)
	if err != nil {
		return nil, err
	}
	asked := 0.
	if f.loads.given("window") {
		asked = window
	}
	f.slicing.asked = f.loads.given(sliceFlag)
	f.slicing.unpinned = f.pin == sample.PinNone && distantOf(on) == ""
	var out []sample.Load
	for _, kind := range kinds {
		for _, point := range f.sweep.points() {
			l, err := f.loads.load(kind, w, window, point.put)
			if err != nil {
				return nil, point.explain(err)
			}
			f.slicing.cut(&l, asked, w, on)
			out = append(out, l)
		}
	}
	return out, nil
}

// windowFor returns --window, or a longer default over a slow wire, in seconds.
func (f *traffic) windowFor(w sample.Wire) (float64, error) {
	least := workload.Measured * w.RoundTrip()
	if f.window.Seconds() >= least {
		return f.window.Seconds(), nil
	}
	if f.loads.given("window") {
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

// unpacedTune sets a congestion control that does not pace and that every kernel has.
var unpacedTune = mode.Tunes(mode.Congestion) + "=reno"

// unpace also measures the lab's baseline and bridge without pacing, if the machine's congestion
// control paces bulk. It changes nothing if the user chose a congestion control or tunes.
func unpace(r *plan.Request) {
	bulk := slices.ContainsFunc(r.Loads, func(l sample.Load) bool {
		return l.Kind == workload.Bulk && l.Slice > 0
	})
	if !bulk || r.Study != "" || r.Sweep != nil || len(r.Tunes) > 0 ||
		!slices.Equal(r.On, []string{sample.Lab}) {
		return
	}
	if analysis.Paces(congestionHere()) {
		r.Unpaced = unpacedTune
	}
}

// remedyLevers are what a comparison in the lab measures beside a way out that a relay slows down.
var remedyLevers = []string{"mtu-65520", "pasta"}

// remedy also measures what may help the uploads of the named rootless modes. It changes nothing if
// the user chose tunes.
func remedy(r *plan.Request) {
	uploads := slices.ContainsFunc(r.Loads, func(l sample.Load) bool {
		return l.Kind == workload.Bulk
	}) && slices.ContainsFunc(r.To, mode.Target.Outside)
	if !uploads || r.Study != "" || r.Sweep != nil || len(r.Tunes) > 0 || len(r.Shapes) > 0 ||
		!slices.Equal(r.On, []string{sample.Lab}) {
		return
	}
	for _, name := range remedyLevers {
		l, _ := lever.Find(name)
		for _, m := range slices.Clone(r.Modes) {
			v, ok := l.With(m, lever.Host{})
			if !ok {
				continue
			}
			r.Remedies = append(r.Remedies, sample.Lever{Name: name, Variant: v})
			if !slices.Contains(r.Modes, v.Mode) {
				r.Modes = append(r.Modes, v.Mode)
			}
		}
	}
}
