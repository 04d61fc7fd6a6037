package analysis

import (
	"cmp"
	"fmt"
	"math"

	"github.com/bridgetoll/bridgetoll/internal/sample"
	"github.com/bridgetoll/bridgetoll/internal/stats"
)

// Figure is one side of a ratio: a cell's metric, or what each of Share gets of
// it. Cell.On may be empty: whoever built it. The zero Shape and 1×1×1 are the
// same cell.
type Figure struct {
	Cell   sample.Cell
	Metric string
	Share  int // 0 is 1
}

func (f Figure) share() float64 { return float64(max(1, f.Share)) }

// Pairing holds any two cells of a file against each other, whatever the run's
// own baseline was.
type Pairing struct{ j *judged }

// Pair prepares a results file for any number of comparisons.
func Pair(f *sample.File) *Pairing { return &Pairing{collect(f)} }

// Between is one figure against another, paired by round; ok is false if the
// file lacks one of them or they have no round in common. The noise floor is
// the wider one of the two cells' groups.
func (p *Pairing) Between(of, to Figure) (r Ratio, ok bool) {
	for i, s := range p.j.series {
		if !p.holds(i, of.Cell) {
			continue
		}
		base := to.Cell
		base.On = s.cell.On
		for b := range p.j.series {
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
	s, base := p.j.series[i], p.j.series[b]
	xs := stats.Ratios(s.values[of.Metric], base.values[to.Metric])
	for k := range xs {
		xs[k] *= to.share() / of.share()
	}
	x := stats.Summarize(xs)
	out := Ratio{To: label(base.cell), Median: x.Median, Low: x.Low, High: x.High, N: x.N}
	if x.N > 0 {
		floor := p.floor(of.Metric, s.cell, base.cell)
		out.Verdict = stats.Judge(x, floor, p.j.file.Header.Plan.Precision, higherIsBetter(s.load, of.Metric))
	}
	return out
}

// floor is the wider noise floor of the two groups; where neither has a
// control, the widest that the file has for that load.
func (p *Pairing) floor(metric string, a, b sample.Cell) float64 {
	if f := widest(p.j.floor(groupOf(a), metric), p.j.floor(groupOf(b), metric)); !math.IsNaN(f) {
		return f
	}
	out := math.NaN()
	for g := range p.j.floors {
		if g.load == a.Load {
			out = widest(out, p.j.floor(g, metric))
		}
	}
	return out
}

// widest is the larger of two floors; NaN is one that is not known.
func widest(a, b float64) float64 {
	if math.IsNaN(a) || b > a {
		return b
	}
	return a
}

// holds reports whether series i is cell c and has a result.
func (p *Pairing) holds(i int, c sample.Cell) bool {
	return same(p.j.series[i].cell, c) && !p.j.failed(i)
}

// same reports whether have is the cell that is looked for.
func same(have, want sample.Cell) bool {
	have.Shape, want.Shape = crowd(have.Shape), crowd(want.Shape)
	want.On = cmp.Or(want.On, have.On)
	return have == want
}

func crowd(s sample.Shape) sample.Shape {
	if !s.Crowd() {
		return sample.Shape{Servers: 1, Clients: 1, Procs: 1}
	}
	return s
}

// Missing says why the file has no result for c: because it failed or could
// not be built there; "" if it has one or was never asked for.
func (p *Pairing) Missing(c sample.Cell) string {
	for i, s := range p.j.series {
		if !same(s.cell, c) {
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
	for _, s := range p.j.file.Header.Plan.Skipped {
		if s.Mode == c.Mode && s.Tune == c.Tune && (s.From == "" || s.From == c.From) && (s.To == "" || s.To == c.To) && (s.Load == "" || s.Load == c.Load) {
			return s.Reason
		}
	}
	return ""
}

// Conditions are what c was measured under that can differ from another
// measurement of the same cell.
func (p *Pairing) Conditions(c sample.Cell) (l sample.Load, path sample.Path, wire sample.Wire) {
	for _, s := range p.j.series {
		if same(s.cell, c) {
			path, _ = p.j.file.Header.PathOf(s.cell)
			break
		}
	}
	if w := p.j.file.Header.Plan.Wire; w != nil {
		wire = *w
	}
	return p.j.file.Header.Plan.LoadOf(c.Load), path, wire
}

// Name is the cell as text: mode, placement and, where it is a crowd, shape.
func Name(c sample.Cell) string {
	n := label(c) + " from " + c.From
	if c.Shape.Crowd() {
		n += fmt.Sprintf(" (%s)", c.Shape)
	}
	return n
}
