package view

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/mesh"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/chart"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/numbers"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

const meshLegend = "Each value is a link's median over the sweeps, with the drift common to all links removed. *: explained by a reported " +
	"fault; a node's slow links are those of its own faults, its links' and its group's. A node's ratio is the median over its links, relative to the typical node."

// mostFindings is the largest number of faults that are shown. The JSON has all.
const mostFindings = 20

const worstNodes = 10

func meshView(v *view) {
	v.title, v.command = "Which nodes and links are slow", "toll mesh"
	v.sections, v.summary = of(meshSections), of(meshSections)
	v.parts = func(judge.Report) []Part { return nil }
	v.figures = of(func(r *mesh.Report) iter.Seq[document.Figure] { return numbers.Mesh(r.Mesh) })
	v.charts = of(func(r *mesh.Report) []document.ChartGroup { return chart.Mesh(r.Mesh) })
}

func meshSections(of *mesh.Report) []document.Section {
	r, m := of.Base(), of.Mesh
	out := []document.Section{headOf(r, meshFacts(m), meshRun(r, m))}
	for _, t := range meshMetrics {
		for _, of := range bothOf(m) {
			x, ok := of.Metrics[t.metric]
			switch {
			case !ok:
			case t.none != nil && t.none(x.Slowest):
				out[len(out)-1].Add(faint("Retransmitted" + networkOf(m, of) + ": 0.00 % on all links."))
			default:
				s := linkSection(of, x, t)
				s.Title = document.Strongly(fmt.Sprintf(
					"%s%s, %s", t.title, networkOf(m, of), t.unit)).Then(
					"  "+describeLoad(r, x.Load), document.Faint)
				out = append(out, s)
			}
		}
		out = append(out, costSections(m, t)...)
	}
	for _, of := range bothOf(m) {
		out = append(out, nodeSections(of, networkOf(m, of))...)
	}
	out = append(out, groupSections(m)...)
	out = append(out, nodesAre(r, m)...)
	return append(out, meshFoot(r, m)...)
}

func meshFacts(m *mesh.Mesh) string {
	if m.Beside != nil {
		return fmt.Sprintf("%s on %s, modes %s and %s side by side", units.Plural(len(m.Nodes), "node"),
			m.On, m.Mode, m.Beside.Mode)
	}
	return fmt.Sprintf("%s on %s, mode %s", units.Plural(len(m.Nodes), "node"), m.On, m.Mode)
}

func meshRun(r *analysis.Report, m *mesh.Mesh) string {
	visits, failed := m.Visits()
	sweeps := units.Plural(m.Sweeps, "complete sweep")
	if failed > 0 {
		sweeps = units.Plural(m.Sweeps, "sweep")
	}
	text := fmt.Sprintf("%s of %s in %.0f s, %s", sweeps,
		units.Plural(len(m.Nodes)*(len(m.Nodes)-1)/2, "pair"), r.Plan.Elapsed, endedBy(r.Plan))
	if failed > 0 {
		text += fmt.Sprintf("; %d of %d visits %s a result", visits-failed, visits,
			units.Agree(visits-failed, "has", "have"))
	}
	return text
}

type meshMetric struct {
	metric, title, unit string
	text                func(float64) string
	upper               bool // the value is the same in both directions
	best, worst         string
	none                func(float64) bool // the worst value needs no table; nil: never
}

var meshMetrics = []meshMetric{
	{metric: workload.LatencyP50, title: "Round trips between nodes, median", unit: "µs",
		text: digits(micro), upper: true, best: "fastest", worst: "slowest"},
	{metric: workload.Throughput, title: "Throughput, from the row's node to the column's",
		unit: "Gbit/s", text: digits(giga), best: "fastest", worst: "slowest"},
	{metric: workload.RetransmissionRate,
		title: "Retransmitted, of what the row's node sends to the column's", unit: "%",
		text:  fixed(2, percent),
		best:  "least",
		worst: "most",
		none:  func(worst float64) bool { return worst < leastShown }},
}

// leastShown is the smallest retransmission rate that is not printed as none.
const leastShown = 0.00005

// linkSection shows the value of every link or, if not all fit, of the best and the worst.
func linkSection(m *mesh.Mesh, x mesh.Metric, t meshMetric) document.Section {
	var s document.Section
	instead := fmt.Sprintf("%d links: %s %s, median %s, %s %s (%s)", x.Links, t.best,
		t.text(x.Fastest), t.text(x.Median),
		t.worst, t.text(x.Slowest), t.link(x.SlowestLink))
	if len(x.Matrix) > 0 {
		s.Add(matrix(m, x, t, instead))
	} else {
		s.Add(paragraph(1, instead))
	}
	var text string
	noisy := x.NamedFrom != nil && x.Noise != nil
	switch {
	case x.OnePair && noisy:
		text = fmt.Sprintf(
			"A link's noise: %.1f %%; a direction is reported if %.2f times slower than the other.",
			100**x.Noise, *x.NamedFrom)
	case x.OnePair: // one pair has no typical value
		return s
	case noisy:
		text = fmt.Sprintf(
			"Typical: %s %s. A link's noise: %.1f %%; links are reported if %.2f times slower than their nodes explain.",
			t.text(x.Typical), t.unit, 100**x.Noise, *x.NamedFrom)
	default:
		text = fmt.Sprintf("Typical: %s %s.", t.text(x.Typical), t.unit)
	}
	s.Add(faint(text))
	return s
}

func (t meshMetric) link(nodes [2]string) string {
	if t.metric == workload.RetransmissionRate {
		return nodes[0] + " to " + nodes[1]
	}
	return nodes[0] + " and " + nodes[1]
}

