// Package gate checks a results file against sentences such as `publish-proxy.throughput >= 0.9 of
// host`. A sentence certainly holds, is certainly violated, or is unclear.
package gate

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// Schema names the version of a gate's answer.
const Schema = "bridgetoll.gate/1"

// Outcome is the result for a sentence.
type Outcome string

const (
	Violated Outcome = "violated" // certainly false
	Missing  Outcome = "missing"  // the file has no result for it
	Unclear  Outcome = "unclear"
	Holds    Outcome = "holds" // certainly true
)

// Outcomes returns all outcomes, from the worst on.
func Outcomes() []Outcome { return []Outcome{Violated, Missing, Unclear, Holds} }

// Report has the outcomes of the sentences; docs/results.md documents its JSON form.
type Report struct {
	Schema      string             `json:"schema"`
	Name        string             `json:"name"` // of the results file
	Environment sample.Environment `json:"environment"`
	Rounds      int                `json:"rounds"`
	Outcome     Outcome            `json:"outcome"` // the worst of its rules
	Rules       []Rule             `json:"rules"`
}

// Rule is a sentence and its outcome: the worst of its checks.
type Rule struct {
	Sentence string  `json:"sentence"`
	Outcome  Outcome `json:"outcome"`
	Checks   []Check `json:"checks"`
	Reason           // for having no check, or not being confirmed
}

// Reason is why a sentence or a check has no certain outcome. Its zero value is none.
type Reason struct {
	Code   string  `json:"reason,omitempty"`
	Why    string  `json:"why,omitempty"` // in words: see internal/show/sentence
	Of     string  `json:"-"`             // what the file has no result of; its figure, or name
	Metric string  `json:"-"`             // that it lacks
	Cause  string  `json:"-"`             // in words, from the file
	Seen   Outcome `json:"-"`             // of a further run
	Rounds int     `json:"-"`
	Least  int     `json:"-"` // the number of rounds that it needs
}

// The codes of reasons.
const (
	Unmeasured   = "not-measured" // Of, because of Cause
	NoMode       = "no-mode"      // Of
	NoMatch      = "no-match"     // Metric, Of
	NoResult     = "no-result"
	NoReference  = "no-reference" // Of
	NoMetric     = "no-metric"    // Metric
	NoControl    = "no-control"
	FewRounds    = "few-rounds"    // Rounds, Least
	NotConfirmed = "not-confirmed" // Of is the further run's file, and Seen its outcome
)

// Check is the comparison of one cell with a sentence.
type Check struct {
	Label string `json:"label"`
	sample.Cell
	Metric  string   `json:"metric"`
	Unit    string   `json:"unit"`         // of the figures that follow; "ratio"
	Of      string   `json:"of,omitempty"` // label of the ratio's other cell
	Limit   float64  `json:"limit"`
	Median  *float64 `json:"median,omitempty"`
	Low     *float64 `json:"low,omitempty"` // certain bounds of the figure
	High    *float64 `json:"high,omitempty"`
	N       int      `json:"n"`
	Epochs  int      `json:"epochs,omitempty"`
	Outcome Outcome  `json:"outcome"`
	Reason           // for missing or unclear
}

// Judge checks a file against sentences.
func Judge(name string, f *sample.File, sentences []Sentence) *Report {
	j := judging{analysis.Open(f)}
	r := &Report{Schema: Schema, Name: printable.Line(name), Environment: f.Header.Environment,
		Rounds: f.End.Rounds, Outcome: Holds, Rules: []Rule{}}
	for _, s := range sentences {
		rule := j.rule(s)
		r.Rules = append(r.Rules, rule)
		r.Outcome = worse(r.Outcome, rule.Outcome)
	}
	return r
}

// Confirm compares the report with a further run's for the same sentences. A sentence is unclear if
// it is violated here and not there, or holds here and is violated there: the machine may have been
// in another state.
func (r *Report) Confirm(further *Report) {
	r.Outcome = Holds
	for i := range r.Rules {
		x, o := &r.Rules[i], further.Rules[i].Outcome
		if x.Outcome == Violated && o != Violated || x.Outcome == Holds && o == Violated {
			x.Outcome, x.Reason = Unclear, Reason{Code: NotConfirmed, Of: further.Name, Seen: o}
		}
		r.Outcome = worse(r.Outcome, x.Outcome)
	}
}

func worse(a, b Outcome) Outcome {
	all := Outcomes()
	return all[min(slices.Index(all, a), slices.Index(all, b))]
}

type judging struct{ *analysis.Run }

func (j judging) rule(s Sentence) Rule {
	r := Rule{Sentence: s.Text, Outcome: Holds, Checks: []Check{}}
	for i := range j.Series {
		metric, ok := j.about(s, i)
		if !ok {
			continue
		}
		c := j.check(s, i, metric)
		r.Checks = append(r.Checks, c)
		r.Outcome = worse(r.Outcome, c.Outcome)
	}
	if len(r.Checks) == 0 {
		r.Outcome, r.Reason = Missing, j.whyNone(s)
	}
	return r
}

