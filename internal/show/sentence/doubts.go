package sentence

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/mesh"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// fillDoubts puts the warnings of a mesh into words.
func fillDoubts(r Told) {
	m, is := r.(*mesh.Report)
	if !is {
		return
	}
	worded := m.Warnings[len(m.Warnings)-len(m.Doubts):]
	for i, x := range m.Doubts {
		worded[i].Text = meshDoubt(m.Mesh, x)
		if x.What != "" {
			worded[i].Text = "the " + mesh.Network(x.What) + ": " + worded[i].Text
		}
	}
}

func meshDoubt(m *mesh.Mesh, x analysis.Finding) string {
	switch x.Code {
	case mesh.WarnFewSweeps:
		return fewSweeps(x)
	case mesh.TwoNodes:
		return "with two nodes only the link between them can be reported: to find out which of them is slow, add a third"
	case mesh.Doubtful:
		return fmt.Sprintf("%s %s slow in too few visits to be reported: use more sweeps",
			units.Plural(x.N, "link"), units.Agree(x.N, "was", "were"))
	case mesh.DoubtfulLoss:
		return units.Plural(x.N, "link") +
			" lost packets in too few visits to be reported: use more sweeps"
	case mesh.FailedVisits:
		return fmt.Sprintf("%d of %d visits failed and %s left out, the last one because: %s", x.N,
			x.Of, units.Agree(x.N, "is", "are"), x.Why)
	case mesh.SameMachine:
		var names []string
		for _, k := range x.Rows {
			names = append(names, m.Nodes[k].Name)
		}
		return nodeNames(names) + " are the same machine, so no network is measured between them"
	case mesh.OtherMTU:
		return "the nodes' MTUs differ: " + mtus(m)
	}
	return ""
}

func fewSweeps(x analysis.Finding) string {
	if len(x.Values) == 0 {
		return fmt.Sprintf("fewer than %d sweeps: each link's values are based on few visits",
			stats.MinJudged)
	}
	var unknown []string
	for _, metric := range []string{workload.LatencyP50, workload.Throughput} {
		if _, is := x.Values[metric]; is {
			unknown = append(unknown, mesh.Noun(metric))
		}
	}
	return fmt.Sprintf("with so few nodes, %s cannot tell what is slow in %s from noise; use more sweeps",
		units.Plural(x.N, "sweep"), nodeNames(unknown))
}

// mtus returns the nodes by MTU.
func mtus(m *mesh.Mesh) string {
	by := map[int][]string{}
	for _, n := range m.Nodes {
		if n.MTU > 0 {
			by[n.MTU] = append(by[n.MTU], n.Name)
		}
	}
	var parts []string
	for _, mtu := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprintf("%d (%s)", mtu, nodeNames(by[mtu])))
	}
	return strings.Join(parts, ", ")
}

const mostNodes = 8

// nodeNames joins names for use in a sentence. It counts those beyond the seventh, if there are several.
func nodeNames(names []string) string {
	if n := len(names); n > mostNodes {
		return fmt.Sprintf("%s and %d others", strings.Join(names[:mostNodes-1], ", "),
			n-mostNodes+1)
	}
	return printable.List(names)
}
