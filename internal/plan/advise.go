package plan

import (
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/record/lever"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// AloneShare is the share of a search's time in which each lever is tried alone.
const AloneShare = 0.5

// Advice plans the first part of a search for what makes a mode faster: the unchanged mode as the
// baseline, its control, and each lever alone.
func Advice(r Request, levers []sample.Lever) (sample.Plan, error) {
	p := sample.Plan{Study: sample.StudyAdvise, Seed: r.Seed, Rounds: r.Rounds, Budget: r.Budget,
		Precision: r.Precision,
		Same:      r.Same, Epoch: r.Epoch, Baseline: string(r.Baseline), Pin: r.Pin, Pins: r.Pins,
		CPUs: r.CPUs, Loads: r.Loads, Levers: levers}
	if r.Wire != (sample.Wire{}) {
		p.Wire = &r.Wire
	}
	if err := r.check(); err != nil {
		return p, err
	}
	for _, on := range r.On {
		for _, from := range r.From {
			r.searchFrom(&p, from, on)
		}
	}
	if len(p.Cells) == 0 {
		return p, fmt.Errorf("nothing to measure: %s", reasons(p.Skipped))
	}
	return p, nil
}

// searchFrom adds the cells of a search by clients at from, or the reason why there are none.
func (r Request) searchFrom(p *sample.Plan, from mode.Placement, on string) {
	plain, _ := mode.Find(r.Baseline)
	stands, routes := r.searched(plain, from)
	if stands.Name != plain.Name {
		p.Elsewhere = string(stands.Name)
	}
	if len(routes) == 0 {
		why, around := plain.WhyNot(from)
		if len(r.To) > 0 {
			why, around = "it has no way out from there", "--from container"
		}
		p.Skipped = append(p.Skipped, sample.Skip{
			Mode: mode.Name(p.Baseline), From: from, Reason: why, Remedy: around})
		return
	}
	base := sample.Cell{Mode: stands.Name, From: from, To: routes[0].To, On: on, Pin: r.pins()[0]}
	for n, load := range screened(*p) {
		base.Load = load
		p.Cells = append(p.Cells, base, controlOf(base))
		for _, l := range p.Levers {
			known, _ := lever.Find(l.Name)
			why, around := known.Refuses(plain.Name), ""
			c, ok := like(*p, base, l.Variant)
			switch {
			case why != "":
			case known.Local && base.To.Outside():
				continue
			case ok:
				if !slices.Contains(p.Cells, c) { // two levers may be one mode
					p.Cells = append(p.Cells, c)
				}
				continue
			default:
				m, _ := mode.Find(l.Mode)
				why, around = m.WhyNot(from)
			}
			if n == 0 && stands.Name == plain.Name {
				p.Skipped = append(p.Skipped, sample.Skip{
					Mode: l.Mode, From: from, Tune: l.Tune, On: on, Reason: why, Remedy: around})
			}
		}
	}
}

// searched returns the mode that replaces plain for a client at from, and its routes: the ones that
// --to names, else those into the mode, else those out of it.
func (r Request) searched(plain mode.Mode, from mode.Placement) (mode.Mode, []mode.Route) {
	if len(r.To) > 0 {
		return plain, r.outward(plain, from)
	}
	if in := plain.RoutesInto(from); len(in) > 0 {
		return plain, in
	}
	if other, ok := mode.Find(lever.Elsewhere(plain.Name)); ok {
		return other, other.RoutesInto(from)
	}
	return plain, plain.RoutesFrom(from)
}

func controlOf(c sample.Cell) sample.Cell {
	c.Control = true
	return c
}

// screened returns the sliced loads, which take little time for many cells, or all.
func screened(p sample.Plan) []string {
	var sliced, all []string
	for _, l := range p.Loads {
		all = append(all, l.Kind)
		if l.Slice > 0 {
			sliced = append(sliced, l.Kind)
		}
	}
	if len(sliced) > 0 {
		return sliced
	}
	return all
}

// like returns a cell like base of another variant, at the same target if possible. ok is false if
// no route leads to it, or if another mode replaces the baseline there and the variant has a third
// mode.
func like(p sample.Plan, base sample.Cell, v sample.Variant) (c sample.Cell, ok bool) {
	c = base
	c.Control, c.Tune = false, v.Tune
	switch {
	case string(v.Mode) == p.Baseline:
		return c, true
	case string(base.Mode) != p.Baseline:
		return c, false
	}
	c.Mode = v.Mode
	m, known := mode.Find(v.Mode)
	if !known {
		return c, false
	}
	if _, ok := m.Route(c.From, c.To); ok {
		return c, true
	}
	routes := m.RoutesInto(c.From)
	if len(routes) == 0 || c.To.Outside() {
		return c, false
	}
	c.To = routes[0].To
	return c, true
}

// PairOf returns the cells of a step that replaces the variant before by after: both, the baseline
// and its control, over all loads, from each placement that has the baseline.
func PairOf(p sample.Plan, before, after sample.Variant) []sample.Cell {
	var out []sample.Cell
	seen := map[sample.Cell]bool{}
	for _, base := range p.Cells {
		if !p.IsBaseline(base) || base.Control {
			continue
		}
		for _, l := range p.Loads {
			base.Load = l.Kind
			if seen[base] {
				continue
			}
			seen[base] = true
			out = append(out, base, controlOf(base))
			for _, v := range []sample.Variant{before, after} {
				if c, ok := like(p, base, v); ok && c != base {
					out = append(out, c)
				}
			}
		}
	}
	return out
}