func (j judging) about(s Sentence, i int) (metric string, ok bool) {
	c := j.Series[i].Cell
	if c.Control || !s.Mode.of(c) || s.From != "" && string(c.From) != s.From ||
		s.To != "" && string(c.To) != s.To ||
		s.Load != "" && c.Load != s.Load || s.On != "" && c.On != s.On ||
		s.At != "" && c.Point != s.At || s.Pin != "" && c.Pin != s.Pin {
		return "", false
	}
	metric = metricOf(s.Metric, j.Series[i].Load)
	if s.Of == (Name{}) && !sameUnit(workload.MetricOf(metric, j.Series[i].Load).Unit, s.Unit) {
		return metric, false // CPU time is per byte or per round trip, not both
	}
	return metric, j.has(c.Load, metric)
}

func sameUnit(metric, limit string) bool {
	return metric == limit || limit == "" && (metric == "1" || bare(metric))
}

func metricOf(word string, l sample.Load) string {
	if slices.ContainsFunc(gauges(l), func(g sample.Gauge) bool { return g.Name == word }) {
		return word
	}
	switch word {
	case Latency:
		return workload.LatencyP50
	case CPU:
		return workload.Of(l).CPU()
	}
	return word
}

func (j judging) has(load, metric string) bool {
	w := workload.Of(j.File.Header.Plan.Loads.Of(load))
	return metric == w.Primary || metric == w.CPU() ||
		slices.ContainsFunc(j.Series, func(s *analysis.Series) bool {
			return s.Cell.Load == load && len(s.Values[metric]) > 0
		})
}

func (j judging) whyNone(s Sentence) Reason {
	for _, x := range j.File.Header.Plan.Skipped {
		if string(x.Mode) == s.Mode.Mode && (s.From == "" || x.From == "" ||
			string(x.From) == s.From) {
			return Reason{Code: Unmeasured, Of: s.Mode.String(), Cause: x.Reason}
		}
	}
	if !slices.ContainsFunc(j.Series, func(x *analysis.Series) bool { return s.Mode.of(x.Cell) }) {
		return Reason{Code: NoMode, Of: s.Mode.String()}
	}
	return Reason{Code: NoMatch, Metric: s.Metric, Of: s.Mode.String()}
}

func (j judging) check(s Sentence, i int, metric string) Check {
	l := j.Series[i].Load
	c := j.Series[i].Cell
	out := Check{Label: analysis.RowName(c), Cell: c.Named(), Metric: metric,
		Unit: workload.MetricOf(metric, l).Unit, Limit: s.Limit, Outcome: Missing}
	if j.Failed(i) {
		out.Code = NoResult
		return out
	}
	var x analysis.Bounds
	if s.Of == (Name{}) {
		x = j.ValueBounds(i, metric)
	} else {
		out.Unit = analysis.RatioUnit
		b, ok := j.reference(s.Of, i)
		if !ok {
			out.Reason = Reason{Code: NoReference, Of: s.Of.String()}
			return out
		}
		out.Of = analysis.RowName(j.Series[b].Cell)
		x = j.RatioBounds(i, b, metric)
	}
	if x.N == 0 {
		out.Reason = Reason{Code: NoMetric, Metric: metric}
		return out
	}
	out.Median, out.N, out.Epochs = &x.Median, x.N, x.Epochs
	if !x.Known {
		out.Outcome, out.Reason = Unclear, whyUnknown(x)
		return out
	}
	out.Low, out.High = &x.Low, &x.High
	out.Outcome = OutcomeOf(x.Low, x.High, s.Compare, s.Limit)
	return out
}

func whyUnknown(x analysis.Bounds) Reason {
	if !x.Control {
		return Reason{Code: NoControl}
	}
	return Reason{Code: FewRounds, Rounds: x.N, Least: x.Least}
}

// reference returns the cell that a ratio is to: a cell of n in the group of cell i, if possible
// with the same target.
func (j judging) reference(n Name, i int) (b int, ok bool) {
	c := j.Series[i].Cell
	b = -1
	for k, s := range j.Series {
		o := s.Cell
		if o.Control || !n.of(o) || !analysis.SameGroup(o, c) || j.Failed(k) {
			continue
		}
		if b < 0 || o.To == c.To {
			b = k
		}
		if o.To == c.To {
			break
		}
	}
	return b, b >= 0
}

// OutcomeOf returns whether a figure within certain bounds meets a limit. compare is >=, <=, > or
// <.
func OutcomeOf(low, high float64, compare string, limit float64) Outcome {
	var holds, violated bool
	switch compare {
	case ">=":
		holds, violated = low >= limit, high < limit
	case ">":
		holds, violated = low > limit, high <= limit
	case "<=":
		holds, violated = high <= limit, low > limit
	case "<":
		holds, violated = high < limit, low >= limit
	}
	switch {
	case holds:
		return Holds
	case violated:
		return Violated
	}
	return Unclear
}
