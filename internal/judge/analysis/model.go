// Package analysis turns a results file into a judged report: it groups visits by cell, pairs them
// by round, and adds intervals, verdicts and warnings. It needs only the file, so any machine can
// judge any run again.
package analysis

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Schema names the version of the report.
const Schema = "bridgetoll.report/1"

// Report is the part of a judged run that all studies share; docs/results.md documents its JSON
// form. Units are base units: seconds, bytes, bit/s. A study puts its own fields between the two
// parts.
type Report struct {
	Measured
	Said
}

// Base returns the part that all studies have.
func (r *Report) Base() *Report { return r }

// Complete reports whether the run reached its end and everything planned has a result.
func (r *Report) Complete() bool {
	return len(r.Lacking()) == 0 && !r.Plan.CutShort() &&
		!slices.ContainsFunc(r.Cells, func(c Cell) bool {
			return c.Broke
		})
}

// Lacking returns the failed cells without those that are only measured because the machine's
// congestion control paces.
func (r *Report) Lacking() []Failed {
	return slices.DeleteFunc(slices.Clone(r.Failed), func(f Failed) bool {
		return r.Plan.unpaced(f.Cell)
	})
}

// Tell sets the text that is made of the findings.
func (s *Said) Tell(a *Answer, findings []string) { s.Answer, s.Findings = a, findings }

// Measured holds what was measured, and how.
type Measured struct {
	Schema      string             `json:"schema"`
	Study       sample.Study       `json:"study,omitzero"`
	Started     time.Time          `json:"started,omitzero"` // zero: not in the file
	Command     []string           `json:"command,omitzero"`
	Environment sample.Environment `json:"environment"`
	Plan        Plan               `json:"plan"`
	Control     Control            `json:"control"`
	Cells       []Cell             `json:"cells"`
	Unpaired    []Unpaired         `json:"unpaired,omitempty"` // by load; nil without slices
}

// Empty reports whether nothing has a result.
func (m *Measured) Empty() bool { return len(m.Cells) == 0 }

// Said holds the text about the measurement.
type Said struct {
	Answer *Answer `json:"answer,omitempty"` // nil: nothing was measured
	// Found holds the findings, of which show/sentence makes Answer and Findings.
	Found    []Finding     `json:"found,omitempty"`
	Failed   []Failed      `json:"failed"`
	Skipped  []sample.Skip `json:"skipped"`
	Warnings []Warning     `json:"warnings"`
	Findings []string      `json:"findings"`
}

// Plan holds what was done.
type Plan struct {
	Seed      uint64      `json:"seed"`
	Rounds    int         `json:"rounds"` // complete ones
	Window    float64     `json:"window_s"`
	Baseline  string      `json:"baseline"`
	EndedBy   string      `json:"ended_by"`
	Elapsed   float64     `json:"elapsed_s"`
	Budget    float64     `json:"budget_s"`
	Precision float64     `json:"precision"`
	Same      float64     `json:"same,omitempty"`    // relative difference that is called none
	Epoch     float64     `json:"epoch_s,omitempty"` // all slices together
	Pin       string      `json:"pin"`
	CPUs      sample.CPUs `json:"cpus"`
	// nil: CPUs is the only placement
	Pins  []sample.Pinning `json:"pins,omitempty"`
	Loads sample.Loads     `json:"loads"`
	Wire  *sample.Wire     `json:"wire,omitempty"`
	Sweep *sample.Sweep    `json:"sweep,omitempty"`
	// Unpaced is the tune under which cells were measured as well, because the machine's congestion
	// control paces; "": none.
	Unpaced string `json:"unpaced,omitempty"`
}

// OnlyUnpaced reports whether the cell was measured only because the machine's congestion control
// paces.
func (p Plan) OnlyUnpaced(c Cell) bool { return p.unpaced(c.Cell) }

func (p Plan) unpaced(c sample.Cell) bool { return c.Tune != "" && string(c.Tune) == p.Unpaced }

// Interrupted reports whether the user ended the run, so that a longer budget would not have
// helped.
func (p Plan) Interrupted() bool { return p.EndedBy == sample.EndedByInterrupt }

// CutShort reports whether failures ended the run. Earlier answers of third parties' endpoints are
// still results.
func (p Plan) CutShort() bool { return p.EndedBy == sample.EndedByFailure }

// Control is the comparison of the baseline with itself.
type Control struct {
	Mode   string  `json:"mode"`
	Groups []Floor `json:"groups"`
}

