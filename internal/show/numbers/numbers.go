// Package numbers lists the figures of a judged document one by one, each with everything that
// identifies it, for formats that are tables of numbers. Figures are in base units.
package numbers

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/ladder"
	"github.com/bridgetoll/bridgetoll/internal/judge/mesh"
	"github.com/bridgetoll/bridgetoll/internal/judge/predict"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Cell identifies what a figure is about. In a mesh that is a link, from its client's node to its
// server's, a node (From), or the whole mesh.
type Cell struct {
	Study                         string // the command's name: compare, ladder, …
	Mode, Label                   string // the label includes the target and the tune, as in tables
	From, To, On, Load, Tune      string
	Point                         string // of a sweep
	Pin                           string // sample.PinFar or sample.PinNear
	Servers, Clients, ClientProcs int    // 1 each, except in a crowd
	Baseline                      bool
	LimitedBy                     string
}

// Statistic says how a figure sums up its metric.
type Statistic string

// The statistics.
const (
	Round   Statistic = "round"   // one round; for a sliced load the median of its slices
	Median  Statistic = "median"  // median over rounds, with its interval
	Merged  Statistic = "merged"  // all rounds together
	Ratio   Statistic = "ratio"   // ratio to the baseline
	Added   Statistic = "added"   // difference from the baseline
	Scaling Statistic = "scaling" // ratio to the same mode's smallest crowd
	Part    Statistic = "part"    // cost of a ladder's rung over the rung below

	Typical Statistic = "typical" // of a mesh's links; next are its fastest and slowest one
	Fastest Statistic = "fastest"
	Slowest Statistic = "slowest"
	Effect  Statistic = "effect" // ratio of a node's links to typical links
	Fault   Statistic = "fault"  // ratio or rate of something that is slow or loses packets

	Failed Statistic = "failed" // no figure; Note has the reason
)

// RatioUnit is the unit of ratios.
const RatioUnit = analysis.RatioUnit

// Figure is one number.
type Figure struct {
	Cell
	Metric, Unit string
	Higher       bool // higher values are better
	Statistic    Statistic
	Round        int // from 0, as in the results file
	Value        float64
	Low, High    *float64 // 95 % interval; nil: none
	N, Epochs    int      // as in analysis.Ratio; 0: not known
	Against      string   // what it is compared with
	Verdict      string
	Note         string // the codes of a cell's warnings, or why it failed
}

// Of yields the figures of a judge.Report or a *predict.Prediction. It yields nothing for any other
// value.
func Of(value any) iter.Seq[Figure] {
	return func(yield func(Figure) bool) {
		l := list{yield, true}
		switch v := value.(type) {
		case *mesh.Report:
			l.mesh(v.Mesh)
		case *ladder.Report:
			l.cells(v.Base())
			l.steps(v.Steps)
		case judge.Report:
			l.cells(v.Base())
		case *predict.Prediction:
			l.prediction(v)
		}
	}
}

// list yields figures until the consumer stops.
type list struct {
	yield func(Figure) bool
	on    bool
}

func (l *list) add(f Figure) { l.on = l.on && l.yield(f) }

func (l *list) cells(r *analysis.Report) {
	for _, c := range r.Cells {
		of := Figure{Cell: cellOf(r.Study, c)}
		of.Baseline, of.LimitedBy = c.Baseline, c.LimitedBy
		var codes []string
		for _, w := range c.Warnings {
			codes = append(codes, w.Code)
		}
		names := slices.Sorted(maps.Keys(c.Metrics))
		slices.SortStableFunc(names, func(a, b string) int { return later(a, c.Primary) - later(b, c.Primary) })
		for _, name := range names {
			l.metric(of, name, c.Metrics[name], strings.Join(codes, " "))
		}
		l.cpu(of, c.CPU)
	}
	for _, x := range r.Failed {
		f := Figure{Cell: cellOf(r.Study, analysis.CellOf(x.Cell))}
		f.Statistic, f.Note = Failed, strings.TrimSuffix(x.Reason+": "+x.Evidence, ": ")
		l.add(f)
	}
}

// later returns a sort key that puts first before all other names.
func later(name, first string) int {
	if name == first {
		return 0
	}
	return 1
}

