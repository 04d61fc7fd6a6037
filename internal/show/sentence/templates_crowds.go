package sentence

import (
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/scale"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

var ofCrowds = []template{
	{code: scale.Scaling, text: "{Total}, of that at {first}: {scaling}.", most: all},
	{code: scale.AtSize, text: "{Total}, of {other}'s: {rates}.", most: all},
	{code: scale.OneSize, text: "There is one size and one mode only: nothing to compare. Give " +
		"several, as in --clients 1,4,16.", most: all},
	{code: scale.Idle, text: "In most rounds a client process transferred nothing: {sizes}.",
		most: all},
	{code: scale.Growth, text: "{growth}.", details: 2},
	{code: scale.OneIdle, text: "{cell} from {place} at {shape}, {load}: in most rounds a client " +
		"process transferred nothing.", details: 3},
	{code: scale.Largest, text: "The largest crowd, {shape}: {n} processes, started and connected " +
		"within {setup} s, the last one's first byte at most {spread} ms after the common start, " +
		"{memory} MB of memory at the peak.", details: 4},
}

// totalOf returns what is summed over the clients, at which size and place.
func (w *writer) totalOf(fs []analysis.Finding) string {
	f, c := fs[0], w.r.Cells[fs[0].Cells[0]]
	l := workload.Of(sample.Load{Kind: f.Load})
	text := "total "
	if l.Rate == l.Primary {
		text += l.Noun
	} else {
		text += "rate of " + l.Name
	}
	differs := func(of func(analysis.Finding) string) bool {
		return slices.ContainsFunc(w.r.Found, func(o analysis.Finding) bool {
			return o.Load != "" && of(o) != of(f)
		})
	}
	if differs(func(f analysis.Finding) string { return f.On }) {
		text += " on " + f.On
	}
	if differs(func(f analysis.Finding) string { return string(f.From) }) {
		text += " from " + f.From.Words()
	}
	return printable.Capital(text + " at " + c.Shape.String())
}

// byRatio returns the words for the modes of a size by the verdicts on their rates.
func byRatio(of func(analysis.Metric) *analysis.Ratio) blank {
	return func(w *writer, fs []analysis.Finding) string {
		var out []analysis.Judged
		for _, c := range w.cells(fs[0]) {
			x := of(c.Metrics[scale.Rate(c)])
			out = append(out, analysis.Judged{Name: c.Label(), Verdict: x.Verdict, Ratio: x})
		}
		return analysis.ByVerdict(out)
	}
}

// partner returns what the rates are compared with.
func partner(of func(analysis.Metric) *analysis.Ratio) blank {
	return func(w *writer, fs []analysis.Finding) string {
		cells := w.cells(fs[0])
		last := cells[len(cells)-1]
		return of(last.Metrics[scale.Rate(last)]).To
	}
}

func ofFirst(m analysis.Metric) *analysis.Ratio    { return m.Scaling }
func ofBaseline(m analysis.Metric) *analysis.Ratio { return m.Ratio }

func growth(_ *writer, c analysis.Cell) string {
	m := c.Metrics[scale.Rate(c)]
	s := fmt.Sprintf("%s from %s, %s: %s delivers %s of the throughput of %s (%s)", c.Label(),
		c.From.Words(), c.Load, c.Shape, m.Scaling, m.Scaling.To, m.Scaling.Verdict)
	if f, ok := c.Metrics[workload.ClientFairness]; ok && c.Shape.Clients > 1 {
		s += fmt.Sprintf(", and its clients share it with a fairness of %.2f", f.Median)
	}
	if x := m.Ratio; x != nil {
		s += fmt.Sprintf("; that is %s of %s's (%s)", x, x.To, x.Verdict)
	}
	return s
}

// highest returns the words for the largest value of a metric in any round.
func highest(metric, format string, scale float64) blank {
	return ofCell(func(_ *writer, c analysis.Cell) string {
		return fmt.Sprintf(format, scale*slices.Max(append([]float64{0},
			c.Metrics[metric].Rounds...)))
	})
}
