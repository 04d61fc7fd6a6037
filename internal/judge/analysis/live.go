package analysis

import (
	"cmp"
	"maps"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Live judges a run while it is made. It processes each visit once and, of sliced cells, keeps only
// what their ratio needs.
type Live struct {
	j  *Run
	to Partners
	// NameBoth adds the ratio's other cell to the labels of standings.
	NameBoth bool
	// by pair of cells and round
	epochs map[[2]int]map[int]stats.Epoch
}

// Partners returns a function from each cell to the cell that it is compared with.
type Partners func(*Run) func(i int) (b int, ok bool)

// ToBaseline maps each cell to the baseline of its group.
func ToBaseline(j *Run) func(i int) (b int, ok bool) { return j.BaselineOf }

// NewLive returns a judge of a run with this plan and these paths that has no visits yet.
func NewLive(h sample.Header, to Partners) *Live {
	return &Live{j: emptyRun(&sample.File{Header: sample.Header{Plan: h.Plan, Paths: h.Paths}}), to: to,
		epochs: map[[2]int]map[int]stats.Epoch{}}
}

// Add adds a visit. It ignores visits of a mesh.
func (l *Live) Add(v sample.Visit) {
	if v.Cell < 0 || v.Cell >= len(l.j.Series) { // a visit of a mesh
		return
	}
	p, s := l.j.File.Header.Plan, l.j.Series[v.Cell]
	l.j.troubles[v.Cell].add(v, p.Counts(v))
	if v.Trace != nil && p.Counts(v) {
		return
	}
	s.all = append(s.all, &v)
	if !p.Counts(v) {
		return
	}
	if v.Slices == nil {
		s.add(&v)
		return
	}
	if rate := Rate(s.Load); windowed[rate] != "" {
		f := workload.FiguresOf(v, s.Load, s.Cell.Shape)
		s.set(rate, v.Round, f.Values[rate])
	}
	s.addSlices(&v)
	for _, byRound := range l.epochs {
		delete(byRound, v.Round)
	}
}

// Standing is a cell's ratio so far in its load's primary metric.
type Standing struct {
	Cell  sample.Cell
	Label string
	Ratio Ratio
	// Higher reports whether a higher ratio is better.
	Higher bool
}

// Standings returns the cells that have a ratio, in the plan's order, without controls.
func (l *Live) Standings() []Standing {
	var out []Standing
	partner := l.to(l.j)
	for i, s := range l.j.Series {
		b, ok := partner(i)
		if s.Cell.Control || !ok || b == i || l.j.Failed(i) {
			continue
		}
		x := l.compare(i, b)
		if x.N == 0 {
			continue
		}
		if from := l.j.varies(i, b, l.metric(i)); from != "" && !x.varies {
			x.varies = true
			x.Low, x.High = l.j.rangeOf(i, b, from)
		}
		r := ratioOf(x, Label(l.j.Series[b].Cell))
		higher := higherIsBetter(s.Load, l.metric(i))
		r.Verdict = l.j.verdict(x, l.noise(i), higher)
		label := Label(s.Cell)
		if l.NameBoth {
			label += "/" + r.To
		}
		out = append(out, Standing{s.Cell, label, r, higher})
	}
	return out
}

// Known reports for each cell whether a run that looks before its end may stop measuring it: its
// primary ratio is certain enough or, by rounds, as precise as requested. A ratio whose interval is
// that of repeated runs is known once this run alone is, because measuring longer does not narrow
// it. Baselines and failed cells are known. The only route to an endpoint is known once its own
// median is. A cell with a partner is not known before it has good visits, nor ever in a run that
// traces, whose other epochs take the whole budget.
func (l *Live) Known() []bool {
	out := make([]bool, len(l.j.Series))
	partner := l.to(l.j)
	for i := range out {
		b, ok := partner(i)
		switch {
		case l.broken(i):
			out[i] = true
		case ok && b != i:
			out[i] = l.broken(b) || l.known(i, b, l.compare(i, b))
		case l.alone():
			out[i] = l.known(i, i, compared{Summary: stats.Summarize(
				Ordered(l.j.Series[i].Values[l.metric(i)]))})
		default:
			out[i] = true
		}
	}
	return out
}

func (l *Live) known(i, b int, x compared) bool {
	p := l.j.File.Header.Plan
	precise := x.N > 0 && x.HalfWidth() <= p.Precision*x.Median
	switch {
	case p.Trace != nil:
		return false
	case x.N == 0:
		return l.j.troubles[i].good >= stats.MinValues
	case p.Sweep != nil:
		return l.placed(i, b, x)
	case x.slices.Pairs > 0:
		return x.alone.Settled(l.noise(i).bias, cmp.Or(p.Same, p.Precision), p.Precision)
	case x.N < stats.MinValues || precise:
		return precise && x.N >= stats.MinValues
	case p.Same == 0:
		return false
	}
	x.Low, x.High = x.stretched()
	return l.j.verdict(x, l.noise(i), true) != stats.Unclear
}

func (l *Live) broken(i int) bool {
	t := l.j.troubles[i]
	return t.fatal() && (t.good+t.bad > 0 || t.starved >= brokenRun)
}

func (l *Live) alone() bool {
	p := l.j.File.Header.Plan
	return p.Foreign() && len(p.Cells) == 1
}

func (l *Live) metric(i int) string {
	return PrimaryOf(l.j.Series[i].Load, l.j.Series[i].Cell.Shape)
}

func (l *Live) noise(i int) noise {
	g := groupOf(l.j.Series[i].Cell)
	c, ok := l.j.ctl[g]
	b, has := l.j.base[g]
	if !ok || !has || l.broken(c) {
		return unknown
	}
	x := l.compare(c, b)
	if x.N == 0 {
		return unknown
	}
	return noise{stats.Floor(x.Summary), x.slices.Bias()}
}

// compare does what Run.compare does for the primary metric, but pairs each epoch only once.
func (l *Live) compare(i, b int) compared {
	s := l.j.Series[i]
	if s.slices == nil || l.j.Series[b].slices == nil {
		return l.j.compare(i, b, l.metric(i))
	}
	prior := l.j.prior(i, l.metric(i), l.pairs)
	alone := stats.Moderate(l.pairs(i, b), prior)
	if e := l.j.withRepeats(alone, i, b, l.metric(i)); e.Pairs > 0 {
		return compared{Summary: e.Ratio(), slices: e, alone: alone}
	}
	return l.j.compare(i, b, l.metric(i))
}

func (l *Live) pairs(i, b int) []stats.Epoch {
	s, at := l.j.Series[i], [2]int{i, b}
	if l.epochs[at] == nil {
		l.epochs[at] = map[int]stats.Epoch{}
	}
	var epochs []stats.Epoch
	for _, round := range slices.Sorted(maps.Keys(s.slices)) {
		e, ok := l.epochs[at][round]
		if !ok {
			e = l.j.epoch(i, b, round, l.metric(i))
			l.epochs[at][round] = e
		}
		epochs = append(epochs, e)
	}
	return epochs
}
