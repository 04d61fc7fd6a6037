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
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Effect is the change from one variant to the next, from one place under one load.
type Effect struct {
	From   string         `json:"from"`
	To     string         `json:"to,omitempty"` // outside or outside6; "" if the server is in the mode
	On     string         `json:"on"`
	Load   string         `json:"load"`
	Metric string         `json:"metric"`
	Higher bool           `json:"higher_is_better,omitempty"`
	Ratio  analysis.Ratio `json:"ratio"`
	// CPU is the ratio of the CPU time per byte or round trip; nil if it is not known.
	CPU *analysis.Ratio `json:"cpu,omitempty"`
}

type at struct{ from, on, load string }

func (e Effect) at() at { return at{e.From, e.On, e.Load} }

// stays reports whether client and server are on one machine.
func (e Effect) stays() bool {
	return e.To == "" && (e.From == string(mode.FromHost) || e.From == string(mode.FromContainer))
}

// reasons returns the effects that may be a reason for a lever.
func reasons(all []Effect, stays bool) []Effect {
	if !stays {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(e Effect) bool { return !e.stays() })
}

// benefit returns the ratio, inverted if necessary, so that more than 1 is better.
func (e Effect) benefit() float64 {
	if e.Higher {
		return e.Ratio.Median
	}
	return 1 / e.Ratio.Median
}

// Verdict is the result for a lever.
type Verdict string

const (
	Recommended Verdict = "recommended"
	AtAPrice    Verdict = "at a price" // it helps in one place and harms in another
	Harmful     Verdict = "harms"
	NoGain      Verdict = "no gain"
	NotAgain    Verdict = "not again"    // it helped alone, but not when measured again
	AddsNothing Verdict = "adds nothing" // no gain on top of earlier choices
	Excluded    Verdict = "excluded"     // by an earlier choice
	NotSure     Verdict = "not certain"  // it helped alone, but was not measured again
	GivesUp     Verdict = "gives up"     // it loses what the mode is chosen for
	Broken      Verdict = "failed"       // a path with it failed
	Skipped     Verdict = "not here"     // this machine does not support it
)

type trial struct {
	sample.Lever
	alone   []Effect // relative to the untuned mode
	again   []Effect // relative to the earlier choices, measured after them
	broken  string
	busy    bool // the machine, not the lever, is to blame for that
	verdict Verdict
}

type search struct {
	f      *sample.File
	plain  sample.Variant
	trials []trial
	state  sample.Variant // the variant with all choices so far
	chosen []string
	queue  []int
}

func newSearch(f *sample.File) *search {
	p := f.Header.Plan
	s := &search{f: f, plain: sample.Variant{Mode: mode.Name(p.Baseline)}}
	s.state = s.plain
	alone := part(f, 0, firstStep(p))
	for _, l := range p.Levers {
		t := trial{Lever: l}
		t.alone, t.broken, t.busy = effects(alone, s.plain, l.Variant)
		t.verdict = t.judge(s.plain, places(alone, s.plain))
		s.trials = append(s.trials, t)
	}
	s.enqueue()
	for i, step := range p.Steps {
		until := math.MaxInt
		if i+1 < len(p.Steps) {
			until = p.Steps[i+1].Round
		}
		s.take(step, part(f, step.Round, until))
	}
	return s
}

// places returns the placements and backends with cells of v itself rather than of a substitute.
func places(j *analysis.Run, v sample.Variant) map[string]bool {
	out := map[string]bool{}
	for _, s := range j.Series {
		if s.Cell.Mode == v.Mode && s.Cell.Tune == v.Tune {
			out[string(s.Cell.From)+" "+s.Cell.On] = true
		}
	}
	return out
}

func firstStep(p sample.Plan) int {
	for _, step := range p.Steps {
		if step.Lever != "" {
			return step.Round
		}
	}
	return math.MaxInt
}

// judge returns the verdict on a lever from measuring it alone. Another mode is skipped if it does
// not reach all places in from. A setting need not apply to every path.
func (t *trial) judge(plain sample.Variant, from map[string]bool) Verdict {
	reached := map[string]bool{}
	for _, e := range t.alone {
		reached[e.From+" "+e.On] = true
	}
	known, _ := lever.Find(t.Name)
	_, worse := count(t.alone)
	switch better, _ := count(reasons(t.alone, known.Stays)); {
	case t.broken != "":
		return Broken
	case len(t.alone) == 0, t.Mode != plain.Mode && !known.Local && len(reached) < len(from):
		return Skipped
	case known.Isolation:
		return GivesUp
	case better > 0 && worse > 0:
		return AtAPrice
	case worse > 0:
		return Harmful
	case better > 0:
		return NotSure
	}
	return NoGain
}

func count(all []Effect) (better, worse int) {
	for _, e := range all {
		switch e.Ratio.Verdict {
		case stats.Better:
			better++
		case stats.Worse:
			worse++
		case stats.Same, stats.Unclear:
		}
	}
	return better, worse
}

