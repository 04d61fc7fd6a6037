package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/analysis"
)

// meshLegend says how to read a mesh.
const meshLegend = "Each value is a link's median over the sweeps, without what all links drifted by meanwhile. *: explained by a fault that is " +
	"named; a node's slow links are those of its own faults, its links' and its group's. A node's ratios are those of its links, as their median, to what is typical of all nodes."

// mostFindings is how many sentences about what is slow are printed; all faults
// are in the JSON.
const mostFindings = 20

// worstNodes is how many nodes of a large mesh the table has.
const worstNodes = 10

// meshHead is what was measured, and for how long.
func meshHead(r *analysis.Report) (facts, run string) {
	m := r.Mesh
	facts = fmt.Sprintf("%s on %s, mode %s", plural(len(m.Nodes), "node"), m.On, m.Mode)
	run = fmt.Sprintf("%s of %s in %.0f s, %s", plural(m.Sweeps, "complete sweep"), plural(len(m.Nodes)*(len(m.Nodes)-1)/2, "pair"),
		r.Plan.Elapsed, endedBy(r.Plan))
	return facts, run
}

// meshMetric is a metric of a mesh as it is printed.
type meshMetric struct {
	metric, title, unit string
	text                func(float64) string
	upper               bool               // both ways are the same
	best, worst         string             // of the links
	none                func(float64) bool // of the worst link: it is not worth a table; nil: none is
}

// scaledBy prints values in a unit.
func scaledBy(by float64) func(float64) string {
	return func(x float64) string { return digits(x * by) }
}

// meshMetrics are the metrics of a mesh in the order in which they are printed.
var meshMetrics = []meshMetric{
	{metric: analysis.LatencyP50, title: "Round trips between nodes, median", unit: "µs", text: scaledBy(micro), upper: true, best: "fastest", worst: "slowest"},
	{metric: analysis.Throughput, title: "Throughput, from the row's node to the column's", unit: "Gbit/s", text: scaledBy(giga), best: "fastest", worst: "slowest"},
	{metric: analysis.RetransmissionRate, title: "Retransmitted, of what the row's node sends to the column's", unit: "%",
		text: func(x float64) string { return fmt.Sprintf("%.2f", 100*x) }, best: "least", worst: "most",
		none: func(worst float64) bool { return worst < leastShown }},
}

// leastShown is the rate of retransmission that is printed as more than nothing.
const leastShown = 0.00005

// mesh prints a table of the links for each metric, if they fit, and one of the
// nodes.
func (p *printer) mesh(r *analysis.Report) {
	m := r.Mesh
	for _, t := range meshMetrics {
		x, ok := m.Metrics[t.metric]
		if !ok {
			continue
		}
		if t.none != nil && t.none(x.Slowest) {
			p.faint("  ", "Retransmitted: 0.00 % on all links.")
			continue
		}
		p.line("")
		p.line(p.bold(fmt.Sprintf("%s, %s", t.title, t.unit)) + p.dim("  "+describeLoad(r, x.Load)))
		if !p.matrix(m, x, t) {
			p.item(fmt.Sprintf("%d links: %s %s, median %s, %s %s (%s)", x.Links, t.best, t.text(x.Fastest), t.text(x.Median),
				t.worst, t.text(x.Slowest), t.link(x.SlowestLink)))
		}
		text := fmt.Sprintf("Typical: %s %s.", t.text(x.Typical), t.unit)
		if x.NamedFrom != nil && x.Noise != nil {
			text += fmt.Sprintf(" A link's noise: %.1f %%; named from %.2f times slower than its nodes make it.", 100**x.Noise, *x.NamedFrom)
		}
		p.faint("  ", text)
	}
	p.meshNodes(m)
}

// link is a link in words.
func (t meshMetric) link(nodes [2]string) string {
	if t.metric == analysis.RetransmissionRate {
		return nodes[0] + " to " + nodes[1]
	}
	return nodes[0] + " and " + nodes[1]
}

// matrix prints the values by nodes; false if they are too many for the width.
func (p *printer) matrix(m *analysis.Mesh, x analysis.MeshMetric, t meshMetric) bool {
	if len(x.Matrix) == 0 {
		return false
	}
	cols := []column{{}}
	grid := make([][]string, len(m.Nodes))
	for i, n := range m.Nodes {
		grid[i] = append(grid[i], n.Name)
		cols = append(cols, column{[2]string{"", n.Name}, true, nil})
		for j := range m.Nodes {
			grid[i] = append(grid[i], t.value(x, i, j))
		}
	}
	if t.upper { // the last row and the first column are empty
		grid = grid[:len(grid)-1]
		cols = slices.Delete(cols, 1, 2)
		for i := range grid {
			grid[i] = slices.Delete(grid[i], 1, 2)
		}
	}
	for _, short := range []bool{false, true} {
		if short { // numbers in place of names
			number := map[string]string{}
			for i, n := range m.Nodes {
				number[n.Name] = fmt.Sprint(i + 1)
				if i < len(grid) {
					grid[i][0] = fmt.Sprintf("%d %s", i+1, n.Name)
				}
			}
			for i := range cols[1:] {
				cols[i+1].head[1] = number[cols[i+1].head[1]]
			}
		}
		for _, p.gap = range []int{2, 1} {
			widths := measure(cols, grid)
			if p.tableWidth(widths) > p.width {
				continue
			}
			texts := make([]string, len(cols))
			for i, c := range cols {
				texts[i] = c.head[1]
			}
			p.row(cols, widths, texts, p.dim)
			for _, row := range grid {
				p.row(cols, widths, row, func(s string) string { return s })
			}
			return true
		}
	}
	return false
}

