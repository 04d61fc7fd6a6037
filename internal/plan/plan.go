// Package plan turns a request into what a run will do: which cells, with which loads, in which
// order. It is pure: a dry run prints exactly what a run does, and the same seed gives the same
// order.
//
// An epoch's timetable (Epoch) is complete before the epoch starts. Workers and agents receive it
// in advance, and nothing is sent while it runs.
package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// MinRounds is the least number of rounds of a run with visits: fewer have no 95 % interval.
const MinRounds = 6

// Request is a request for a run.
type Request struct {
	Study  sample.Study     // "": a comparison
	Modes  []mode.Name      // empty: the usual ones
	From   []mode.Placement // at least one
	To     []mode.Target    // for modes with several; empty: the usual ones
	Loads  []sample.Load
	Tunes  []mode.Tunes      // in addition to the untuned modes
	Shapes []sample.Shape    // of crowds; empty: one client and one server
	Sweep  *sample.Sweep     // its points are in Loads; nil: not a sweep
	Trace  *sample.TracePlan // what is traced; nil: nothing
	Turn   float64           // seconds per process of a crowd; see sample.Plan
	Wire   sample.Wire
	On     []string // backends
	Rounds int      // 0: until Precision or Budget
	Budget float64  // seconds
	// Bound makes Budget also end a run with Rounds, and one of endpoints before its least rounds.
	Bound     bool
	Precision float64 // relative
	Same      float64 // largest relative difference that counts as none
	Epoch     float64 // seconds of an epoch's slices; needed if a load has slices
	Baseline  mode.Name
	Pin       string           // --pin as given
	Pins      []sample.Pinning // each cell is measured with each; empty: CPUs
	CPUs      sample.CPUs
	// Unpaced is a tune under which the baseline and bridge are measured in bulk as well, because
	// the machine's congestion control paces; "": none.
	Unpaced mode.Tunes
	// Remedies are levers whose tunes are measured beside their mode's way out in bulk.
	Remedies []sample.Lever
	Seed     uint64
}

// Estimated times, in s: of a visit beyond warm-up and window, of each end beyond two, of an epoch
// beyond its timetable, and of tracing an epoch.
const (
	visitOverhead = 0.05
	eachOverhead  = 0.005
	epochOverhead = 0.25
	traceOverhead = 0.25
)

// within returns the time after which the run ends even before its rounds or, of foreign endpoints,
// the least rounds; 0: none.
func (r Request) within(foreign bool) float64 {
	if r.Bound && (r.Rounds > 0 || foreign) {
		return r.Budget
	}
	return 0
}

// Make returns a plan of the request's cells in the catalogue's order, with one control for each
// group; Skipped lists the impossible ones. It returns an error if the request is invalid, or if
// nothing can be measured.
func Make(r Request) (sample.Plan, error) {
	p := sample.Plan{Study: cmp.Or(r.Study, sample.StudyCompare), Seed: r.Seed, Rounds: r.Rounds,
		Budget: r.Budget, Precision: r.Precision,
		Same: r.Same, Epoch: r.epoch(), Baseline: string(r.Baseline), Pin: r.Pin, Pins: r.Pins,
		CPUs: r.CPUs, Unpaced: string(r.Unpaced), Remedies: r.Remedies, Loads: r.Loads,
		Turn: r.Turn, Sweep: r.Sweep, Trace: r.Trace}
	if r.Wire != (sample.Wire{}) {
		p.Wire = &r.Wire
	}
	p.Within = r.within(false)
	if err := r.check(); err != nil {
		return p, err
	}
	for _, on := range r.On {
		for _, from := range r.From {
			group := r.routes(from, &p)
			for _, l := range r.Loads {
				for _, shape := range r.shapes() {
					for _, pin := range r.pins() {
						like := sample.Cell{From: from, Load: l.Kind, Point: l.Point, Shape: shape,
							On: on, Pin: pin}
						p.Cells = append(p.Cells, r.cells(group, like)...)
					}
				}
			}
		}
	}
	if !slices.ContainsFunc(p.Cells, r.asked) {
		return p, fmt.Errorf("nothing to measure: %s",
			cmp.Or(reasons(p.Skipped), "no usual mode has a path"+r.way()))
	}
	return p, nil
}