func (s *search) enqueue() {
	for i, t := range s.trials {
		if t.verdict == NotSure {
			s.queue = append(s.queue, i)
		}
	}
	// A lever of the whole machine comes last, because nothing on top of it can have slices.
	last := func(i int) int {
		if s.trials[i].Tune.OfMachine() {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(s.queue, func(a, b int) int {
		return cmp.Or(cmp.Compare(last(a), last(b)),
			cmp.Compare(s.trials[b].gain(), s.trials[a].gain()))
	})
}

func (t *trial) gain() float64 {
	known, _ := lever.Find(t.Name)
	return gain(reasons(t.alone, known.Stays))
}

func gain(all []Effect) float64 {
	sum := 0.0
	for _, e := range all {
		if e.Ratio.Verdict == stats.Better {
			sum += math.Log(e.benefit())
		}
	}
	return sum
}

// take records the result of a step. It chooses the lever if it helps in a place where it also
// helped alone, and harms nowhere. Among many levers one may help by chance, but hardly twice in
// the same place.
func (s *search) take(step sample.Step, j *analysis.Run) {
	i := slices.IndexFunc(s.trials, func(t trial) bool { return t.Name == step.Lever })
	if i < 0 {
		return
	}
	t := &s.trials[i]
	s.queue = slices.DeleteFunc(s.queue, func(k int) bool { return k == i })
	t.again, t.broken, t.busy = effects(j, step.Before, step.After)
	known, _ := lever.Find(t.Name)
	better, worse := 0, 0
	for _, e := range t.again {
		switch e.Ratio.Verdict {
		case stats.Worse:
			worse++
		case stats.Better:
			if t.helped(e.at()) && (e.stays() || !known.Stays) {
				better++
			}
		case stats.Same, stats.Unclear:
		}
	}
	switch {
	case t.broken != "":
		t.verdict = Broken
	case better+worse == 0 && unmeasured(t.again): // the run ended too early
		t.again = nil
	case worse > 0 && better > 0:
		t.verdict = AtAPrice
	case worse > 0:
		t.verdict = Harmful
	case better > 0:
		t.verdict = Recommended
		s.state = step.After
		s.chosen = append(s.chosen, t.Name)
	case step.Before == s.plain:
		t.verdict = NotAgain
	default:
		t.verdict = AddsNothing
	}
}

// unmeasured reports whether no effect has the rounds that a verdict needs.
func unmeasured(all []Effect) bool {
	return !slices.ContainsFunc(all, func(e Effect) bool {
		rounds := cmp.Or(e.Ratio.Epochs, e.Ratio.N)
		return e.Ratio.Verdict != stats.Unclear || rounds >= stats.MinJudged
	})
}

func (t *trial) helped(where at) bool {
	return slices.ContainsFunc(t.alone, func(e Effect) bool {
		return e.at() == where && e.Ratio.Verdict == stats.Better
	})
}

func (s *search) next() (t *trial, after sample.Variant, ok bool) {
	for _, i := range s.queue {
		t := &s.trials[i]
		after, fits := lever.Join(s.state, t.Variant, s.plain.Mode)
		switch {
		case !fits:
			t.verdict = Excluded
		case after == s.state: // the choice already includes it
			t.verdict = AddsNothing
		default:
			return t, after, true
		}
	}
	return nil, sample.Variant{}, false
}

func part(f *sample.File, from, until int) *analysis.Run {
	some := *f
	some.Visits = nil
	for _, v := range f.Visits {
		if v.Round >= from && v.Round < until {
			some.Visits = append(some.Visits, v)
		}
	}
	return analysis.Open(&some)
}

// effects compares the variants wherever both were measured. broken explains why a path of after
// has no result; it is "" if all have one.
func effects(j *analysis.Run, before, after sample.Variant) (out []Effect, broken string,
	busy bool) {
	p, visited := j.File.Header.Plan, map[int]bool{}
	for _, v := range j.File.Visits {
		visited[v.Cell] = true
	}
	for i, s := range j.Series {
		if p.VariantOf(s.Cell) != after || s.Cell.Control || !visited[i] {
			continue
		}
		if j.Failed(i) {
			broken, busy = j.Failure(i), j.TooBusyFor(i)
			continue
		}
		b := slices.IndexFunc(j.Series, func(o *analysis.Series) bool {
			return p.VariantOf(o.Cell) == before && !o.Cell.Control &&
				analysis.SameGroup(o.Cell, s.Cell)
		})
		if b < 0 || j.Failed(b) {
			continue
		}
		metric := analysis.PrimaryOf(s.Load, s.Cell.Shape)
		to := analysis.Label(j.Series[b].Cell)
		x := j.Against(i, b, metric, to)
		if x.N == 0 {
			continue
		}
		e := Effect{From: string(s.Cell.From), On: s.Cell.On, Load: s.Cell.Load, Metric: metric,
			Higher: workload.MetricOf(metric, s.Load).Higher, Ratio: x}
		if s.Cell.To.Outside() {
			e.To = string(s.Cell.To)
		}
		if cpu := j.Against(i, b, workload.Of(s.Load).CPU(), to); cpu.N > 0 {
			e.CPU = &cpu
		}
		out = append(out, e)
	}
	return out, broken, busy
}
