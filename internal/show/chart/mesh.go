package chart

import (
	"fmt"
	"strconv"

	"github.com/bridgetoll/bridgetoll/internal/judge/mesh"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

type heats struct {
	Unit   string   `json:"unit"`
	Higher bool     `json:"higher,omitempty"` // higher is better
	Nodes  []string `json:"nodes"`
	Cells  []heat   `json:"cells"`
}

// heat has the indexes of row and column, the value with three digits, and 1 if a fault explains
// the value. As arrays, thousands of them take little space in JSON.
type heat [4]float64

var meshTitles = []struct{ metric, title string }{
	{workload.LatencyP50, "Round trips between nodes"},
	{workload.Throughput, "Throughput, from the row's node to the column's"},
	{workload.RetransmissionRate, "Retransmitted, of what the row's node sends to the column's"},
}

var nodeEffects = []struct{ name, title string }{
	{workload.LatencyP50, "Nodes: round trips, against what is typical"},
	{workload.ThroughputOut, "Nodes: what they send, against what is typical"},
	{mesh.ThroughputIn, "Nodes: what they receive, against what is typical"},
}

// Mesh returns the charts of a mesh: its links and nodes, and what a mode costs on each link.
func Mesh(m *mesh.Mesh) []document.ChartGroup {
	links, nodes := document.ChartGroup{Title: "Links"}, document.ChartGroup{Title: "Nodes"}
	if m.Beside != nil {
		links.Title, nodes.Title = "Links, "+mesh.Network(m.Mode), "Nodes, "+mesh.Network(m.Mode)
	}
	for _, t := range meshTitles {
		if x, ok := m.Metrics[t.metric]; ok && len(x.Matrix) > 0 {
			if c, ok := heatChart(m, x, t.title); ok {
				links.Charts = append(links.Charts, c)
			}
		}
	}
	for _, e := range nodeEffects {
		if c, ok := effectChart(m, e.name, e.title); ok {
			nodes.Charts = append(nodes.Charts, c)
		}
	}
	var out []document.ChartGroup
	for _, g := range []document.ChartGroup{costGroup(m), links, nodes} {
		if len(g.Charts) > 0 {
			out = append(out, g)
		}
	}
	if m.Beside != nil {
		for _, g := range Mesh(m.Beside) {
			g.Title += ", " + mesh.Network(m.Beside.Mode)
			out = append(out, g)
		}
	}
	return out
}

// costGroup returns charts that compare the links with those of m.Beside.
func costGroup(m *mesh.Mesh) document.ChartGroup {
	out := document.ChartGroup{Title: "What the " + m.Mode + " network costs"}
	one := 1.0
	for _, t := range meshTitles {
		c, ok := m.Costs[t.metric]
		if !ok || len(c.Links) == 0 {
			continue
		}
		to := scaleFor(m.Metrics[t.metric].Unit, m.Metrics[t.metric].Median)
		spec := intervals{Axis: "ratio of " + m.Mode + " to " + m.Beside.Mode, Line: &one}
		var rows [][]string
		for _, l := range c.Links {
			name := l.Nodes[0] + " → " + l.Nodes[1]
			text := l.String()
			if v := m.Say(l.Verdict); v != "" {
				text += ", " + v
			}
			spec.Rows = append(spec.Rows, intervalRow{
				Label: name, Value: fourDigits(l.Ratio), Low: l.Low, High: l.High, Text: text})
			rows = append(rows, []string{name, threeDigits(l.Value * to.by),
				threeDigits(l.Beside * to.by), l.String(), m.Say(l.Verdict)})
		}
		spec.cut()
		x := document.Chart{Kind: "interval",
			Title: t.title + ": " + m.Mode + " against " + m.Beside.Mode, Spec: spec,
			Table: tableOf(rows, "link", m.Mode+", "+to.unit, m.Beside.Mode+", "+to.unit, "ratio",
				"verdict"),
			How: "A dot is a link's ratio of both networks, the bar its 95 % interval." +
				spec.cutNote()}
		if len(rows) > mostBars {
			x.Kind, x.Spec = "", nil
		}
		out.Charts = append(out.Charts, x)
	}
	return out
}

// largeMesh is the largest number of nodes with which a heat map has a table. The document's table
// has the same links.
const largeMesh = 16

// heatChart draws the values of all links. ok is false if they are negligible.
func heatChart(m *mesh.Mesh, x mesh.Metric, title string) (c document.Chart, ok bool) {
	const seen = 0.005 // %: smaller rates are not worth a chart
	to, least, more := scaleFor(x.Unit, x.Median), 0.0, "slower"
	if x.Unit == "1" {
		to, least, more = scale{100, "%"}, seen, "more"
	}
	spec := heats{Unit: to.unit, Higher: x.Higher}
	heads := []string{"from"}
	var rows [][]string
	for i, n := range m.Nodes {
		spec.Nodes, heads = append(spec.Nodes, n.Name), append(heads, n.Name)
		row := []string{n.Name}
		for j := range m.Nodes {
			v, slow := linkOf(x, i, j)
			if v == nil {
				row = append(row, "")
				continue
			}
			text, mark := threeDigits(*v*to.by), 0.0
			ok = ok || *v*to.by > least
			shown, _ := strconv.ParseFloat(text, 64) // as rounded in the text
			if slow {
				text, mark = text+" slow", 1
			}
			spec.Cells = append(spec.Cells, heat{float64(i), float64(j), shown, mark})
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	c = document.Chart{Kind: "heat", Title: title + ", " + to.unit, Spec: spec,
		How: "The stronger the colour, the " + more + ". A frame: explained by a reported fault."}
	if len(m.Nodes) < largeMesh {
		c.Table = tableOf(rows, heads...)
	} else {
		c.How += " The figures are in the tables below."
	}
	return c, ok
}

// linkOf returns the value of the link from i to j, or nil if there is none. slow means that a
// fault explains the value.
func linkOf(x mesh.Metric, i, j int) (value *float64, slow bool) {
	if i == j || i >= len(x.Matrix) || j >= len(x.Matrix[i]) {
		return nil, false
	}
	return x.Matrix[i][j], i < len(x.Slow) && j < len(x.Slow[i]) && x.Slow[i][j]
}

func effectChart(m *mesh.Mesh, name, title string) (c document.Chart, ok bool) {
	one := 1.0
	spec := intervals{Axis: "ratio to what is typical", Line: &one}
	var rows [][]string
	for _, n := range m.Nodes {
		e, has := n.Effects[name]
		if !has || e.Of == 0 || e.Ratio <= 0 {
			continue
		}
		spec.Rows = append(spec.Rows, intervalRow{
			Label: n.Name, Value: fourDigits(e.Ratio), Low: e.Low, High: e.High, Text: e.String()})
		rows = append(rows, []string{n.Name, e.String(), fmt.Sprintf("%d of %d", e.Slow, e.Of)})
	}
	spec.cut()
	c = document.Chart{Kind: "interval", Title: title, Spec: spec,
		Table: tableOf(rows, "node", "ratio", "slow links"),
		How:   "A dot is the node's links against those of typical nodes, the bar its 95 % interval." + spec.cutNote()}
	if len(rows) > mostBars {
		c.Kind, c.Spec = "", nil
	}
	return c, len(rows) > 0
}