func cellOf(study string, c analysis.Cell) Cell {
	out := Cell{Study: study, Mode: c.Mode, Label: c.Label(), From: c.From, To: c.To, On: c.On, Load: c.Load, Tune: c.Tune, Point: c.Point, Pin: c.Pin,
		Servers: 1, Clients: 1, ClientProcs: 1}
	if study == "" {
		out.Study = "compare"
	}
	if c.Shape.Crowd() {
		out.Servers, out.Clients, out.ClientProcs = c.Shape.Servers, c.Shape.Clients, c.Shape.Procs
	}
	return out
}

// metric lists a metric's rounds and the statistics that sum them up.
func (l *list) metric(f Figure, name string, m analysis.Metric, notes string) {
	f.Metric, f.Unit, f.Higher = name, m.Unit, m.Higher
	for i, x := range m.Rounds {
		f := f
		f.Statistic, f.Round, f.Value = Round, i, x
		if i < len(m.At) {
			f.Round = m.At[i]
		}
		l.add(f)
	}
	sum := f
	sum.Statistic, sum.Value, sum.Low, sum.High, sum.N, sum.Note = Median, m.Median, &m.Low, &m.High, len(m.Rounds), notes
	l.add(sum)
	if m.Merged != nil {
		f := f
		f.Statistic, f.Value = Merged, *m.Merged
		l.add(f)
	}
	l.ratio(f, Ratio, m.Ratio)
	if p := m.Price; p != nil {
		against := ""
		if m.Ratio != nil {
			against = m.Ratio.To
		}
		l.price(f, Added, *p, against)
	}
	l.ratio(f, Scaling, m.Scaling)
}

func (l *list) ratio(f Figure, s Statistic, x *analysis.Ratio) {
	if x == nil {
		return
	}
	f.Unit, f.Statistic, f.Value, f.Low, f.High, f.N, f.Epochs, f.Against, f.Verdict = RatioUnit, s, x.Median, &x.Low, &x.High, x.N, x.Epochs, x.To, string(x.Verdict)
	l.add(f)
}

func (l *list) price(f Figure, s Statistic, p analysis.Price, against string) {
	f.Unit, f.Statistic, f.Value, f.Low, f.High, f.N, f.Epochs, f.Against, f.Verdict = p.Unit, s, p.Median, &p.Low, &p.High, p.N, p.Epochs, against, string(p.Verdict)
	l.add(f)
}

// cpu lists who spent the CPU time. It lists nothing if no CPU time was metered.
func (l *list) cpu(f Figure, c analysis.CPUSplit) {
	if c.Client+c.Server+c.Proxy+c.Rest == 0 {
		return
	}
	f.Unit, f.Statistic = c.Unit, Merged
	for _, x := range []struct {
		name  string
		value float64
	}{{"cpu_client", c.Client}, {"cpu_server", c.Server}, {"cpu_proxy", c.Proxy}, {"cpu_rest", c.Rest}} {
		f.Metric, f.Value = x.name, x.value
		l.add(f)
	}
}

func (l *list) steps(steps []ladder.Step) {
	for _, s := range steps {
		for _, name := range slices.Sorted(maps.Keys(s.Prices)) {
			f := Figure{Cell: cellOf(sample.StudyLadder, analysis.Cell{Mode: s.Mode, From: s.From, To: s.To, On: s.On}), Metric: name, Note: s.Part}
			l.price(f, Part, s.Prices[name], s.Below)
		}
	}
}

func (l *list) prediction(p *predict.Prediction) {
	for _, r := range p.Rows {
		of := Figure{Cell: cellOf("predict", analysis.Cell{Mode: r.Mode, From: r.From, To: r.To, Tune: r.Tune, On: r.On})}
		of.Baseline = r.Baseline
		for _, x := range []struct {
			name string
			q    *predict.Quantity
		}{{predict.Page, r.Page}, {predict.CPU, r.CPU}, {predict.StreamCPU, r.StreamCPU}} {
			if x.q == nil {
				continue
			}
			f := of
			f.Metric, f.Unit, f.Statistic, f.Value, f.Low, f.High, f.N = x.name, x.q.Unit, Median, x.q.Median, &x.q.Low, &x.q.High, x.q.N
			l.add(f)
			if over, ok := r.Over[x.name]; ok && !r.Baseline {
				l.price(f, Added, over, p.Baseline)
			}
		}
	}
}