// matrix returns a table of nodes by nodes. In the short layouts, numbers replace the columns'
// names.
func matrix(m *mesh.Mesh, x mesh.Metric, t meshMetric, instead string) document.Table {
	out := document.Table{Level: 1, Instead: instead, Columns: []document.Column{{}},
		Layouts: []document.Layout{{}, {Tight: true}, {Short: true}, {Short: true, Tight: true}}}
	rows, first := len(m.Nodes), 0
	if t.upper { // the last row and the first column are empty
		rows, first = rows-1, 1
	}
	for j, n := range m.Nodes[first:] {
		out.Columns = append(out.Columns, document.Column{
			Head: [2]string{"", n.Name}, ShortHead: fmt.Sprint(first + j + 1), Right: true,
			Marked: true})
	}
	for i, n := range m.Nodes[:rows] {
		row := document.Row{Cells: []document.Cell{
			{Text: n.Name, Short: fmt.Sprintf("%d %s", i+1, n.Name)}}}
		for j := first; j < len(m.Nodes); j++ {
			row.Cells = append(row.Cells, t.cell(x, i, j))
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

// cell returns the cell of a link. A star marks a value that a fault explains.
func (t meshMetric) cell(x mesh.Metric, i, j int) document.Cell {
	v := x.Matrix[i][j]
	switch {
	case i == j || t.upper && j < i:
		return document.Cell{}
	case v == nil:
		return nothing
	}
	c := numberCell(t.text(*v), *v, x.Unit)
	if x.Slow[i][j] {
		c.Mark = "*"
	}
	return c
}

var meshEffects = []struct{ name, head string }{
	{workload.LatencyP50, "round trips"}, {workload.ThroughputOut, "sends"},
	{mesh.ThroughputIn, "receives"},
}

func nodeSections(m *mesh.Mesh, network string) []document.Section {
	nodes := slices.Clone(m.Nodes)
	title := "Nodes" + network + ", ratio to what is typical"
	if len(nodes) > worstNodes {
		slices.SortStableFunc(nodes, func(a, b mesh.Node) int {
			return cmp.Compare(badness(b), badness(a))
		})
		nodes = nodes[:worstNodes]
		title = fmt.Sprintf("The %d slowest nodes%s, ratio to what is typical", worstNodes, network)
	}
	t := document.Table{Level: 1, Layouts: onlyGaps, Columns: []document.Column{names("node")}}
	for _, n := range nodes {
		t.Rows = append(t.Rows, document.Row{Cells: document.Texts(n.Name)})
	}
	for _, e := range meshEffects {
		if !slices.ContainsFunc(m.Nodes, func(n mesh.Node) bool {
			return n.Effects[e.name].Of > 0
		}) {
			continue
		}
		t.Columns = append(t.Columns, texts("", e.head), figures("slow", "links"))
		for i, n := range nodes {
			t.Rows[i].Cells = append(t.Rows[i].Cells, effectCells(n.Effects, e.name)...)
		}
	}
	if len(t.Columns) == 1 {
		return nil
	}
	return []document.Section{{Title: document.Strongly(title), Blocks: []document.Block{t}}}
}

func effectCells(effects map[string]mesh.Effect, name string) []document.Cell {
	x, ok := effects[name]
	if !ok {
		return []document.Cell{nothing, nothing}
	}
	return []document.Cell{
		{Text: x.String(), Number: &document.Number{
			Value: x.Ratio, Low: x.Low, High: x.High, Unit: analysis.RatioUnit}},
		numberCell(fmt.Sprintf("%d/%d", x.Slow, x.Of), float64(x.Slow), "links"),
	}
}

// names returns a column of names, which may be cut.
func names(head string) document.Column {
	const least = 8
	return document.Column{Head: [2]string{"", head}, Cut: document.CutMiddle, Least: least}
}

// badness returns the logarithm of how many times slower than typical a node is in its worst
// metric, at least 0.
func badness(n mesh.Node) float64 {
	worst := 0.0
	for name, e := range n.Effects {
		if name != workload.LatencyP50 {
			e.Ratio = 1 / e.Ratio
		}
		worst = max(worst, math.Log(e.Ratio))
	}
	return worst
}

func meshFoot(r *analysis.Report, m *mesh.Mesh) []document.Section {
	var said document.Section
	if findings := r.Findings; len(findings) > 0 {
		if n := len(findings) - mostFindings; n > 0 {
			findings = append(findings[:mostFindings:mostFindings],
				fmt.Sprintf("And %d more of this kind: --format json lists all.", n))
		}
		said.Add(document.List{Topic: document.Findings, Items: findings, Level: 1})
	}
	if len(m.Metrics) > 0 {
		said.Add(faint(meshLegend))
	}
	out := []document.Section{said}
	if len(m.Failed) > 0 {
		var items []string
		for i, f := range m.Failed {
			if i == mostFindings {
				items = append(items, fmt.Sprintf("and %d more", len(m.Failed)-i))
				break
			}
			items = append(items, meshFailed(f))
		}
		out = append(out, list(document.Failed, "Failed", items))
	}
	return append(out, warnings(r)...)
}

func meshFailed(f mesh.Failed) string {
	what := "never answered"
	switch {
	case len(f.Nodes) > 1:
		what = "no visit of " + f.Load + " succeeded"
	case f.Left:
		what = "left"
	}
	return fmt.Sprintf("%s: %s%s: %s", strings.Join(f.Nodes, " and "), what, f.Over(), f.Reason)
}