// Floor is a group's relative noise floor by metric: 0.02 is 2 %.
type Floor struct {
	From  string             `json:"from"`
	Load  string             `json:"load"`
	Point string             `json:"point,omitempty"`
	Shape sample.Shape       `json:"shape,omitzero"`
	On    string             `json:"on"`
	Pin   string             `json:"pin,omitempty"`
	Floor map[string]float64 `json:"floor"`
	// Placebo is the ratio to the baseline of the same cell among the other modes' slices, or nil.
	Placebo *Ratio `json:"placebo,omitempty"`
	// Epochs holds, by metric, how much the epochs of the group's rows differ; nil without slices.
	Epochs map[string]Spread `json:"epochs,omitempty"`
}

// Spread is the difference between epochs that their slices do not explain.
type Spread struct {
	SD      float64 `json:"sd"` // relative: 0.012 is 1.2 %
	Freedom float64 `json:"degrees_of_freedom"`
}

// Cell is a judged cell whose path was witnessed; others are in Failed. For an endpoint, its mode
// is the name of the route.
type Cell struct {
	sample.Cell
	Hops []string `json:"hops"`
	// address that the (first) client connected to
	Dial      string            `json:"dial,omitempty"`
	Witnessed bool              `json:"witnessed"`
	Baseline  bool              `json:"baseline,omitempty"`
	Broke     bool              `json:"broke,omitempty"` // results are from before the path broke
	Metrics   map[string]Metric `json:"metrics"`
	Latencies []Quantile        `json:"latencies,omitempty"`
	CPU       CPUSplit          `json:"cpu"`
	CPUs      []CPUUse          `json:"cpus,omitempty"`
	AllCPUs   []CPUUse          `json:"all_cpus,omitempty"` // of each machine; CPU is 0
	// ProxyCore is the proxy's share of one core: 1.2 is more than one; nil: the path has none.
	ProxyCore *Metric           `json:"proxy_core,omitempty"`
	Memory    *ProxyMemory      `json:"proxy_memory,omitempty"`
	Counted   []Counted         `json:"counted,omitempty"`
	LimitedBy string            `json:"limited_by"`
	Capacity  *Capacity         `json:"capacity,omitempty"` // nil: not known
	Segments  []Segments        `json:"segments,omitempty"`
	Cards     []sample.CardName `json:"cards,omitempty"` // on the path of the cell's packets
	Primary   string            `json:"primary"`         // the metric that decides its toll
	Band      Band              `json:"band,omitempty"`  // of a sweep, for a whole curve
	Facts     map[string]string `json:"facts,omitempty"`
	// Together is the share of the time, 0 to 1, in which an unpinned client and server were on one
	// CPU; nil if they were pinned or it is not known.
	Together *float64   `json:"together,omitempty"`
	Varies   *Variation `json:"varies,omitempty"` // nil: not known to vary
	// Unpaced is the ratio of the primary metric to the baseline's with both under Plan.Unpaced;
	// nil: not measured.
	Unpaced  *Ratio    `json:"unpaced,omitempty"`
	Warnings []Warning `json:"warnings"`
	// Evidence is of all visits to a route to an LLM server, or of requests to another endpoint
	// before its visits; nil: packets were not captured.
	Evidence *sample.Evidence `json:"evidence,omitempty"`
	// GPU is of all visits to a route to an LLM server; nil: it could not be read.
	GPU *sample.GPU `json:"gpu,omitempty"`
}

// Metric is one quantity of a cell over its rounds.
type Metric struct {
	Unit   string  `json:"unit"`
	Higher bool    `json:"higher_is_better,omitempty"`
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	// Merged is the percentile over the samples of all rounds, for percentiles other than medians,
	// or the number in all rounds for rare events (Stalls).
	Merged *float64  `json:"merged,omitempty"`
	Rounds []float64 `json:"rounds"`
	// At holds the rounds' numbers, from 0, or nil if none is missing.
	At    []int  `json:"at,omitempty"`
	Ratio *Ratio `json:"ratio,omitempty"`
	// Level is the baseline's median plus the paired difference, or times the ratio, so that levels
	// of rows agree with their differences; 0 without a ratio.
	Level float64 `json:"level,omitempty"`
	// Price is the cost of the mode in a latency, or in a time of an endpoint.
	Price *Price `json:"price,omitempty"`
	// Scaling is a crowd's ratio to the same mode in the plan's first shape.
	Scaling *Ratio `json:"scaling,omitempty"`
}

// Shown returns the level that agrees with the difference from the baseline, or else the median.
func (m Metric) Shown() float64 {
	if m.Level > 0 {
		return m.Level
	}
	return m.Median
}

// Ratio is a metric relative to the baseline's, of the same rounds or of neighbouring slices.
type Ratio struct {
	To      string        `json:"to"`
	Median  float64       `json:"median"`
	Low     float64       `json:"low"`
	High    float64       `json:"high"`
	N       int           `json:"n"`                // pairs of rounds or slices
	Epochs  int           `json:"epochs,omitempty"` // 0: by rounds
	Verdict stats.Verdict `json:"verdict"`
	// Varies means that Low and High are the range of nine tenths of the pairs rather than the
	// median's interval. The verdict is better or worse only if all of the range is.
	Varies bool `json:"varies,omitempty"`
}

