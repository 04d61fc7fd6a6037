// Package advise judges a search for settings that make a mode faster: each lever alone, then those
// that helped and harmed nothing, one after another. A recommended lever helped twice and made no
// measured value worse.
package advise

import (
	"cmp"
	"math"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/lever"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// Report is the judged search.
type Report struct {
	analysis.Measured
	Advice []Advice `json:"advice"` // one for each mode, in order
	analysis.Said
}

// Advice is the result of the search for one mode.
type Advice struct {
	Mode string `json:"mode"`
	// Elsewhere is the mode whose paths replace those of Mode where Mode has no path, or "".
	Elsewhere string `json:"elsewhere,omitempty"`
	// levers, in the order of choice
	Recommended []string       `json:"recommended"`
	Variant     sample.Variant `json:"variant"` // the mode with all of them
	// Together holds their combined effects, relative to the untuned mode; measured in the steps.
	Together []Effect `json:"together,omitempty"`
	Levers   []Lever  `json:"levers"` // the best first
}

// Lever is the result of trying a lever.
type Lever struct {
	Name    string  `json:"name"`
	Gist    string  `json:"gist"`
	Mode    string  `json:"mode"`
	Tune    string  `json:"tune,omitempty"`
	Verdict Verdict `json:"verdict"`
	// Alone has the effects on the untuned mode, Again the effects when the lever was measured
	// again on top of the earlier choices.
	Alone []Effect `json:"alone,omitempty"`
	Again []Effect `json:"again,omitempty"`
	// Reason explains why the lever failed, is excluded, or is not possible here or from some
	// place.
	Reason string `json:"reason,omitempty"`
	Remedy string `json:"remedy,omitempty"`

	// Stays means that the lever is only for what stays on the machine: what it does to paths
	// between machines, whose links lose nothing here, is no reason for it.
	Stays     bool            `json:"stays_on_machine,omitempty"`
	Harms     string          `json:"harms,omitempty"` // where it may harm, in general
	GivesUp   string          `json:"gives_up,omitempty"`
	Permanent []lever.Snippet `json:"permanent,omitempty"`

	busy bool // the machine, not the lever, is to blame for the failure
}

// Effects returns the effects of Again, or else those of Alone.
func (l Lever) Effects() []Effect {
	if len(l.Again) > 0 {
		return l.Again
	}
	return l.Alone
}

// Reasons returns those effects that are a reason for or against the lever.
func (l Lever) Reasons() []Effect { return reasons(l.Effects(), l.Stays) }

// Best returns the effect with the largest gain, if possible a certain one and one that is a reason
// for the lever; ok is false without effects.
func (l Lever) Best() (e Effect, ok bool) {
	if e, ok = extreme(l.Reasons(), 1); ok {
		return e, true
	}
	return extreme(l.Effects(), 1)
}

// Worst returns the effect with the largest loss, if possible a certain one; ok is false without
// effects.
func (l Lever) Worst() (e Effect, ok bool) { return extreme(l.Effects(), -1) }

func extreme(all []Effect, sign float64) (Effect, bool) {
	if len(all) == 0 {
		return Effect{}, false
	}
	score := func(e Effect) float64 {
		x := sign * math.Log(e.benefit())
		if certain(e) && x > 0 {
			const first = 1e6 // certain effects come before large ones
			x += first
		}
		return x
	}
	return slices.MaxFunc(all, func(a, b Effect) int {
		return cmp.Compare(score(a), score(b))
	}), true
}

// Base returns the part that all studies share.
func (r *Report) Base() *analysis.Report {
	return &analysis.Report{Measured: r.Measured, Said: r.Said}
}

// Complete reports whether everything planned has a result. A lever that breaks a path is a
// finding, not a failure, but the untuned mode must have its results.
func (r *Report) Complete() bool {
	return !slices.ContainsFunc(r.Failed, func(f analysis.Failed) bool {
		return f.Tune == "" && !slices.ContainsFunc(r.Advice, func(a Advice) bool {
			return slices.ContainsFunc(a.Levers, func(l Lever) bool {
				return l.Mode == string(f.Mode) && l.Tune == ""
			})
		})
	})
}

// Judge judges a results file as a search.
func Judge(f *sample.File) *Report {
	r := &Report{}
	for i, part := range f.Searches() {
		base := analysis.Judge(part)
		if i == 0 {
			r.Measured, r.Said = base.Measured, base.Said
		} else {
			r.add(base)
		}
		s := newSearch(part)
		s.next()
		r.Advice = append(r.Advice, s.advice())
	}
	for i, m := range f.Header.Plan.Also {
		if len(r.Advice) < i+2 { // the run ended before the search was over
			r.Advice = append(r.Advice, Advice{Mode: m, Recommended: []string{},
				Variant: sample.Variant{Mode: mode.Name(m)}, Levers: []Lever{}})
		}
	}
	r.Found = Findings(r)
	return r
}

func (r *Report) add(b *analysis.Report) {
	r.Control.Groups = append(r.Control.Groups, b.Control.Groups...)
	r.Cells = append(r.Cells, b.Cells...)
	r.Failed = append(r.Failed, b.Failed...)
	for _, x := range b.Skipped {
		if !slices.Contains(r.Skipped, x) {
			r.Skipped = append(r.Skipped, x)
		}
	}
	for _, x := range b.Warnings {
		if !slices.ContainsFunc(r.Warnings, x.Same) {
			r.Warnings = append(r.Warnings, x)
		}
	}
}

var order = []Verdict{Recommended, AtAPrice, AddsNothing, Excluded, NotSure, NotAgain, GivesUp,
	NoGain, Harmful, Broken, Skipped}

func (s *search) onPodman() bool {
	cells := s.f.Header.Plan.Cells
	return len(cells) > 0 && !slices.ContainsFunc(cells, func(c sample.Cell) bool {
		return c.On != sample.Podman
	})
}

func (s *search) advice() Advice {
	a := Advice{Mode: string(s.plain.Mode), Elsewhere: s.f.Header.Plan.Elsewhere,
		Recommended: append([]string{}, s.chosen...), Variant: s.state, Levers: []Lever{}}
	for _, t := range s.trials {
		known, ok := lever.Find(t.Name)
		if !ok { // a lever of a later toll
			known = lever.Lever{Gist: analysis.Label(sample.Cell{Mode: t.Mode, Tune: t.Tune})}
		}
		if s.onPodman() {
			known = known.OfPodman()
		}
		l := Lever{Name: t.Name, Gist: known.Gist, Mode: string(t.Mode), Tune: string(t.Tune),
			Verdict: t.verdict, Alone: t.alone, Again: t.again,
			Reason: t.broken, busy: t.busy, Stays: known.Stays, Harms: known.Harms, GivesUp: known.GivesUp,
			Permanent: known.At(s.plain.Mode, lever.Host{CPUs: s.f.Header.Environment.CPUs}).Permanent}
		if t.verdict == Skipped {
			if l.Reason = known.Refuses(s.plain.Mode); l.Reason == "" {
				l.Reason, l.Remedy = s.missing(t.Variant)
			}
		} else if t.broken == "" && t.Mode == s.plain.Mode {
			l.Reason, l.Remedy = s.partly(t.Variant)
		}
		a.Levers = append(a.Levers, l)
	}
	slices.SortStableFunc(a.Levers, func(x, y Lever) int {
		return cmp.Or(cmp.Compare(slices.Index(order, x.Verdict), slices.Index(order, y.Verdict)),
			cmp.Compare(slices.Index(s.chosen, x.Name), slices.Index(s.chosen, y.Name)),
			cmp.Compare(gain(y.Effects()), gain(x.Effects())), cmp.Compare(best(y), best(x)))
	})
	if len(s.chosen) > 0 {
		a.Together, _, _ = effects(part(s.f, firstStep(s.f.Header.Plan), math.MaxInt), s.plain,
			s.state)
	}
	return a
}

func best(l Lever) float64 {
	e, ok := l.Best()
	if !ok {
		return 0
	}
	return e.benefit()
}

func (s *search) missing(v sample.Variant) (reason, remedy string) {
	for _, x := range s.f.Header.Plan.Skipped {
		if x.Mode == v.Mode && (x.Tune == v.Tune || x.Tune == "" && v.Mode != s.plain.Mode) {
			return x.Reason, x.Remedy
		}
	}
	return "it was not measured", "use a longer --budget"
}

func (s *search) partly(v sample.Variant) (reason, remedy string) {
	var places []string
	for _, x := range s.f.Header.Plan.Skipped {
		if x.Mode != v.Mode || x.Tune != v.Tune || reason != "" && x.Reason != reason {
			continue
		}
		if place := x.From.Words(); !slices.Contains(places, place) {
			places = append(places, place)
		}
		reason, remedy = x.Reason, x.Remedy
	}
	if reason == "" {
		return "", ""
	}
	return "not from " + printable.List(places) + ": " + reason, remedy
}

// Next returns the next step of the search. waiting is the number of levers to be measured again,
// this one included; at 0 the search is over.
func Next(p sample.Plan, visits []sample.Visit) (step sample.Step, waiting int) {
	s := newSearch(current(p, visits))
	t, after, ok := s.next()
	if !ok {
		return step, 0
	}
	return sample.Step{Lever: t.Name, Before: s.state, After: after}, len(s.queue)
}

func current(p sample.Plan, visits []sample.Visit) *sample.File {
	all := (&sample.File{Header: sample.Header{Plan: p}, Visits: visits}).Searches()
	return all[len(all)-1]
}

// Open returns the cells of levers that may help but have no certain effect, with the baselines. It
// returns none if there was a step, or something helps.
func Open(p sample.Plan, visits []sample.Visit) []sample.Cell {
	f := current(p, visits)
	s := newSearch(f)
	p = f.Header.Plan
	if len(p.Steps) > 0 || len(s.queue) > 0 {
		return nil
	}
	unclear := map[sample.Variant]bool{}
	for _, t := range s.trials {
		if t.verdict == NoGain && slices.ContainsFunc(t.alone, func(e Effect) bool {
			return e.Ratio.Verdict == stats.Unclear
		}) {
			unclear[t.Variant] = true
		}
	}
	var out []sample.Cell
	for _, c := range p.Cells {
		if len(unclear) > 0 && (p.IsBaseline(c) || unclear[p.VariantOf(c)]) {
			out = append(out, c)
		}
	}
	return out
}

// Partners returns a function from each cell to the cell that it is compared with during a run. In
// a step, the variant with the step's lever is compared with the variant before the step; all other
// cells are compared with the untuned mode.
func Partners(j *analysis.Run) func(i int) (int, bool) {
	p := j.File.Header.Plan
	steps := p.Steps
	return func(i int) (int, bool) {
		if n := len(steps); n > 0 && steps[n-1].Lever != "" &&
			p.VariantOf(j.Series[i].Cell) == steps[n-1].After && !j.Series[i].Cell.Control {
			for b, s := range j.Series {
				if p.VariantOf(s.Cell) == steps[n-1].Before && !s.Cell.Control &&
					analysis.SameGroup(s.Cell, j.Series[i].Cell) {
					return b, true
				}
			}
		}
		return j.BaselineOf(i)
	}
}