// value is a link's value; those that a fault explains have a star, the others the
// room for it.
func (t meshMetric) value(x analysis.MeshMetric, i, j int) string {
	v := x.Matrix[i][j]
	mark := " "
	if x.Slow[i][j] {
		mark = "*"
	}
	switch {
	case i == j || t.upper && j < i:
		return ""
	case v == nil:
		return "- "
	}
	return t.text(*v) + mark
}

// meshNodes prints what each node does to its links; of many, those of the worst.
func (p *printer) meshNodes(m *analysis.Mesh) {
	type effect struct{ name, head string }
	var shown []effect
	for _, e := range []effect{{analysis.LatencyP50, "round trips"}, {analysis.ThroughputOut, "sends"}, {analysis.ThroughputIn, "receives"}} {
		if slices.ContainsFunc(m.Nodes, func(n analysis.MeshNode) bool { return n.Effects[e.name].Of > 0 }) {
			shown = append(shown, e)
		}
	}
	if len(shown) == 0 {
		return
	}
	nodes := slices.Clone(m.Nodes)
	title := "Nodes, ratio to what is typical"
	if len(nodes) > worstNodes {
		slices.SortStableFunc(nodes, func(a, b analysis.MeshNode) int { return cmp.Compare(badness(b), badness(a)) })
		nodes = nodes[:worstNodes]
		title = fmt.Sprintf("The %d slowest nodes, ratio to what is typical", worstNodes)
	}
	cols := []column{{head: [2]string{"", "node"}}}
	grid := make([][]string, len(nodes))
	for i, n := range nodes {
		grid[i] = append(grid[i], n.Name)
	}
	for _, e := range shown {
		cols = append(cols, column{head: [2]string{"", e.head}}, column{[2]string{"slow", "links"}, true, nil})
		for i, n := range nodes {
			x, ok := n.Effects[e.name]
			if !ok {
				grid[i] = append(grid[i], "-", "-")
				continue
			}
			grid[i] = append(grid[i], x.String(), fmt.Sprintf("%d/%d", x.Slow, x.Of))
		}
	}
	var widths []int
	for _, p.gap = range []int{2, 1} {
		if widths = measure(cols, grid); p.tableWidth(widths) <= p.width {
			break
		}
	}
	if over := p.tableWidth(widths) - p.width; over > 0 {
		for i := range grid {
			grid[i][0] = shortName(grid[i][0], max(leastName, widths[0]-over))
		}
		widths = measure(cols, grid)
	}
	p.line("")
	p.line(p.bold(title))
	p.heads(cols, widths)
	for _, row := range grid {
		p.row(cols, widths, row, func(s string) string { return s })
	}
}

// leastName is how much of a name is left at least.
const leastName = 8

// shortName takes the middle out of a name that is longer than most columns:
// names of nodes differ at either end.
func shortName(name string, most int) string {
	r := []rune(name)
	if len(r) <= most {
		return name
	}
	head := most / 2
	return string(r[:head]) + "…" + string(r[len(r)-(most-head-1):])
}

// badness is by how much a node is slower than typical, in its worst respect.
func badness(n analysis.MeshNode) float64 {
	worst := 0.0
	for name, e := range n.Effects {
		if name != analysis.LatencyP50 {
			e.Ratio = 1 / e.Ratio
		}
		worst = max(worst, math.Log(e.Ratio))
	}
	return worst
}

// meshFoot prints what is said of a mesh below its tables.
func (p *printer) meshFoot(r *analysis.Report) {
	m := r.Mesh
	p.line("")
	for i, f := range r.Findings {
		if i == mostFindings {
			p.item(fmt.Sprintf("And %d more of that kind: --format json has all.", len(r.Findings)-i))
			break
		}
		p.item(f)
	}
	if len(m.Metrics) > 0 {
		p.faint("  ", meshLegend)
	}
	if len(m.Failed) > 0 {
		p.line("")
		p.line(p.bold("Failed"))
	}
	for i, f := range m.Failed {
		if i == mostFindings {
			p.item(fmt.Sprintf("and %d more", len(m.Failed)-i))
			break
		}
		p.item(meshFailed(f))
	}
	p.warnings(r)
}

func meshFailed(f analysis.MeshFailed) string {
	what := "never answered"
	switch {
	case len(f.Nodes) > 1:
		what = "no visit of " + f.Load + " succeeded"
	case f.Left:
		what = "left"
	}
	return fmt.Sprintf("%s: %s: %s", strings.Join(f.Nodes, " and "), what, f.Reason)
}