// Judgement is a figure of one run, with its verdict, in comparisons of several runs.
type Judgement struct {
	Median  float64       `json:"median"`
	Low     float64       `json:"low"`
	High    float64       `json:"high"`
	N       int           `json:"n"`
	Verdict stats.Verdict `json:"verdict,omitempty"` // of a ratio
	Varies  bool          `json:"varies,omitempty"`  // Low and High are a range, as in a ratio
}

// Judgement returns the ratio as a figure of its run.
func (r Ratio) Judgement() Judgement {
	return Judgement{r.Median, r.Low, r.High, r.N, r.Verdict, r.Varies}
}

// Ratio returns the ratio whose judgement f is, without what it is to.
func (f Judgement) Ratio() Ratio {
	return Ratio{Median: f.Median, Low: f.Low, High: f.High, N: f.N, Verdict: f.Verdict,
		Varies: f.Varies}
}

// Brief returns a ratio without its interval, or its range if it varies.
func (f Judgement) Brief() string {
	if f.Varies {
		return f.Ratio().String()
	}
	return Percent(f.Median)
}

// Undecided reports whether the ratio has no verdict because it varies. A longer run would not
// change that.
func (r Ratio) Undecided() bool { return r.Varies && r.Verdict == stats.Unclear }

// Word returns the verdict as tables show it.
func (r Ratio) Word() string {
	if r.Undecided() {
		return Varying
	}
	return string(r.Verdict)
}

// Alone reports whether the ratio has no interval, because it is that of a single round.
func (r Ratio) Alone() bool { return r.N < 2 && !r.Varies }

// Varying is the word for a ratio whose range includes more than one verdict, and the code of a
// varying row's warning. That has in Prices the range and the number of values, and in Values the
// length of a slice or window and what TCP sent again; What is the name of the load's figure.
const Varying = "varies"

// HalfWidth returns the larger distance from the median to an end of the interval.
func (r Ratio) HalfWidth() float64 { return r.summary().HalfWidth() }

func (r Ratio) summary() stats.Summary {
	return stats.Summary{Median: r.Median, Low: r.Low, High: r.High, N: r.N}
}

// String returns "95 % (93–97)", or above 10 a factor: "12.2× (11.9–12.5)". With one round it
// returns "95 % ±?", and for a ratio that varies "0.05–5.2 %".
func (r Ratio) String() string {
	const factor, percent = 10, 100
	switch {
	case r.Varies && r.Low >= factor:
		return Span(r.Low, r.High) + "×"
	case r.Varies:
		return Span(percent*r.Low, percent*r.High) + " %"
	}
	scale, unit := float64(percent), " %"
	if r.Median >= factor {
		scale, unit = 1, "×"
	}
	s := stats.Summary{Median: scale * r.Median, Low: scale * r.Low, High: scale * r.High, N: r.N}
	decimals := min(coarse(s.HalfWidth()), digitsOf(0, s.Median))
	if s.N < 2 {
		decimals = 0
	}
	return enclosed(s, unit, decimals)
}

// Even returns the ratio in %, without the unit, and the larger half of its interval, so that a
// column of ratios has one form: "95 ±2", above 10 a factor, "12.2× ±0.3", "0.05–5.2" if it varies.
// Where that half reaches 100 % although the verdict is clear, it has both ends: "227 (208–700)".
func (r Ratio) Even() string {
	const factor, percent = 10, 100
	scale, unit := float64(percent), ""
	if r.Median >= factor {
		scale, unit = 1, "×"
	}
	if r.Varies {
		return strings.TrimSuffix(r.String(), " %")
	}
	s := stats.Summary{Median: scale * r.Median, Low: scale * r.Low, High: scale * r.High, N: r.N}
	if s.N < 2 {
		return fmt.Sprintf("%.0f%s ±?", s.Median, unit)
	}
	decimals := min(coarse(s.HalfWidth()), digitsOf(0, s.Median))
	if r.uneven(s, scale) { // its nearer end is not rounded to no difference
		decimals = max(decimals, coarse(min(math.Abs(s.Low-scale), math.Abs(s.High-scale))))
	}
	return fmt.Sprintf("%.*f%s %s", decimals, s.Median, unit, r.evenly(s, scale, decimals))
}

// evenly returns the larger half of an interval, "±1.7", or its ends, "(0.7–4.2)", if it is uneven.
func (r Ratio) evenly(s stats.Summary, none float64, decimals int) string {
	if r.uneven(s, none) {
		return ends(s, decimals)
	}
	return fmt.Sprintf("±%.*f", decimals, s.HalfWidth())
}

