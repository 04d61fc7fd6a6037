package sentence

import (
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/mesh"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

func TestDoubtsOfMeshes(t *testing.T) {
	nodes := []mesh.Node{{}, {}, {}}
	nodes[0].Name, nodes[1].Name, nodes[2].Name = "a", "b", "c"
	nodes[0].MTU, nodes[1].MTU, nodes[2].MTU = 9000, 1500, 9000
	for want, x := range map[string]analysis.Finding{
		"with so few nodes, 6 sweeps cannot tell what is slow in throughput from noise; " +
			"use more sweeps": {
			Code: mesh.WarnFewSweeps, N: 6, Values: map[string]float64{workload.Throughput: 3}},
		"fewer than 5 sweeps: each link's values are based " +
			"on few visits": {Code: mesh.WarnFewSweeps,
			N: 2},
		"the pod network: fewer than 5 sweeps: each link's values are based on few visits": {
			Code: mesh.WarnFewSweeps, N: 2, What: "pod"},
		"1 link was slow in too few visits to be reported: use more sweeps": {Code: mesh.Doubtful,
			N: 1},
		"2 links lost packets in too few visits to be reported: use more sweeps": {
			Code: mesh.DoubtfulLoss, N: 2},
		"3 of 8 visits failed and are left out, the last one because: no route": {
			Code: mesh.FailedVisits, N: 3, Of: 8, Why: "no route"},
		"a and c are the same machine, so no network is measured between them": {
			Code: mesh.SameMachine, Rows: []int{0, 2}},
		"the nodes' MTUs differ: 1500 (b), 9000 (a and c)": {Code: mesh.OtherMTU},
	} {
		r := &mesh.Report{Mesh: &mesh.Mesh{Nodes: nodes}, Doubts: []analysis.Finding{x}}
		r.Warnings = []analysis.Warning{{Code: "truncated", Text: "cut"}, {Code: x.Code}}
		Fill(r)
		if r.Warnings[0].Text != "cut" || r.Warnings[1].Text != want {
			t.Errorf("%q, want %q", r.Warnings[1].Text, want)
		}
	}
}

func TestNodeNames(t *testing.T) {
	for want, names := range map[string]string{
		"a":                                "a",
		"a and b":                          "a b",
		"a, b and c":                       "a b c",
		"a, b, c, d, e, f, g and 3 others": "a b c d e f g h i j",
	} {
		if got := nodeNames(strings.Fields(names)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
