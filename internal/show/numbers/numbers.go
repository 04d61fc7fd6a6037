// Package numbers lists the figures of a judged document one by one, with all that identifies each,
// for formats that are tables of numbers. Figures are in base units.
package numbers

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/ladder"
	"github.com/bridgetoll/bridgetoll/internal/judge/mesh"
	"github.com/bridgetoll/bridgetoll/internal/judge/predict"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// Cells yields the figures of a run's cells.
func Cells(r *analysis.Report) iter.Seq[document.Figure] {
	return func(yield func(document.Figure) bool) { (&list{yield, true}).cells(r) }
}

// Ladder yields the figures of a ladder's cells and of its steps.
func Ladder(r *ladder.Report) iter.Seq[document.Figure] {
	return func(yield func(document.Figure) bool) {
		l := list{yield, true}
		l.cells(r.Base())
		l.steps(r.Steps)
	}
}

// Mesh yields the figures of every link that the report has, the typical figures of all links, the
// effect of each node, and what is slow.
func Mesh(m *mesh.Mesh) iter.Seq[document.Figure] {
	return func(yield func(document.Figure) bool) { (&list{yield, true}).mesh(m) }
}

// Prediction yields the figures of a prediction.
func Prediction(p *predict.Prediction) iter.Seq[document.Figure] {
	return func(yield func(document.Figure) bool) { (&list{yield, true}).prediction(p) }
}

type list struct {
	yield func(document.Figure) bool
	on    bool
}

func (l *list) add(f document.Figure) { l.on = l.on && l.yield(f) }

// enclosed returns f, without an interval if that is only the value.
func enclosed(f document.Figure) document.Figure {
	f.Low, f.High = Bounds(*f.Low, *f.High, f.N)
	return f
}

// Bounds returns an interval's bounds, or nil if n values have no interval, so that the bounds are
// equal.
func Bounds(low, high float64, n int) (from, to *float64) {
	if n < 2 && low == high {
		return nil, nil
	}
	return &low, &high
}

func (l *list) cells(r *analysis.Report) {
	study := studyOf(r)
	for _, c := range r.Cells {
		of := document.Figure{Subject: cellOf(study, c.Cell)}
		of.Baseline, of.LimitedBy = c.Baseline, c.LimitedBy
		var codes []string
		for _, w := range c.Warnings {
			codes = append(codes, w.Code)
		}
		names := slices.Sorted(maps.Keys(c.Metrics))
		slices.SortStableFunc(names, func(a, b string) int {
			return later(a, c.Primary) - later(b, c.Primary)
		})
		for _, name := range names {
			l.metric(of, name, c.Metrics[name], strings.Join(codes, " "))
		}
		l.cpu(of, c.CPU)
	}
	for _, x := range r.Failed {
		f := document.Figure{Subject: cellOf(study, x.Cell)}
		f.Statistic, f.Note = document.NoFigure, strings.TrimSuffix(x.Reason+": "+x.Evidence, ": ")
		l.add(f)
	}
}

func later(name, first string) int {
	if name == first {
		return 0
	}
	return 1
}

// studyOf returns the run's study, or the kind of a run that shares its study with others, whose
// figures may be read together.
func studyOf(r *analysis.Report) sample.Study {
	has := func(load string) bool {
		return slices.ContainsFunc(r.Plan.Loads, func(l sample.Load) bool { return l.Kind == load })
	}
	endpoints := r.Study == sample.StudyEndpoints
	switch {
	case endpoints && has(workload.Exec):
		return "routes"
	case endpoints && has(workload.SQL):
		return "sql"
	case endpoints:
		return "stream"
	case r.Study == sample.StudyCompare && has(workload.Exec):
		return "run"
	}
	return r.Study
}

func cellOf(study sample.Study, c sample.Cell) document.Subject {
	out := document.Subject{Study: string(study), Mode: c.Name(), Label: analysis.Label(c),
		From:    string(c.From),
		To:      string(c.To),
		On:      c.On,
		Load:    c.Load,
		Tune:    string(c.Tune),
		Point:   c.Point,
		Pin:     c.Pin,
		Servers: 1, Clients: 1, ClientProcs: 1}
	if c.Shape.Crowd() {
		out.Servers, out.Clients, out.ClientProcs = c.Shape.Servers, c.Shape.Clients, c.Shape.Procs
	}
	return out
}

