package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/mesh"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

func bothOf(m *mesh.Mesh) []*mesh.Mesh {
	if m.Beside == nil {
		return []*mesh.Mesh{m}
	}
	return []*mesh.Mesh{m, m.Beside}
}

// networkOf returns text such as ", pod network", or "" if the mesh has one network.
func networkOf(m, of *mesh.Mesh) string {
	if m.Beside == nil {
		return ""
	}
	return ", " + mesh.Network(of.Mode)
}

const worstLinks = 12

// costSections lists links with a verdict first, then the most expensive.
func costSections(m *mesh.Mesh, t meshMetric) []document.Section {
	c, ok := m.Costs[t.metric]
	if !ok || len(c.Links) == 0 {
		return nil
	}
	links := slices.Clone(c.Links)
	dear := func(l mesh.LinkCost) float64 {
		if t.metric == workload.Throughput {
			return 1 / l.Ratio
		}
		return l.Ratio
	}
	slices.SortStableFunc(links, func(a, b mesh.LinkCost) int {
		rank := func(l mesh.LinkCost) int {
			if l.Verdict != "" {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(dear(b), dear(a)))
	})
	left := max(0, len(links)-worstLinks)
	links = links[:len(links)-left]
	arrow := " – "
	if t.metric == workload.Throughput {
		arrow = " → "
	}
	out := document.Table{Level: 1, Layouts: onlyGaps,
		Columns: []document.Column{names("link"), figures("", m.Mode), figures("", m.Beside.Mode),
			texts("", m.Mode+"/"+m.Beside.Mode), texts("", "verdict")}}
	for _, l := range links {
		unit := m.Metrics[t.metric].Unit
		out.Rows = append(out.Rows, document.Row{
			Cells: []document.Cell{{Text: l.Nodes[0] + arrow + l.Nodes[1]},
				numberCell(t.text(l.Value), l.Value, unit),
				numberCell(t.text(l.Beside), l.Beside, unit),
				{Text: l.String(), Number: &document.Number{
					Value: l.Ratio, Low: l.Low, High: l.High, Unit: analysis.RatioUnit}},
				{Text: m.Say(l.Verdict)}}})
	}
	what := map[string]string{workload.LatencyP50: "round trips",
		workload.Throughput: "throughput"}[t.metric]
	s := section(document.Strongly(fmt.Sprintf("What the %s network costs on each link: %s, %s",
		m.Mode, what, t.unit)), out)
	text := "Typical: " + c.String() + "."
	if left > 0 {
		text = fmt.Sprintf("And %s more: --format csv or json has all. ", units.Plural(left, "link")) +
			text
	}
	s.Add(faint(text))
	return []document.Section{s}
}

func groupSections(m *mesh.Mesh) []document.Section {
	if len(m.Groups) == 0 {
		return nil
	}
	t := document.Table{Level: 1, Layouts: onlyGaps, Columns: []document.Column{names("links")}}
	type column struct {
		of     *mesh.Mesh
		metric meshMetric
	}
	var columns []column
	for _, x := range meshMetrics {
		for _, of := range bothOf(m) {
			if _, ok := of.Metrics[x.metric]; ok && x.none == nil {
				columns = append(columns, column{of, x})
				mode := ""
				if m.Beside != nil {
					mode = of.Mode
				}
				t.Columns = append(t.Columns, figures(x.unit, mode))
			}
		}
	}
	t.Columns = append(t.Columns, figures("", "pairs"))
	last, rows := "", 0
	for i, g := range m.Groups {
		if g.Label != last {
			last, rows = g.Label, 0
		}
		if rows++; rows > worstLinks {
			continue
		}
		row := document.Row{Cells: document.Texts(groupName(g))}
		pairs := 0
		for _, c := range columns {
			cell := nothing
			if at := groupIn(c.of, m.Groups[i]); at != nil {
				if x, ok := at.Metrics[c.metric.metric]; ok {
					cell = numberCell(c.metric.text(x.Median), x.Median,
						c.of.Metrics[c.metric.metric].Unit)
					n := x.Links
					if c.metric.metric == workload.Throughput {
						n = (n + 1) / 2 //nolint:mnd // both directions of a pair
					}
					pairs = max(pairs, n)
				}
			}
			row.Cells = append(row.Cells, cell)
		}
		row.Cells = append(row.Cells, numberCell(fmt.Sprint(pairs), float64(pairs), "pairs"))
		t.Rows = append(t.Rows, row)
	}
	s := section(document.Strongly("Links by the nodes' labels, median"), t)
	if left := len(m.Groups) - len(t.Rows); left > 0 {
		s.Add(faint(fmt.Sprintf("And %d more: --format csv or json has all.", left)))
	}
	return []document.Section{s}
}

func groupIn(m *mesh.Mesh, g mesh.LabelGroup) *mesh.LabelGroup {
	i := slices.IndexFunc(m.Groups, func(x mesh.LabelGroup) bool {
		return x.Label == g.Label && x.Across == g.Across && x.From == g.From && x.To == g.To
	})
	if i < 0 {
		return nil
	}
	return &m.Groups[i]
}

func groupName(g mesh.LabelGroup) string {
	word := mesh.ShortLabel(g.Label)
	switch {
	case g.From == "" && g.Across:
		return "across " + word + "s"
	case g.From == "":
		return "within a " + word
	case g.Across:
		return word + " " + g.From + " – " + g.To
	}
	return word + " " + g.From
}

// nodesAre lists the nodes' places and network cards. It returns nil if neither are known.
func nodesAre(r *analysis.Report, m *mesh.Mesh) []document.Section {
	var keys []string
	for _, n := range m.Nodes {
		for k := range n.Labels {
			if !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
	}
	slices.Sort(keys)
	slices.SortStableFunc(keys, func(a, b string) int {
		return cmp.Compare(labelRank(a), labelRank(b))
	})
	cards := map[string][]string{}
	for _, c := range r.Environment.Cards {
		where := strings.TrimPrefix(strings.TrimPrefix(c.Where, "node "), "peer ")
		cards[where] = append(cards[where], cardBrief(c))
	}
	if len(keys) == 0 && len(cards) == 0 {
		return nil
	}
	t := document.Table{Level: 1, Layouts: onlyGaps, Columns: []document.Column{names("node")}}
	for _, k := range keys {
		t.Columns = append(t.Columns, names(mesh.ShortLabel(k)))
	}
	if len(cards) > 0 {
		t.Columns = append(t.Columns, names("network card"))
	}
	for i, n := range m.Nodes {
		if i == mostFindings {
			break
		}
		row := document.Row{Cells: document.Texts(n.Name)}
		for _, k := range keys {
			cell := nothing
			if v := n.Labels[k]; v != "" {
				cell = document.Cell{Text: v}
			}
			row.Cells = append(row.Cells, cell)
		}
		if len(cards) > 0 {
			cell := nothing
			if all := cards[n.Name]; len(all) > 0 {
				cell = document.Cell{Text: strings.Join(all, "; ")}
			}
			row.Cells = append(row.Cells, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	s := section(document.Strongly("The nodes"), t)
	if left := len(m.Nodes) - mostFindings; left > 0 {
		s.Add(faint(fmt.Sprintf("And %d more: --format json has all.", left)))
	}
	return []document.Section{s}
}

func labelRank(key string) int {
	if i := slices.Index([]string{"region", "zone", "rack"}, mesh.ShortLabel(key)); i >= 0 {
		return i
	}
	return math.MaxInt
}

// cardBrief returns text such as "eth0, mlx5_core, 25 Gbit/s".
func cardBrief(c sample.Card) string {
	parts := []string{c.Name}
	if c.Driver != "" {
		parts = append(parts, c.Driver)
	}
	if c.Speed > 0 {
		parts = append(parts, units.Rate(float64(c.Speed)))
	}
	return strings.Join(parts, ", ")
}
