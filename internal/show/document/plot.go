package document

import (
	"fmt"
	"math"
)

// Plot draws the numbers of a column and their intervals on one scale, between the columns of a
// table. It shows only what the column has, so a format may leave it out.
type Plot struct {
	Column   int     // the column whose numbers are drawn
	Before   int     // the drawing stands left of this column
	From, To float64 // the range that it must show
	Baseline float64
	Same     float64 // differences from the baseline up to this count as none
	Scale    float64 // of the axis's labels: 100 for %
	Least    int     // columns of text; with fewer it is not drawn
}

// Show sets From and To to include the rows' numbers with their intervals, and the baseline.
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

// Axis is a plot's scale, with a label at each multiple of Step.
type Axis struct{ Low, High, Step float64 }

// Axis returns a scale for the given number of columns of text. It leaves space between the labels.
func (p Plot) Axis(columns int) Axis {
	const perLabel, least, margin = 5, 2, 0.02
	from, to := bounded(p.From), bounded(p.To)
	span := max(to-from, 2*p.Same, leastSpan)
	return Axis{Low: from - margin*span, High: from + (1+margin)*span,
		Step: niceStep(span / float64(max(least, columns/perLabel)))}
}

const leastSpan = 0.01 // of ratios: smaller differences do not matter

// bounded limits x to what an axis can show, because a file may say anything. It returns 0 for NaN.
func bounded(x float64) float64 {
	const most = 1e9
	if math.IsNaN(x) {
		return 0
	}
	return min(most, max(-most, x))
}

// slip is the distance beyond the axis, in steps, that rounding may add to a value.
const slip = 1e-6

// niceStep returns the smallest number of the form 1, 2 or 5 times a power of ten that is at least
// x.
func niceStep(x float64) float64 {
	tens := math.Pow(10, math.Floor(math.Log10(x)))
	for _, n := range []float64{1, 2, 5} {
		if n*tens >= x*(1-slip) {
			return n * tens
		}
	}
	return 10 * tens
}

// At returns the column of a value, from 0 to columns-1. Values beyond the axis are drawn at its
// ends.
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

// Labels returns the values of the axis's labels and their texts. The texts are multiplied by
// scale.
func (a Axis) Labels(scale float64) (values []float64, texts []string) {
	for n := math.Ceil(a.Low/a.Step - slip); n*a.Step <= a.High+slip*a.Step; n++ {
		values, texts = append(values, n*a.Step), append(texts, fmt.Sprintf("%.4g", n*a.Step*scale+0))
	}
	return values, texts
}
