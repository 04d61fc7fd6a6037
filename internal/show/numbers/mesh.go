package numbers

import (
	"maps"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/mesh"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

func (l *list) mesh(m *mesh.Mesh) {
	l.meshMode(m)
	if m.Beside != nil {
		l.meshMode(m.Beside)
	}
	l.costs(m)
}

// costs lists the ratios to the mesh in m.Beside.
func (l *list) costs(m *mesh.Mesh) {
	for _, name := range slices.Sorted(maps.Keys(m.Costs)) {
		c := m.Costs[name]
		f := document.Figure{Subject: cellOf(
			sample.StudyMesh, sample.Cell{Mode: mode.Name(m.Mode), On: m.On})}
		f.Metric, f.Load, f.Unit, f.Statistic, f.Against = name, c.Load, analysis.RatioUnit,
			document.Ratio, m.Beside.Mode
		all := f
		all.Value, all.Low, all.High, all.N = c.Ratio, c.Low, c.High, len(c.Links)
		l.add(all)
		for _, x := range c.Links {
			link := f
			link.From, link.To, link.Value, link.Low, link.High, link.Verdict = x.Nodes[0],
				x.Nodes[1], x.Ratio, x.Low, x.High, m.Say(x.Verdict)
			l.add(link)
		}
	}
}

// groups lists the figures of the groups that the nodes' labels form.
func (l *list) groups(of document.Figure, m *mesh.Mesh) {
	for _, g := range m.Groups {
		for _, name := range slices.Sorted(maps.Keys(g.Metrics)) {
			x := g.Metrics[name]
			f := of
			f.Metric, f.Unit, f.Higher, f.Load = name, m.Metrics[name].Unit, m.Metrics[name].Higher,
				m.Metrics[name].Load
			f.Statistic, f.Value, f.N, f.Note = document.Median, x.Median, x.Links,
				g.Label+": within"
			if g.Across {
				f.Note = g.Label + ": across"
			}
			if f.From, f.To = g.From, g.To; g.From != "" {
				f.From, f.To = mesh.ShortLabel(g.Label)+" "+g.From,
					mesh.ShortLabel(g.Label)+" "+g.To
			}
			l.add(f)
		}
	}
}

func (l *list) meshMode(m *mesh.Mesh) {
	of := document.Figure{Subject: cellOf(sample.StudyMesh,
		sample.Cell{Mode: mode.Name(m.Mode), On: m.On})}
	for _, name := range slices.Sorted(maps.Keys(m.Metrics)) {
		x := m.Metrics[name]
		f := of
		f.Metric, f.Unit, f.Higher, f.Load = name, x.Unit, x.Higher, x.Load
		for a, row := range x.Matrix {
			for b, value := range row {
				if value == nil || !sample.BothWays(x.Load) && b < a {
					continue
				}
				link := f
				link.From, link.To, link.Statistic, link.Value = m.Nodes[a].Name, m.Nodes[b].Name,
					document.Median, *value
				l.add(link)
			}
		}
		for _, s := range []struct {
			statistic document.Statistic
			value     float64
		}{{document.Typical, x.Typical}, {document.Fastest, x.Fastest}, {document.Median, x.Median},
			{document.Slowest, x.Slowest}} {
			f.Statistic, f.Value, f.N = s.statistic, s.value, x.Links
			l.add(f)
		}
	}
	for _, n := range m.Nodes {
		for _, name := range slices.Sorted(maps.Keys(n.Effects)) {
			e := n.Effects[name]
			f := of
			f.From, f.Metric, f.Unit, f.Statistic, f.Value, f.Low, f.High, f.N = n.Name, name,
				analysis.RatioUnit, document.Effect, e.Ratio, e.Low, e.High, e.Of
			l.add(f)
		}
	}
	l.groups(of, m)
	l.faults(of, m)
	for _, x := range m.Failed {
		f := of
		if x.Mode != "" {
			f.Mode = x.Mode
		}
		f.From, f.To, f.Load, f.Statistic, f.Note = x.Nodes[0], strings.Join(x.Nodes[1:], " "),
			x.Load, document.NoFigure, x.Reason
		l.add(f)
	}
}

func (l *list) faults(of document.Figure, m *mesh.Mesh) {
	for _, x := range m.Faults {
		f := of
		f.From, f.Metric, f.Statistic, f.Low, f.High, f.N, f.Verdict = strings.Join(x.Nodes, " "),
			x.Metric, document.Fault, x.Low, x.High, x.Of, x.Kind
		if x.Kind == mesh.FaultLink {
			f.From, f.To = x.Nodes[0], x.Nodes[1]
		}
		f.Unit, f.Value, f.Note = analysis.RatioUnit, x.Ratio, x.Way
		if x.RateOut != nil || x.RateIn != nil {
			f.Unit, f.Value = "1", 0
			for _, r := range []*float64{x.RateOut, x.RateIn} {
				if r != nil {
					f.Value = max(f.Value, *r)
				}
			}
		}
		l.add(f)
	}
}
