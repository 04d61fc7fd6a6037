// Package ladder judges modes in an order in which each has one part more than the one below, and
// prices the parts.
package ladder

import (
	"cmp"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/judge/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Step is a rung of the ladder and the cost of its part relative to the rung below. The part
// includes the parts of skipped rungs without a result.
type Step struct {
	Mode   mode.Name                 `json:"mode"`
	From   mode.Placement            `json:"from"`
	To     mode.Target               `json:"to"`
	On     string                    `json:"on"`
	Label  string                    `json:"label"`
	Below  string                    `json:"below,omitempty"` // its label; absent at the bottom
	Part   string                    `json:"part,omitempty"`
	Prices map[string]analysis.Price `json:"prices"` // by PriceName
	// Trace attributes the price in median latency to parts of the path; nil if it was not traced.
	Trace *trace.Trace `json:"trace,omitempty"`

	cell, below sample.Cell // without a load; below is zero at the bottom
}

// priced lists the prices in the order in which they are shown.
var priced = []struct {
	Metric, Load string
	answers      bool
}{
	{workload.LatencyP50, workload.RR, true},
	{workload.CPUPerTrip, workload.RR, false},
	{workload.Throughput, workload.Bulk, true},
	{workload.CPUPerByte, workload.Bulk, false},
	{workload.LatencyP50, workload.Stream, true},
	{workload.CPUPerToken, workload.Stream, false},
}

// PriceName returns the key of a load's price in Step.Prices: the metric, or a name of the load if
// another load has that metric, too.
func PriceName(load, metric string) string {
	if load == workload.Stream && metric == workload.LatencyP50 {
		return load + "_" + metric
	}
	return metric
}

// Report is the judged ladder.
type Report struct {
	analysis.Measured
	Steps []Step `json:"steps,omitempty"`
	analysis.Said
}

// Base returns the part that all studies share.
func (r *Report) Base() *analysis.Report {
	return &analysis.Report{Measured: r.Measured, Said: r.Said}
}

// Complete reports whether everything planned has a result.
func (r *Report) Complete() bool { return r.Base().Complete() }

// Judge judges a results file as a ladder.
func Judge(f *sample.File) *Report {
	l := newLadder(analysis.Open(f))
	base := l.Report()
	l.Sort(base.Cells)
	r := &Report{Measured: base.Measured, Said: base.Said, Steps: l.steps()}
	r.Found = append(Findings(r), l.sums(r.Steps)...)
	return r
}

// Partners returns a function from each cell to the cell on the rung below, or for the control to
// the baseline.
func Partners(j *analysis.Run) func(i int) (int, bool) { return newLadder(j).partner }

type ladder struct {
	*analysis.Run
	at map[sample.Cell]int // cells that have a result, without the control
}

func newLadder(j *analysis.Run) *ladder {
	l := &ladder{j, map[sample.Cell]int{}}
	for i, s := range j.Series {
		if _, twice := l.at[s.Cell]; !twice && !s.Cell.Control && !j.Failed(i) {
			l.at[s.Cell] = i
		}
	}
	return l
}

// below returns the nearest rung below with a result for every load of c. parts lists c's
// additional parts, from below. ok is false at the bottom.
func (l *ladder) below(c sample.Cell) (b sample.Cell, parts []string, ok bool) {
	rung, ok := mode.FindRung(c.From, c.To, c.Mode)
	for ok && rung.Below != "" {
		parts = append([]string{rung.PartOn(c.On != sample.Lab && c.On != "")}, parts...)
		rung, ok = mode.FindRung(c.From, c.To, rung.Below)
		b = c
		b.Mode, b.To = rung.Mode, rung.To
		if l.covers(b, c) {
			return b, parts, true
		}
	}
	return c, nil, false
}

func (l *ladder) covers(b, c sample.Cell) bool {
	common := false
	for _, load := range l.File.Header.Plan.Loads {
		b.Load, c.Load = load.Kind, load.Kind
		_, mine := l.at[c]
		_, its := l.at[b]
		if mine && !its {
			return false
		}
		common = common || mine
	}
	return common
}

// partner returns the cell on the rung below, or the baseline for the control.
func (l *ladder) partner(i int) (int, bool) {
	c := l.Series[i].Cell
	if c.Control {
		return l.BaselineOf(i)
	}
	b, _, ok := l.below(c)
	if !ok {
		return 0, false
	}
	at, ok := l.at[b]
	return at, ok
}

func (l *ladder) steps() []Step {
	type ground struct {
		on   string
		from mode.Placement
	}
	var (
		out     []Step
		grounds []ground
		seen    = map[sample.Cell]bool{}
	)
	for i, s := range l.Series {
		c := s.Cell
		rung, ok := mode.FindRung(c.From, c.To, c.Mode)
		at, measured := l.at[c]
		c.Load = ""
		if !ok || rung.To != c.To || !measured || at != i || seen[c] {
			continue
		}
		seen[c] = true
		if g := (ground{c.On, c.From}); !slices.Contains(grounds, g) {
			grounds = append(grounds, g)
		}
		out = append(out, l.step(c))
	}
	slices.SortStableFunc(out, func(a, b Step) int {
		return cmp.Or(slices.Index(grounds, ground{a.On, a.From})-slices.Index(
			grounds, ground{b.On, b.From}), a.height()-b.height())
	})
	l.traces(out)
	return out
}

func (l *ladder) traces(steps []Step) {
	if l.File.Header.Plan.Trace == nil {
		return
	}
	var (
		pairs [][2]int
		of    []*Step
	)
	for k := range steps {
		c, b := steps[k].cell, steps[k].below
		c.Load, b.Load = workload.RR, workload.RR
		i, mine := l.at[c]
		below, its := l.at[b]
		if steps[k].Below != "" && mine && its {
			pairs, of = append(pairs, [2]int{i, below}), append(of, &steps[k])
		}
	}
	for k, t := range trace.Between(l.Run, pairs) {
		of[k].Trace = &t
	}
}

// Way returns, in words, where the step's clients are and whether they connect to outside the
// machine.
func (s Step) Way() string {
	from, to := s.From.Words(), s.To
	switch {
	case !to.Outside():
		return from
	case to.Six():
		return from + " to outside over IPv6"
	}
	return from + " to outside"
}

// SamePlace reports whether the clients of both steps are in one place, on one backend.
func (s Step) SamePlace(o Step) bool { return s.On == o.On && s.Way() == o.Way() }

// Has reports whether c is one of the step's cells, one for each load.
func (s Step) Has(c analysis.Cell) bool {
	return c.From == s.From && c.On == s.On && c.Label() == s.Label
}

func (s Step) height() int {
	return slices.IndexFunc(mode.Ladder(s.From, s.To), func(r mode.Rung) bool {
		return r.Mode == s.Mode
	})
}

func (l *ladder) step(c sample.Cell) Step {
	out := Step{Mode: c.Mode, From: c.From, To: c.To, On: c.On,
		Label: analysis.Label(c), Prices: map[string]analysis.Price{}, cell: c}
	if b, parts, ok := l.below(c); ok {
		out.Below, out.Part, out.below = analysis.Label(b), strings.Join(parts, ", and "), b
		out.Prices = l.prices(c, b)
	}
	return out
}

func (l *ladder) prices(c, b sample.Cell) map[string]analysis.Price {
	out := map[string]analysis.Price{}
	for _, m := range priced {
		c.Load, b.Load = m.Load, m.Load
		i, ok := l.at[c]
		k, also := l.at[b]
		if !ok || !also {
			continue
		}
		if p := l.price(i, k, m.Metric); p.N > 0 {
			out[PriceName(m.Load, m.Metric)] = p
		}
	}
	return out
}

func (l *ladder) price(i, b int, metric string) analysis.Price {
	mine, its := l.Series[i], l.Series[b]
	if metric == workload.Throughput {
		x := l.Against(i, b, metric, analysis.Label(its.Cell))
		p := analysis.Price{Unit: analysis.RatioUnit, Median: x.Median, Low: x.Low, High: x.High,
			N: x.N, Epochs: x.Epochs, Verdict: x.Verdict.Part(), Varies: x.Varies}
		if by := l.LimitOf(mine); analysis.Fills(by) && l.LimitOf(its) == by {
			p.Verdict, p.LimitedBy = stats.Unclear, by
		}
		return p
	}
	return l.Price(i, b, metric)
}
