// Package sweep judges loads at several values of one option: a curve for each mode, and the value
// from which on it costs more than what counts as the same.
package sweep

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Curve is a mode over the points.
type Curve struct {
	Label  string         `json:"label"`
	Mode   mode.Name      `json:"mode"`
	From   mode.Placement `json:"from"`
	To     mode.Target    `json:"to"`
	Load   string         `json:"load"`
	Tune   mode.Tunes     `json:"tune,omitempty"`
	On     string         `json:"on"`
	Metric string         `json:"metric"`
	Points []Point        `json:"points"`
	Knee   Knee           `json:"knee"`
}

// Point is a curve at one of the values.
type Point struct {
	Point string        `json:"point"`
	Value float64       `json:"value"`
	Band  analysis.Band `json:"band"` // certain for the whole curve, see confidence
	// Ratio is to the baseline at this point, with a 95 % interval of its own.
	Ratio analysis.Ratio `json:"ratio"`
}

// Report is the judged sweep.
type Report struct {
	analysis.Measured
	Curves []Curve `json:"curves"`
	// OverIPv4 holds the curves of paths over IPv6 against the same paths over IPv4.
	OverIPv4 []Curve `json:"over_ipv4,omitempty"`
	analysis.Said
}

// Base returns the part that all studies share.
func (r *Report) Base() *analysis.Report {
	return &analysis.Report{Measured: r.Measured, Said: r.Said}
}

// Complete reports whether everything planned has a result.
func (r *Report) Complete() bool { return r.Base().Complete() }

// confidence returns the level for each of the given number of points. A statement about a whole
// curve is wrong for at most 5 % of the curves, because its points share that probability
// (Bonferroni).
func confidence(points int) float64 { return 1 - sample.CurveRisk/float64(max(1, points)) }

// Judge judges a results file as a sweep.
func Judge(f *sample.File) *Report {
	j := analysis.Open(f)
	base := j.Report()
	order(base)
	r := &Report{Measured: base.Measured, Said: base.Said, Curves: curves(j, j.BaselineOf),
		OverIPv4: curves(j, overIPv4(j))}
	for i := range r.Cells {
		r.Cells[i].Band = r.bandOf(r.Cells[i])
	}
	r.Found = Findings(r)
	return r
}

// bandOf returns the cell's band, or "" for the baseline.
func (r *Report) bandOf(c analysis.Cell) analysis.Band {
	for _, x := range r.Curves {
		if k := slices.IndexFunc(x.Points, func(p Point) bool {
			return p.Point == c.Point
		}); k >= 0 && x.has(c) {
			return x.Points[k].Band
		}
	}
	return ""
}

// order puts a mode's points together, the baseline's first, otherwise in the plan's order.
func order(r *analysis.Report) {
	if r.Plan.Sweep == nil {
		return
	}
	type block struct {
		from            mode.Placement
		load, on, label string
	}
	of := func(c analysis.Cell) block { return block{c.From, c.Load, c.On, c.Label()} }
	blocks, grounds := map[block]int{}, map[block]int{}
	for i, c := range r.Cells {
		b := of(c)
		if _, ok := blocks[b]; !ok {
			if blocks[b] = i + 1; c.Baseline {
				blocks[b] = 0
			}
		}
		b.label = ""
		if _, ok := grounds[b]; !ok {
			grounds[b] = i
		}
	}
	slices.SortStableFunc(r.Cells, func(a, b analysis.Cell) int {
		x, y := of(a), of(b)
		byMode := cmp.Compare(blocks[x], blocks[y])
		x.label, y.label = "", ""
		return cmp.Or(cmp.Compare(grounds[x], grounds[y]), byMode,
			at(r.Plan.Sweep, a.Point)-at(r.Plan.Sweep, b.Point))
	})
}

func at(s *sample.Sweep, point string) int {
	return slices.IndexFunc(s.Points, func(p sample.Point) bool { return p.Name == point })
}

func overIPv4(j *analysis.Run) func(i int) (b int, ok bool) {
	return func(i int) (int, bool) {
		c := j.Series[i].Cell
		m, _ := mode.Find(c.Mode)
		r, ok := m.Route(c.From, c.To)
		if !ok || !r.OnRequest() {
			return 0, false
		}
		c.To = r.To.Over4()
		b := slices.IndexFunc(j.Series, func(o *analysis.Series) bool { return o.Cell == c })
		return b, b >= 0
	}
}