func (r Request) asked(c sample.Cell) bool {
	return len(r.Modes) == 0 || slices.Contains(r.Modes, c.Mode)
}

func (r Request) check() error {
	switch {
	case len(r.From) == 0 || len(r.Loads) == 0 || len(r.On) == 0:
		return fmt.Errorf("nothing to measure: no placement, load or backend was given")
	case r.Rounds < 0:
		return fmt.Errorf("%d rounds: must not be negative", r.Rounds)
	case r.Rounds == 0 && !(r.Budget > 0):
		return fmt.Errorf("budget %gs: must be more than 0", r.Budget)
	case !(r.Precision > 0 && r.Precision < 1):
		return fmt.Errorf("precision %g: must be between 0 and 1", r.Precision)
	case !(r.Same >= 0 && r.Same < 1):
		return fmt.Errorf("same %g: must be from 0 to less than 1", r.Same)
	}
	for _, l := range r.Loads {
		switch {
		case !(l.Window > 0) || l.Warmup < 0:
			return fmt.Errorf("load %s: window %gs, warm-up %gs: must be positive", l.Kind,
				l.Window, l.Warmup)
		case !(l.Slice >= 0):
			return fmt.Errorf("load %s: slice %gs: must not be negative", l.Kind, l.Slice)
		case l.Slice > 0 && !(r.Epoch > 0):
			return fmt.Errorf("load %s: slices in an epoch of %gs: must be more than 0", l.Kind,
				r.Epoch)
		}
	}
	return nil
}

type routed struct {
	mode  mode.Mode
	route mode.Route
}

// routes returns the requested routes for clients at from. It adds the named modes that have none
// to p.Skipped.
func (r Request) routes(from mode.Placement, p *sample.Plan) []routed {
	var out []routed
	for _, m := range mode.All() {
		named := slices.Contains(r.Modes, m.Name)
		usual := len(r.Modes) == 0 && m.Usual
		if !named && !usual && m.Name != r.Baseline {
			continue
		}
		all := m.RoutesInto(from)
		chosen := append(r.chosen(all), r.outward(m, from)...)
		if !named && !usual && len(chosen) > 1 { // one family is enough to compare with
			chosen = slices.DeleteFunc(chosen, mode.Route.OnRequest)
		}
		for _, route := range chosen {
			out = append(out, routed{m, route})
		}
		if len(chosen) > 0 || !named { // only what was named is listed as missing
			continue
		}
		why, around := m.WhyNot(from)
		skip := sample.Skip{Mode: m.Name, From: from, Reason: why, Remedy: around}
		if out := len(r.To) > 0 && len(mode.Inward(r.To)) == 0; out {
			skip.Reason, skip.Remedy = m.WhyNotOut(from)
		} else if len(all) > 0 {
			skip.Reason = "it has none of the targets of --to there"
			skip.Remedy = "--to " + string(all[0].To)
			if !slices.ContainsFunc(all, func(r mode.Route) bool {
				return r.To.Six()
			}) && !slices.ContainsFunc(r.To, mode.Target.Four) {
				skip.Reason = cmp.Or(m.No6, "it has no path over IPv6 there")
			}
		}
		p.Skipped = append(p.Skipped, skip)
	}
	return out
}

// outward returns the mode's routes to outside whose target was asked for.
func (r Request) outward(m mode.Mode, from mode.Placement) []mode.Route {
	return slices.DeleteFunc(m.RoutesFrom(from), func(x mode.Route) bool {
		return !x.To.Outside() || !slices.Contains(r.To, x.To)
	})
}

// chosen returns the routes whose target was asked for. A mode with a single route of the right
// address family is chosen whatever its target, unless only targets outside were asked for.
func (r Request) chosen(all []mode.Route) []mode.Route {
	unasked := func(x mode.Route) bool { return !slices.Contains(r.To, x.To) }
	otherFamily := mode.Route.OnRequest
	in := mode.Inward(r.To)
	if len(r.To) == 0 {
		unasked = mode.Route.OnRequest
	} else if len(in) == 0 {
		return nil
	} else if !slices.ContainsFunc(in, mode.Target.Four) {
		otherFamily = func(x mode.Route) bool { return !x.To.Six() }
	}
	out := slices.DeleteFunc(slices.Clone(all), unasked)
	if len(out) > 0 {
		return out
	}
	if out = slices.DeleteFunc(slices.Clone(all), otherFamily); len(out) == 1 {
		return out
	}
	return nil
}

