package published

import (
	"cmp"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Claim is a statement of a study without a figure for each side: how Of compares with To, or on
// which side of a bound Of lies.
type Claim struct {
	Text    string
	Of, To  analysis.Figure // without a metric in To, Of is compared with Bound
	Bound   float64         // in Of's base unit
	Want    Direction
	Finding int     // index of the finding that rests on it
	Command int     // index of the command that measures it
	Pace    float64 // required tokens a second; 0: any
}

// Direction is the result of comparing one figure with another.
type Direction string

const (
	Less  Direction = "less"
	Alike Direction = "same"
	More  Direction = "more"
)

// ClaimResult is the verdict on a claim.
type ClaimResult struct {
	Text     string          `json:"text"`
	Of       sample.Cell     `json:"of"`
	To       *sample.Cell    `json:"to,omitempty"` // nil: Of is compared with the bound
	Metric   string          `json:"metric"`
	Bound    float64         `json:"bound,omitempty"`
	Want     Direction       `json:"want"`
	Finding  int             `json:"finding"`
	Measured *analysis.Ratio `json:"measured,omitempty"` // of Of to To; nil: none, or a bound
	Extreme  *float64        `json:"extreme,omitempty"`  // largest Of of all rounds, with a bound
	Unit     string          `json:"unit"`               // of Extreme and Bound
	File     string          `json:"file,omitempty"`
	Verdict  Verdict         `json:"verdict"`
	Why      string          `json:"why,omitempty"` // reason if not measured, where known
	Command  string          `json:"command"`
}

func (s Study) check(c Claim, files []Input) (ClaimResult, []string) {
	out := ClaimResult{Text: c.Text, Of: c.Of.Cell, Metric: c.Of.Metric, Bound: c.Bound,
		Want: c.Want, Finding: c.Finding,
		Unit:    workload.MetricOf(c.Of.Metric, sample.Load{Kind: c.Of.Cell.Load}).Unit,
		Verdict: NotMeasured, Command: s.Commands[c.Command].String()}
	cells := []sample.Cell{c.Of.Cell}
	if c.To.Metric != "" {
		out.To, cells = &c.To.Cell, append(cells, c.To.Cell)
	}
	var best []string
	n := 0
	for _, f := range files {
		if l, _, _ := f.pair.Conditions(c.Of.Cell); c.Pace > 0 &&
			!near(workload.StreamOf(l).Pace, c.Pace) {
			continue
		}
		m, isValue := f.pair.Value(c.Of)
		x, isRatio := f.pair.Between(c.Of, c.To)
		if out.To != nil && !isRatio || !isValue {
			for _, cell := range cells {
				out.Why = cmp.Or(out.Why, f.missing(cell))
			}
			continue
		}
		notes := s.notes(f.pair, cmp.Or(c.Pace, s.Pace), cells...)
		if n > 0 && cmp.Or(cmp.Compare(len(notes), len(best)),
			-cmp.Compare(len(m.Rounds), n)) >= 0 {
			continue
		}
		best, n, out.File = notes, len(m.Rounds), f.Name
		if out.To != nil {
			out.Measured, out.Verdict = &x, judgeDirection(c.Want, x)
			continue
		}
		most := slices.Max(m.Rounds)
		out.Extreme, out.Verdict = &most, judgeBound(c.Want, c.Bound, most, len(m.Rounds))
	}
	if out.File != "" {
		out.Why = ""
	}
	return out, best
}

func near(a, b float64) bool { return a > b*(1-alike) && a < b*(1+alike) }

func judgeDirection(want Direction, m analysis.Ratio) Verdict {
	differs := m.Verdict == stats.Better || m.Verdict == stats.Worse
	same := m.Verdict == stats.Same || m.Low >= 1-alike && m.High <= 1+alike
	switch {
	case m.N < stats.MinJudged:
		return Unclear
	case want == Alike && same:
		return Holds
	case want == Alike && (m.Low > 1+alike || m.High < 1-alike) && differs:
		return Emerged
	case want == Alike:
		return Unclear
	case differs && (m.Median > 1) == (want == More):
		return Holds
	case differs:
		return Reversed
	case same:
		return Gone
	}
	return Unclear
}

func judgeBound(want Direction, bound, most float64, n int) Verdict {
	switch {
	case n < stats.MinJudged:
		return Unclear
	case (most >= bound) == (want == More):
		return Holds
	case want == More:
		return Gone
	}
	return Emerged
}
