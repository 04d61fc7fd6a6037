package plan

import (
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/record/lever"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Searches plans a search for each of the request's modes, or for its baseline if it names none.
// named are the levers to try; nil: all that apply to the mode here. The searches follow each other,
// and the first plan lists the others' modes. With an error, the last plan is the one that failed.
func Searches(r Request, here lever.Host, named []string) (out []sample.Plan, err error) {
	modes := r.Modes
	if len(modes) == 0 {
		modes = []mode.Name{r.Baseline}
	}
	for i, m := range modes {
		r.Baseline = m
		levers := lever.Plan(m, here, named)
		if len(levers) == 0 {
			return out, fmt.Errorf("nothing to try: no lever applies to %s", m)
		}
		p, err := Advice(r, levers)
		if out = append(out, p); err != nil {
			return out, err
		}
		if i > 0 {
			out[0].Also = append(out[0].Also, string(m))
		}
	}
	return out, nil
}

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
	held := slices.DeleteFunc(slices.Clone(p.Levers), func(l sample.Lever) bool {
		return !l.Tune.OfMachine()
	})
	others := slices.DeleteFunc(slices.Clone(p.Levers), func(l sample.Lever) bool {
		return l.Tune.OfMachine()
	})
	each := func(loads []string, levers []sample.Lever) {
		for n, load := range loads {
			base.Load = load
			tryEach(p, base, levers, n == 0 && stands.Name == plain.Name)
		}
	}
	if len(others) > 0 || len(held) == 0 {
		each(screened(*p), others)
	}
	if len(held) == 0 {
		return
	}
	loads := inVisits(*p)
	each(loads, held)
	for _, l := range held {
		if len(loads) == 0 {
			p.Skipped = append(p.Skipped, sample.Skip{Mode: l.Mode, From: from, Tune: l.Tune, On: on,
				Reason: ofWholeMachine, Remedy: "--load crr, or --load rr --slice 0"})
		}
	}
}

// ofWholeMachine is why a lever is tried over no load: see inVisits.
const ofWholeMachine = "it applies to the whole machine, so it is tried over round trips or " +
	"connections that are measured in visits"

// tryEach adds the cells of a load: the baseline, its control, and each lever. If first is set, it
// also adds the reasons why levers have none.
func tryEach(p *sample.Plan, base sample.Cell, levers []sample.Lever, first bool) {
	plain := mode.Name(p.Baseline)
	for _, c := range []sample.Cell{base, controlOf(base)} {
		if !slices.Contains(p.Cells, c) {
			p.Cells = append(p.Cells, c)
		}
	}
	for _, l := range levers {
		known, _ := lever.Find(l.Name)
		why, around := known.Refuses(plain), ""
		c, ok := lever.Cell(*p, base, l.Variant)
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
			why, around = m.WhyNot(base.From)
		}
		if first {
			p.Skipped = append(p.Skipped, sample.Skip{Mode: l.Mode, From: base.From, Tune: l.Tune,
				On: base.On, Reason: why, Remedy: around})
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

// inVisits returns the load over which levers of the whole machine are tried: the first that counts
// trips and is not sliced. It returns none if there is none.
func inVisits(p sample.Plan) []string {
	for _, l := range p.Loads {
		if l.Slice == 0 && workload.Of(l).Trips {
			return []string{l.Kind}
		}
	}
	return nil
}