func (r Request) shapes() []sample.Shape {
	if len(r.Shapes) == 0 {
		return []sample.Shape{{}}
	}
	return r.Shapes
}

func (r Request) pins() []string {
	if len(r.Pins) == 0 {
		return []string{""}
	}
	names := make([]string, len(r.Pins))
	for i, p := range r.Pins {
		names[i] = p.Name
	}
	return names
}

// cells returns a group's cells: the control follows the baseline, and variants follow their mode.
func (r Request) cells(group []routed, like sample.Cell) []sample.Cell {
	var out []sample.Cell
	controlled, relayed := false, false
	for _, g := range group {
		relayed = relayed || slices.ContainsFunc(g.route.Hops, mode.HopKind.Relays)
		c := like
		c.Mode, c.To = g.mode.Name, g.route.To
		out = append(out, c)
		if g.mode.Name == r.Baseline && !controlled {
			controlled = true
			c.Control = true
			out = append(out, c)
			c.Control = false
		}
		for _, t := range r.Tunes {
			c.Tune = t
			out = append(out, c)
		}
		if r.Unpaced != "" && like.Load == workload.Bulk &&
			(g.mode.Name == r.Baseline || g.mode.Name == mode.Bridge) {
			c.Tune = r.Unpaced
			out = append(out, c)
		}
		for _, x := range r.Remedies {
			if x.Tune != "" && x.Mode == c.Mode && c.To.Outside() && like.Load == workload.Bulk {
				c.Tune = x.Tune
				out = append(out, c)
			}
		}
	}
	if i := slices.IndexFunc(out, func(c sample.Cell) bool {
		return c.Control
	}); i >= 0 && relayed && r.placebo(like) {
		c := out[i]
		c.Placebo = true
		out = append(out, c)
	}
	return out
}

// placebo reports whether a group needs a placebo: its cells take turns in slices, and a relay
// leaves threads, caches and queues behind.
func (r Request) placebo(like sample.Cell) bool {
	return r.Study == "" && like.Shape == (sample.Shape{}) &&
		slices.ContainsFunc(r.Loads, func(l sample.Load) bool {
			return l.Kind == like.Load && l.Point == like.Point && l.Slice > 0
		})
}

// Drop moves the cells for which reason returns a Skip to Skipped, once for each path.
func Drop(p sample.Plan, reason func(sample.Cell) *sample.Skip) sample.Plan {
	kept := p.Cells[:0:0]
	listed := map[sample.Skip]bool{}
	p.Skipped = slices.Clone(p.Skipped)
	for _, c := range p.Cells {
		s := reason(c)
		if s == nil {
			kept = append(kept, c)
			continue
		}
		plain := *s
		plain.Tune = ""
		if !listed[*s] && !listed[plain] { // variants of a missing mode are not listed
			listed[*s] = true
			p.Skipped = append(p.Skipped, *s)
		}
	}
	p.Cells = kept
	return p
}

// RoundTime estimates a round in seconds.
func RoundTime(p sample.Plan) float64 {
	if p.Mesh != nil {
		return meshRoundTime(p)
	}
	return roundTime(p, 1)
}

// roundTime estimates a round whose epochs have the given share of the plan's length.
func roundTime(p sample.Plan, share float64) float64 {
	t := 0.0
	for _, turn := range unshuffled(p) {
		t += turnTime(p, turn, share)
	}
	return t
}

func reasons(skips []sample.Skip) string {
	var out []string
	for _, s := range skips {
		out = append(out, fmt.Sprintf("%s from %s: %s", s.Mode, s.From.Words(), s.Reason))
	}
	return strings.Join(out, "; ")
}

func (r Request) way() string {
	var from, to []string
	for _, p := range r.From {
		from = append(from, p.Words())
	}
	for _, t := range r.To {
		to = append(to, string(t))
	}
	out := " from " + strings.Join(from, " or ")
	if len(to) > 0 {
		out += " to " + strings.Join(to, " or ")
	}
	return out
}