func curves(j *analysis.Run, against func(i int) (b int, ok bool)) []Curve {
	out := []Curve{}
	s := j.File.Header.Plan.Sweep
	if s == nil {
		return out
	}
	for i, x := range j.Series {
		b, ok := against(i)
		if !ok || b == i || x.Cell.Control || j.Failed(i) || j.Failed(b) {
			continue
		}
		c, metric := x.Cell, analysis.PrimaryOf(x.Load, x.Cell.Shape)
		ratio := j.Against(i, b, metric, j.Series[b].Cell.Name())
		if ratio.N == 0 {
			continue
		}
		of := Curve{Label: analysis.Label(c), Mode: c.Mode, From: c.From,
			To: c.To, Load: c.Load, Tune: c.Tune, On: c.On, Metric: metric}
		k := slices.IndexFunc(out, of.like)
		if k < 0 {
			k = len(out)
			out = append(out, of)
		}
		out[k].Points = append(out[k].Points,
			Point{Point: c.Point, Value: s.Points[at(s, c.Point)].Value,
				Band: j.BandOf(i, b, metric, confidence(len(s.Points))), Ratio: ratio})
	}
	for k := range out {
		slices.SortFunc(out[k].Points, func(a, b Point) int {
			return cmp.Compare(a.Value, b.Value)
		})
		out[k].Knee = KneeOf(out[k].Points)
	}
	return out
}

func (c Curve) like(o Curve) bool { return c.sameGround(o) && c.Label == o.Label }

func (c Curve) sameGround(o Curve) bool {
	return c.From == o.From && c.Load == o.Load && c.On == o.On
}

// has reports whether a cell is one of the curve's points.
func (c Curve) has(x analysis.Cell) bool {
	return c.Mode == x.Mode && c.From == x.From && c.To == x.To && c.Load == x.Load &&
		c.Tune == x.Tune && c.On == x.On
}

// Meant returns the sentence that explains the intervals of many points, or "" without a sweep.
func Meant(p analysis.Plan) string {
	if p.Sweep == nil {
		return ""
	}
	n := len(p.Sweep.Points)
	const percent = 100
	return fmt.Sprintf(
		"Each point has an interval of 95 %%. Statements about a whole curve hold for 95 %% of curves: each of its %d points "+
			"is judged with a confidence of %.4g %%.", n, percent*confidence(n))
}

// Shape is the region of a curve whose points cost more than what counts as the same.
type Shape string

const (
	Every   Shape = "every"   // all certain points cost more, including the first and the last
	From    Shape = "from"    // they cost more from a value on
	UpTo    Shape = "up to"   // they cost more up to a value
	Several Shape = "several" // they cost more, then less, then more, or the reverse
	None    Shape = "none"    // certainly none costs more
	Unclear Shape = "unclear" // none certainly costs more, but some may
)

// Knee is the point from which on, or up to which, a curve costs more.
type Knee struct {
	Shape Shape `json:"shape"`
	// At is the nearest point to the knee at which the curve certainly costs more, and Beside the
	// nearest one on the other side at which it certainly does not. Only From and UpTo have them;
	// Beside may be absent.
	At     string `json:"at,omitempty"`
	Beside string `json:"beside,omitempty"`
	// The points by their certain band.
	Costs   []string `json:"costs,omitempty"`
	Within  []string `json:"within,omitempty"`
	Unknown []string `json:"unclear,omitempty"`
}

// KneeOf returns the knee of a curve with these points, in the order of their values.
func KneeOf(points []Point) Knee {
	var k Knee
	for _, p := range points {
		switch p.Band {
		case analysis.Beyond:
			k.Costs = append(k.Costs, p.Point)
		case analysis.Within:
			k.Within = append(k.Within, p.Point)
		default:
			k.Unknown = append(k.Unknown, p.Point)
		}
	}
	is := func(b analysis.Band) func(Point) bool {
		return func(p Point) bool { return p.Band == b }
	}
	first, firstWithin := slices.IndexFunc(points, is(analysis.Beyond)),
		slices.IndexFunc(points, is(analysis.Within))
	last, lastWithin := lastIndex(points, analysis.Beyond), lastIndex(points, analysis.Within)
	switch {
	case first < 0 && len(k.Unknown) == 0:
		k.Shape = None
	case first < 0:
		k.Shape = Unclear
	case firstWithin < 0 && first == 0 && last == len(points)-1:
		k.Shape = Every
	case lastWithin < first && (first > 0 || firstWithin >= 0):
		k.Shape, k.At = From, points[first].Point
		if lastWithin >= 0 {
			k.Beside = points[lastWithin].Point
		}
	case firstWithin < 0 || firstWithin > last:
		k.Shape, k.At = UpTo, points[last].Point
		if firstWithin >= 0 {
			k.Beside = points[firstWithin].Point
		}
	default:
		k.Shape = Several
	}
	return k
}

func lastIndex(points []Point, b analysis.Band) int {
	for i := len(points) - 1; i >= 0; i-- {
		if points[i].Band == b {
			return i
		}
	}
	return -1
}