func (l *list) metric(f document.Figure, name string, m analysis.Metric, notes string) {
	f.Metric, f.Unit, f.Higher = name, m.Unit, m.Higher
	for i, x := range m.Rounds {
		f := f
		f.Statistic, f.Round, f.Value = document.Round, i, x
		if i < len(m.At) {
			f.Round = m.At[i]
		}
		l.add(f)
	}
	sum := f
	sum.Statistic, sum.Value, sum.Low, sum.High, sum.N, sum.Note = document.Median, m.Median,
		&m.Low, &m.High, len(m.Rounds), notes
	l.add(enclosed(sum))
	if m.Merged != nil {
		f := f
		f.Statistic, f.Value = document.Merged, *m.Merged
		l.add(f)
	}
	l.ratio(f, document.Ratio, m.Ratio)
	if p := m.Price; p != nil {
		against := ""
		if m.Ratio != nil {
			against = m.Ratio.To
		}
		l.price(f, document.Added, *p, against)
	}
	l.ratio(f, document.Scaling, m.Scaling)
}

func (l *list) ratio(f document.Figure, s document.Statistic, x *analysis.Ratio) {
	if x == nil {
		return
	}
	f.Unit, f.Statistic, f.Value, f.Low, f.High, f.N, f.Epochs, f.Against, f.Verdict = analysis.RatioUnit, s, x.Median, &x.Low, &x.High, x.N, x.Epochs, x.To, string(x.Verdict)
	l.add(enclosed(f))
}

func (l *list) price(f document.Figure, s document.Statistic, p analysis.Price, against string) {
	f.Unit, f.Statistic, f.Value, f.Low, f.High, f.N, f.Epochs, f.Against, f.Verdict = p.Unit, s,
		p.Median, &p.Low, &p.High, p.N, p.Epochs, against, string(p.Verdict)
	l.add(enclosed(f))
}

// cpu lists the parts of the CPU time, or nothing if none was metered.
func (l *list) cpu(f document.Figure, c analysis.CPUSplit) {
	if c.Sum() == 0 {
		return
	}
	f.Unit, f.Statistic = c.Unit, document.Merged
	for _, x := range []struct {
		name  string
		value float64
	}{{"cpu_client", c.Client}, {"cpu_server", c.Server}, {"cpu_proxy", c.Proxy},
		{"cpu_rest", c.Rest}} {
		f.Metric, f.Value = x.name, x.value
		l.add(f)
	}
}

func (l *list) steps(steps []ladder.Step) {
	for _, s := range steps {
		for _, name := range slices.Sorted(maps.Keys(s.Prices)) {
			f := document.Figure{Subject: cellOf(
				sample.StudyLadder, sample.Cell{Mode: s.Mode, From: s.From, To: s.To, On: s.On}), Metric: name,
				Note: s.Part}
			l.price(f, document.Part, s.Prices[name], s.Below)
		}
		if s.Trace != nil {
			l.trace(sample.StudyLadder, *s.Trace)
		}
	}
}

func (l *list) prediction(p *predict.Prediction) {
	for _, r := range p.Rows {
		of := document.Figure{Subject: cellOf(
			"predict", sample.Cell{Mode: mode.Name(r.Mode), From: mode.Placement(r.From),
				To: mode.Target(r.To), Tune: mode.Tunes(r.Tune), On: r.On})}
		of.Baseline = r.Baseline
		for _, x := range []struct {
			name string
			q    *predict.Quantity
		}{{predict.Page, r.Page}, {predict.CPU, r.CPU}, {predict.StreamCPU, r.StreamCPU}} {
			if x.q == nil {
				continue
			}
			f := of
			f.Metric, f.Unit, f.Statistic, f.Value, f.Low, f.High, f.N = x.name, x.q.Unit,
				document.Median, x.q.Median, &x.q.Low, &x.q.High, x.q.N
			l.add(enclosed(f))
			if over, ok := r.Over[x.name]; ok && !r.Baseline {
				l.price(f, document.Added, over, p.Baseline)
			}
		}
	}
}

// Run describes a run as a whole, for formats of figures.
func Run(r *analysis.Report) *document.Run {
	e, p := r.Environment, r.Plan
	out := &document.Run{Study: string(studyOf(r)), Tool: e.Tool, Kernel: e.Kernel,
		CPU: e.CPUModel, CPUs: e.CPUs, Virtualization: e.Virtualization, Baseline: p.Baseline,
		EndedBy: p.EndedBy, Rounds: p.Rounds, Elapsed: p.Elapsed,
		Measured: len(r.Cells), Failed: len(r.Failed), Skipped: len(r.Skipped)}
	if p.Wire != nil {
		out.Wire = p.Wire.String()
	}
	for _, g := range r.Control.Groups {
		metric := analysis.PrimaryOf(p.Loads.Of(g.Load), g.Shape)
		if x, ok := g.Floor[metric]; ok {
			of := sample.Cell{From: mode.Placement(g.From), On: g.On, Load: g.Load, Point: g.Point,
				Pin: g.Pin, Shape: g.Shape}
			out.Floors = append(out.Floors, document.Figure{
				Subject: cellOf(studyOf(r), of), Metric: metric, Value: x})
		}
	}
	return out
}
