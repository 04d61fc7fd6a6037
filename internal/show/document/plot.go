package document

import (
	"cmp"
	"fmt"
	"math"
)

// Plot draws a column's numbers and their intervals between the columns of a table. A format may
// leave it out, because the column has them too.
type Plot struct {
	Column   int
	Before   int     // left of this column
	From, To float64 // the range to show
	Baseline float64
	Same     float64 // differences up to it count as none
	Scale    float64 // of labels: 100 for %
	Span     float64 // the least range to show; 0: 0.01, the least that matters of ratios
	Bars     bool    // from the baseline to the numbers, not dots
	Least    int     // columns of text; with fewer it is not drawn
}

// Show extends From and To to the rows' numbers with their intervals, and the baseline.
func (p *Plot) Show(rows []Row) {
	p.From, p.To = p.Baseline, p.Baseline
	for _, r := range rows {
		n := r.Cells[p.Column].Number
		if n == nil {
			continue
		}
		p.From, p.To = min(p.From, n.Value), max(p.To, n.Value)
		if n.Low != nil && n.High != nil {
			p.From, p.To = min(p.From, *n.Low), max(p.To, *n.High)
		}
	}
}

// Axis is a scale with a label at each multiple of Step.
type Axis struct{ Low, High, Step float64 }

// Axis returns a scale for the given number of columns of text, with space between the labels.
func (p Plot) Axis(columns int) Axis {
	const perLabel, least, margin = 5, 2, 0.02
	from, to := bounded(p.From), bounded(p.To)
	span := max(to-from, 2*p.Same, cmp.Or(p.Span, leastSpan))
	return Axis{Low: from - margin*span, High: from + (1+margin)*span,
		Step: niceStep(span / float64(max(least, columns/perLabel)))}
}

const leastSpan = 0.01

// bounded limits x, because files may have any values. NaN becomes 0.
func bounded(x float64) float64 {
	const most = 1e9
	if math.IsNaN(x) {
		return 0
	}
	return min(most, max(-most, x))
}

// slip is the distance, in steps, by which rounding may move a label beyond the axis.
const slip = 1e-6

// niceStep rounds up to 1, 2 or 5 times a power of ten.
func niceStep(x float64) float64 {
	tens := math.Pow(10, math.Floor(math.Log10(x)))
	for _, n := range []float64{1, 2, 5} {
		if n*tens >= x*(1-slip) {
			return n * tens
		}
	}
	return 10 * tens
}

// At returns the column of a value, from 0 to columns-1. Values beyond the axis are at its ends.
func (a Axis) At(x float64, columns int) int {
	if a.High <= a.Low {
		return 0
	}
	share := (x - a.Low) / (a.High - a.Low)
	if math.IsNaN(share) {
		return 0
	}
	return int(math.Round(min(1, max(0, share)) * float64(columns-1)))
}

// Labels returns the values of the labels and their texts, which are multiplied by scale.
func (a Axis) Labels(scale float64) (values []float64, texts []string) {
	for n := math.Ceil(a.Low/a.Step - slip); n*a.Step <= a.High+slip*a.Step; n++ {
		values, texts = append(values, n*a.Step),
			append(texts, label(n*a.Step*scale+0))
	}
	return values, texts
}

// label returns a figure of at most four digits, without an exponent if it is large.
func label(x float64) string {
	if math.Abs(x) >= 1e4 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.4g", x)
}
