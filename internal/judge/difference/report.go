package difference

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/gate"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Schema names the version of a difference.
const Schema = "bridgetoll.difference/1"

// Report is the difference between two runs; docs/results.md documents its JSON form.
type Report struct {
	Schema   string       `json:"schema"`
	Study    sample.Study `json:"study,omitzero"`
	Old      Side         `json:"old"`
	New      Side         `json:"new"`
	Baseline string       `json:"baseline"`
	Same     float64      `json:"same"` // relative difference that is called none
	Settings []Setting    `json:"settings"`
	States   []State      `json:"states,omitempty"` // of the machine, if they differ
	Cells    []Cell       `json:"cells"`            // cells of both runs, in the new plan's order
	Traces   []Traced     `json:"traces,omitempty"`
	OnlyOld  []Lone       `json:"only_old"`
	OnlyNew  []Lone       `json:"only_new"`
	FailAt   *float64     `json:"fail_above,omitempty"` // --fail-above
	Failing  []Exceeded   `json:"failing,omitempty"`    // certainly worse by more than that
}

// Side is one of the two runs.
type Side struct {
	Name        string             `json:"name"`
	Started     time.Time          `json:"started,omitzero"`
	Environment sample.Environment `json:"environment"`
	Rounds      int                `json:"rounds"`
	Elapsed     float64            `json:"elapsed_s"`
}

// State holds the baseline's own figures in two runs between which the state of the machine
// changed. Ratios depend on that state.
type State struct {
	From     string  `json:"from"`
	Load     string  `json:"load"`
	On       string  `json:"on"`
	Pin      string  `json:"pin,omitempty"`
	Baseline string  `json:"baseline"`
	Metric   string  `json:"metric"`
	Unit     string  `json:"unit"`
	Old      float64 `json:"old"`
	New      float64 `json:"new"`
}

// Setting is a possible explanation of a difference: a setting of the machine, the run, or paths.
type Setting struct {
	What string `json:"what"`
	Old  string `json:"old"` // Old or New is "" if that run lacks it
	New  string `json:"new"`
	// Cells lists the modes whose paths differ; nil for a setting of the whole run.
	Cells []string `json:"cells,omitempty"`
}

// Cell is a cell of both runs.
type Cell struct {
	sample.Cell
	Label    string            `json:"label"`
	Baseline bool              `json:"baseline,omitempty"`
	Primary  string            `json:"primary"`
	Metrics  map[string]Metric `json:"metrics"`
}

// Metric is one quantity of a cell in both runs.
type Metric struct {
	Unit   string  `json:"unit"`
	Higher bool    `json:"higher_is_better,omitempty"`
	Ratio  *Change `json:"ratio,omitempty"` // of the ratio to the baseline; nil for the baseline
	Value  *Change `json:"value,omitempty"` // of the value itself
}

// Change is the factor from the old figure to the new one.
type Change struct {
	Old      analysis.Judgement `json:"old"`
	New      analysis.Judgement `json:"new"`
	Median   float64            `json:"median"`
	Low      float64            `json:"low"` // 95 %
	High     float64            `json:"high"`
	SureLow  float64            `json:"sure_low"` // 99 %
	SureHigh float64            `json:"sure_high"`
	// pairs of slices, or rounds, of the run with fewer
	N      int `json:"n"`
	Epochs int `json:"epochs,omitempty"` // as in a ratio
	// Verdict is better, worse, same or unclear; "" if it is not judged.
	Verdict stats.Verdict `json:"verdict,omitempty"`
	// Alike is the verdict if the machine's state had been the same in both runs; "" if it was.
	Alike stats.Verdict `json:"verdict_if_alike,omitempty"`
}

// HasInterval reports whether there are enough rounds for an interval.
func (c Change) HasInterval() bool { return c.Epochs > 0 || c.N >= stats.MinJudged }

// Varies reports whether a figure of either run is a range, so that the change has no verdict.
func (c Change) Varies() bool { return c.Old.Varies || c.New.Varies }

// Lone is a cell with a result in only one run, or that cannot be compared.
type Lone struct {
	Label string `json:"label"`
	From  string `json:"from"`
	Load  string `json:"load"`
	On    string `json:"on"`
	Pin   string `json:"pin,omitempty"`
	Reason
}

// Reason is why the other run has no result to compare with.
type Reason struct {
	Code string    `json:"reason"`
	Why  string    `json:"why"` // in words: see internal/show/sentence
	Work [2]string `json:"-"`   // of OtherLoad: what the old and the new run sent
}

// The codes of reasons.
const (
	NotInOld  = "not-in-old"    // the run did not measure it
	NotInNew  = "not-in-new"    //
	FailedOld = "failed-in-old" // it has no result
	FailedNew = "failed-in-new" //
	OtherLoad = "other-load"    // Work
)

// Exceeded is a ratio that is certainly worse by more than the limit.
type Exceeded struct {
	Label  string `json:"label"`
	From   string `json:"from"`
	Load   string `json:"load"`
	Pin    string `json:"pin,omitempty"`
	Metric string `json:"metric"`
}

// FailAbove records the ratios with the verdict worse whose whole 99 % interval is beyond share:
// 0.05 is 5 %.
func (r *Report) FailAbove(share float64) {
	r.FailAt = &share
	r.Failing = r.exceeded(share, func(c *Change) stats.Verdict { return c.Verdict })
}

// Undecided reports whether something looks worse by more than share, but was measured in another
// state of the machine. FailAbove must have been called with the same share.
func (r *Report) Undecided(share float64) bool {
	return len(r.exceeded(share, func(c *Change) stats.Verdict {
		return cmp.Or(c.Alike, c.Verdict)
	})) > len(r.Failing)
}

func (r *Report) exceeded(share float64, verdict func(*Change) stats.Verdict) (out []Exceeded) {
	for _, c := range r.Cells {
		for _, metric := range Metrics(c) {
			m := c.Metrics[metric]
			if m.Ratio != nil && verdict(m.Ratio) == stats.Worse &&
				m.outcome(share) == gate.Violated {
				out = append(out, Exceeded{c.Label, string(c.From), c.Load, c.Pin, metric})
			}
		}
	}
	return out
}

// Unjudged reports whether no ratio shows if it became worse by more than share: none has a
// verdict, and no 99 % interval excludes it.
func (r *Report) Unjudged(share float64) bool {
	for _, c := range r.Cells {
		for _, m := range c.Metrics {
			if m.Ratio != nil && (m.Ratio.Verdict != stats.Unclear ||
				m.Ratio.HasInterval() && m.outcome(share) == gate.Holds) {
				return false
			}
		}
	}
	return true
}

// outcome returns whether the ratio became worse by at most share, as a gate would judge it.
func (m Metric) outcome(share float64) gate.Outcome {
	compare, limit := "<=", 1+share
	if m.Higher {
		compare, limit = ">=", 1-share
	}
	return gate.OutcomeOf(m.Ratio.SureLow, m.Ratio.SureHigh, compare, limit)
}

// Groups returns the cells by placement, load, backend and CPU placement.
func (r *Report) Groups() [][]Cell {
	return analysis.Grouped(r.Cells, func(c Cell) sample.Cell {
		return sample.Cell{From: c.From, Load: c.Load, On: c.On, Pin: c.Pin}
	})
}

// Metrics returns the names of the cell's metrics, the primary one first.
func Metrics(c Cell) []string {
	var out []string
	for _, m := range append([]string{c.Primary, workload.LatencyP99},
		slices.Sorted(maps.Keys(c.Metrics))...) {
		if _, ok := c.Metrics[m]; ok && !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}
