package analysis

import (
	"cmp"
	"fmt"
	"math"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Figure is one side of a ratio: a cell's metric, divided by Share. An empty Cell.On matches any
// backend, an empty Cell.Pin any placement. The zero Shape equals 1×1×1.
type Figure struct {
	Cell   sample.Cell
	Metric string
	Share  int // 0 means 1
}

func (f Figure) share() float64 { return float64(max(1, f.Share)) }

// Pairing compares any two cells of a file, whatever the run's own baseline was.
type Pairing struct{ j *Run }

// Pair prepares a results file for comparisons.
func Pair(f *sample.File) *Pairing { return &Pairing{Open(f)} }

// Between returns the ratio of one figure to another; ok is false if the file lacks one of them or
// they have no pairs. The noise floor is the wider one of the two groups.
func (p *Pairing) Between(of, to Figure) (r Ratio, ok bool) {
	for i, s := range p.j.Series {
		if !p.holds(i, of.Cell) {
			continue
		}
		base := to.Cell
		base.On, base.Pin = s.Cell.On, s.Cell.Pin
		for b := range p.j.Series {
			if !p.holds(b, base) {
				continue
			}
			if r = p.ratio(i, b, of, to); r.N > 0 {
				return r, true
			}
		}
	}
	return Ratio{}, false
}

func (p *Pairing) ratio(i, b int, of, to Figure) Ratio {
	s, base := p.j.Series[i], p.j.Series[b]
	by := to.share() / of.share()
	var x compared
	if of.Metric == to.Metric {
		x = p.j.compare(i, b, of.Metric)
	}
	varies := x.Summary
	if x.slices.Pairs > 0 {
		x.slices.Centre += math.Log(by)
		x.Summary = x.slices.Ratio()
	} else {
		xs := stats.Ratios(s.byRound(of.Metric), base.byRound(to.Metric))
		for k := range xs {
			xs[k] *= by
		}
		x.Summary = stats.Summarize(xs)
	}
	if x.varies {
		x.Low, x.High = varies.Low*by, varies.High*by
	}
	out := ratioOf(x, Label(base.Cell))
	if x.N > 0 {
		out.Verdict = p.j.verdict(x, p.noise(of.Metric, s.Cell, base.Cell),
			higherIsBetter(s.Load, of.Metric))
	}
	return out
}

// noise returns the larger noise of the two groups or, if neither has a control, the largest of
// that load in the file.
func (p *Pairing) noise(metric string, a, b sample.Cell) noise {
	if n := p.j.noise(groupOf(a), metric).or(p.j.noise(groupOf(b), metric)); !math.IsNaN(n.floor) {
		return n
	}
	out := unknown
	for g := range p.j.noises {
		if g.load == a.Load {
			out = out.or(p.j.noise(g, metric))
		}
	}
	return out
}

func (n noise) or(o noise) noise {
	return noise{widest(n.floor, o.floor), widest(n.bias, o.bias)}
}

func widest(a, b float64) float64 {
	if math.IsNaN(a) || b > a {
		return b
	}
	return a
}

func (p *Pairing) holds(i int, c sample.Cell) bool {
	return same(p.j.Series[i].Cell, c) && !p.j.Failed(i)
}

func same(have, want sample.Cell) bool {
	have.Shape, want.Shape = crowd(have.Shape), crowd(want.Shape)
	want.On, want.Pin = cmp.Or(want.On, have.On), cmp.Or(want.Pin, have.Pin)
	return have == want
}

func crowd(s sample.Shape) sample.Shape {
	if !s.Crowd() {
		return sample.Shape{Servers: 1, Clients: 1, Procs: 1}
	}
	return s
}

// Missing returns why a planned cell has no result, or "" if it has one or was not planned.
func (p *Pairing) Missing(c sample.Cell) string {
	for i, s := range p.j.Series {
		if !same(s.Cell, c) {
			continue
		}
		if p.holds(i, c) {
			return ""
		}
		f := p.j.failure(i)
		if f.Evidence != "" {
			return f.Reason + ": " + f.Evidence
		}
		return f.Reason
	}
	for _, s := range p.j.File.Header.Plan.Skipped {
		if s.Mode == c.Mode && s.Tune == c.Tune && (s.From == "" || s.From == c.From) &&
			(s.To == "" || s.To == c.To) && (s.Load == "" || s.Load == c.Load) {
			return s.Reason
		}
	}
	return ""
}

// Pin returns the placement of the first cell with a result that c matches, or "".
func (p *Pairing) Pin(c sample.Cell) string {
	for i, s := range p.j.Series {
		if p.holds(i, c) {
			return s.Cell.Pin
		}
	}
	return ""
}

// Conditions returns c's load, path and wire, which can differ between measurements of a cell.
func (p *Pairing) Conditions(c sample.Cell) (l sample.Load, path sample.Path, wire sample.Wire) {
	for _, s := range p.j.Series {
		if same(s.Cell, c) {
			path, _ = p.j.File.Header.PathOf(s.Cell)
			break
		}
	}
	if w := p.j.File.Header.Plan.Wire; w != nil {
		wire = *w
	}
	return p.j.File.Header.Plan.Loads.At(c), path, wire
}

// Name returns a cell's mode, placement and, for a crowd, shape.
func Name(c sample.Cell) string {
	n := Label(c) + " from " + c.From.Words()
	if c.Shape.Crowd() {
		n += fmt.Sprintf(" (%s)", c.Shape)
	}
	if c.Point != "" {
		n += " at " + c.Point
	}
	return n
}