// uneven reports whether the larger half of an interval contradicts a clear verdict: it reaches the
// value that means no difference.
func (r Ratio) uneven(s stats.Summary, none float64) bool {
	return r.Verdict != stats.Unclear && (s.Low-none)*(s.High-none) > 0 &&
		s.HalfWidth() >= math.Abs(s.Median-none)
}

func ends(s stats.Summary, decimals int) string {
	if s.Low < 0 {
		return fmt.Sprintf("(%.*f to %.*f)", decimals, s.Low, decimals, s.High)
	}
	return fmt.Sprintf("(%.*f–%.*f)", decimals, s.Low, decimals, s.High)
}

// Mark returns a sign of the verdict to follow Even: "=" for the same or nothing, "?" for unclear,
// "~" for one that varies, and "" for better and worse, which the figure itself shows, and for a
// ratio whose interval is "±?".
func (r Ratio) Mark() string {
	switch {
	case r.Undecided():
		return "~"
	case r.Alone():
		return ""
	case r.Verdict == stats.Unclear:
		return "?"
	case r.Verdict == stats.Same, r.Verdict == stats.Nothing:
		return "="
	}
	return ""
}

// Percent returns a ratio without an interval as Ratio.String does: "95 %", "0.4 %", "12.2×".
func Percent(x float64) string {
	const factor, small, percent = 10, 0.0995, 100
	switch {
	case x >= factor:
		return fmt.Sprintf("%.1f×", x)
	case 0 < x && x < small:
		return fmt.Sprintf("%.1f %%", percent*x)
	}
	return fmt.Sprintf("%.0f %%", percent*x)
}

// coarse returns the number of decimals for a sentence: as in a table, but none if the uncertainty
// is more than a half or 0.
func coarse(uncertainty float64) int {
	const half = 0.5
	if uncertainty > half || uncertainty == 0 {
		return 0
	}
	return Decimals(uncertainty)
}

func enclosed(s stats.Summary, unit string, decimals int) string {
	digits := func(x float64) string { return fmt.Sprintf("%.*f", decimals, x) }
	text := digits(s.Median) + unit
	switch {
	case s.N < 2:
		return text + " " + Interval(s, decimals)
	case digits(s.Low) == digits(s.High):
		return text
	}
	return text + " " + ends(s, decimals)
}

// Interval returns the text after a median with the given number of decimals: "±0.02", or
// "(0.61–0.84)" if the ends are not equally far away.
func Interval(s stats.Summary, decimals int) string {
	const even = 1.5 // largest difference that rounding makes of equal halves, in last digits
	down, up := s.Median-s.Low, s.High-s.Median
	switch {
	case s.N < 2:
		return "±?"
	case math.Abs(up-down)*math.Pow10(decimals) > even:
		return ends(s, decimals)
	}
	return fmt.Sprintf("±%.*f", decimals, s.HalfWidth())
}

// CPUSplit holds the CPU time of a payload byte (bulk) or a round trip (rr) by process, in seconds.
// Rest is kernel work outside these processes, and other programs.
type CPUSplit struct {
	Unit   string  `json:"unit"` // "s/B" or "s"
	Client float64 `json:"client"`
	Server float64 `json:"server"`
	Proxy  float64 `json:"proxy"`
	Rest   float64 `json:"rest"`
}

// Sum returns the CPU time of all processes and the rest; 0: none was metered.
func (s CPUSplit) Sum() float64 { return s.Client + s.Server + s.Proxy + s.Rest }

// Failed is a cell that has no result.
type Failed struct {
	sample.Cell
	Reason   string `json:"reason"`
	Evidence string `json:"evidence"`
}

// Warning is a doubt about a number or about the whole run.
type Warning struct {
	Code string `json:"code"`
	Text string `json:"text"`
	// Found has the values of which show/sentence makes Text; nil: Text is made.
	Found *Finding `json:"-"`
}

// Same reports whether two warnings say the same.
func (w Warning) Same(o Warning) bool { return reflect.DeepEqual(w, o) }

// warn returns the warning that is about the finding.
func warn(f Finding) Warning { return Warning{Code: f.Code, Found: &f} }

// Primary returns the metric that decides a load's toll.
func Primary(l sample.Load) string { return workload.Of(l).Primary }

// Rate returns the metric of a load's throughput.
func Rate(l sample.Load) string { return workload.Of(l).Rate }

// PrimaryOf returns the metric that decides the toll of a cell of that shape.
func PrimaryOf(l sample.Load, s sample.Shape) string { return workload.Of(l).Decides(s) }

func higherIsBetter(l sample.Load, metric string) bool {
	return workload.MetricOf(metric, l).Higher
}
