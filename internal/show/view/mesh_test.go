package view

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/mesh"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
)

// cluster returns a report in which a round trip takes 50 µs and throughput is 9.4 Gbit/s. The
// factors slow links down; nil: none.
func cluster(nodes, sweeps int, trip, rate func(a, b int) float64,
	change ...func(*sample.File)) *mesh.Report {
	f := &sample.File{End: sample.End{Reason: sample.EndedByBudget, Elapsed: 58.3, Sweeps: sweeps}}
	f.Header.Environment = head().Environment
	f.Header.Plan = sample.Plan{Study: sample.StudyMesh, Seed: 7, Budget: 60, Precision: 0.02,
		Mesh: &sample.Mesh{Mode: "host", On: "swarm"},
		Loads: []sample.Load{{Kind: "rr", Options: sample.RROptions{
			Messages: sample.Messages{Request: 1, Reply: 1}}, Window: 0.25},
			{Kind: "bulk", Streams: 1, Window: 0.25}}}
	for i := range nodes {
		f.Header.Plan.Mesh.Nodes = append(f.Header.Plan.Mesh.Nodes,
			sample.Node{Name: fmt.Sprintf("node-%d", i+1)})
	}
	rng := rand.New(rand.NewPCG(3, 4))
	of := func(slow func(a, b int) float64, a, b int) float64 {
		noise := math.Exp(0.03 * rng.NormFloat64())
		if slow == nil {
			return noise
		}
		return slow(a, b) * noise
	}
	for s := range sweeps {
		for a := range nodes {
			for b := range nodes {
				if a < b {
					f.Pairs = append(f.Pairs, sample.PairVisit{
						PairTurn: sample.PairTurn{Pair: sample.Pair{a, b}, Sweep: s, Load: "rr"},
						Value:    50e-6 * of(trip, a, b)})
				}
				if a != b {
					f.Pairs = append(f.Pairs, sample.PairVisit{
						PairTurn: sample.PairTurn{Pair: sample.Pair{a, b}, Sweep: s, Load: "bulk"},
						Value:    9.4e9 / of(rate, a, b), Segments: 200_000})
				}
			}
		}
	}
	for _, c := range change {
		c(f)
	}
	return mesh.Judge(f)
}

func ofNode(node int, x float64) func(a, b int) float64 {
	return func(a, b int) float64 {
		if a == node || b == node {
			return x
		}
		return 1
	}
}

func meshReports() map[string]*mesh.Report {
	oneWay := func(a, b int) float64 {
		if a == 1 && b == 4 {
			return 5
		}
		return ofNode(2, 4)(a, b)
	}
	left := func(f *sample.File) {
		for i, v := range f.Pairs {
			if v.Sweep > 2 && (v.Pair[0] == 1 || v.Pair[1] == 1) {
				f.Pairs[i] = sample.PairVisit{PairTurn: sample.PairTurn{
					Pair: v.Pair, Sweep: v.Sweep, Load: v.Load},
					Failure: "node node-2 left: no answer for 15 s"}
			}
			if v.Pair == (sample.Pair{0, 3}) && v.Load == "rr" {
				f.Pairs[i].Value, f.Pairs[i].Failure = 0, "connection refused"
			}
		}
		f.Header.Plan.Mesh.Nodes[0].Boot, f.Header.Plan.Mesh.Nodes[2].Boot = "x", "x"
	}
	long := func(f *sample.File) {
		for i := range f.Header.Plan.Mesh.Nodes {
			f.Header.Plan.Mesh.Nodes[i].Name = fmt.Sprintf(
				"ip-10-0-0-%d.eu-central-1.compute.internal", i)
		}
	}
	racks := func(a, b int) float64 {
		if a/30 != b/30 {
			return 2.5
		}
		return 1
	}
	manyLinks := func(a, b int) float64 {
		if (a+b)%19 == 1 && a%2 == 0 {
			return 8
		}
		return ofNode(7, 2)(a, b)
	}
	loses := func(rate func(p sample.Pair) float64) func(*sample.File) {
		return func(f *sample.File) {
			for i, v := range f.Pairs {
				if v.Load == "bulk" {
					f.Pairs[i].Retransmits = int64(rate(v.Pair) * float64(v.Segments))
				}
			}
		}
	}
	oneLink := func(p sample.Pair) float64 {
		if p[0]+p[1] == 3 && p[0]*p[1] == 2 {
			return 0.01
		}
		return 0
	}
	inRack := func(p sample.Pair) float64 {
		if p == (sample.Pair{3, 77}) || p == (sample.Pair{77, 3}) {
			return 0.02
		}
		return 0.002 + 0.0001*float64(p[0]%7)
	}
	return map[string]*mesh.Report{
		"mesh-loses": cluster(5, 6, nil, nil, loses(oneLink)),
		"mesh-loses-node": cluster(4, 6, nil, ofNode(1, 3), loses(func(p sample.Pair) float64 {
			return 0.03 * float64(p[1]%2*(2-p[1]+1)/2)
		})),
		"mesh-loses-80": cluster(80, 3, nil, nil, loses(inRack)),
		"mesh":          cluster(5, 6, ofNode(2, 3), oneWay),
		"mesh-three":    cluster(3, 6, nil, ofNode(1, 10)),
		"mesh-well":     cluster(4, 8, nil, nil),
		"mesh-two":      cluster(2, 6, nil, nil),
		"mesh-left":     cluster(4, 6, nil, nil, left),
		"mesh-names":    cluster(8, 5, nil, nil, long),
		"mesh-long": cluster(3, 5, nil, nil, long, func(f *sample.File) {
			for i := range f.Header.Plan.Mesh.Nodes {
				f.Header.Plan.Mesh.Nodes[i].Name += ".of-a-very-long-name.example.org"
			}
		}),
		"mesh-racks": cluster(40, 2, racks, racks),
		"mesh-links": cluster(60, 3, nil, manyLinks, func(f *sample.File) {
			f.End.Reason = sample.EndedBySize
		}),
		"mesh-empty": cluster(3, 0, nil, nil),
	}
}

// withoutGolden have no golden files: others have all parts of their tables.
var withoutGolden = []string{"mesh-long", "mesh-loses-node", "mesh-loses-80", "mesh-three",
	"mesh-two"}

func TestMesh(t *testing.T) {
	for name, r := range meshReports() {
		t.Run(name, func(t *testing.T) {
			got := table(t, r, format.Options{Width: format.DefaultWidth})
			if !slices.Contains(withoutGolden, name) {
				golden(t, name+".txt", got)
			}
			fits(t, got)
			if color := table(t, r, format.Options{Width: format.DefaultWidth, Color: true}); uncolored(color) != got {
				t.Error("colour changes more than colour")
			}
			for _, width := range []int{40, 60, 200} {
				if got := table(t, r, format.Options{Width: width}); len(got) == 0 {
					t.Errorf("nothing is printed in %d columns", width)
				}
			}
		})
	}
}

func TestMeshJSONFields(t *testing.T) {
	b := written(t, "json", Report(meshReports()["mesh-left"]), format.Options{})
	var doc map[string]any
	if err := json.Unmarshal([]byte(b), &doc); err != nil {
		t.Fatal(err)
	}
	if doc["study"] != "mesh" {
		t.Errorf("study %v", doc["study"])
	}
	for where, keys := range map[string]string{
		"mesh":                             "mode on sweeps nodes metrics faults doubtful failed",
		"mesh/nodes/0":                     "name boot_id effects visits failed",
		"mesh/nodes/0/effects":             "latency_p50 throughput_out throughput_in",
		"mesh/nodes/0/effects/latency_p50": "ratio low high slow of",
		"mesh/metrics":                     "latency_p50 throughput retransmission_rate",
		"mesh/metrics/throughput": "load unit higher_is_better typical fastest median " +
			"slowest slowest_link links noise named_from nodes_named_from matrix slow",
		"mesh/metrics/retransmission_rate": "load unit typical fastest median slowest " +
			"slowest_link links named_from matrix slow",
		"mesh/failed/0": "nodes visits left reason",
		"mesh/failed/1": "nodes load visits reason",
	} {
		o, _ := at(doc, where).(map[string]any)
		for _, k := range strings.Fields(keys) {
			if _, ok := o[k]; !ok {
				t.Errorf("%q has no %q: %v", where, k, o)
			}
		}
	}
	if m, _ := at(doc, "mesh/metrics/latency_p50/matrix/0").([]any); len(m) != 4 || m[0] != nil ||
		m[3] != nil || m[1] == nil {
		t.Errorf("the first row is %v", m)
	}
	b = written(t, "json", Report(meshReports()["mesh"]), format.Options{})
	if err := json.Unmarshal([]byte(b), &doc); err != nil {
		t.Fatal(err)
	}
	fields := func(keys string) {
		t.Helper()
		fault, _ := at(doc, "mesh/faults/0").(map[string]any)
		for _, k := range strings.Fields(keys) {
			if _, ok := fault[k]; !ok {
				t.Errorf("a fault has no %q: %v", k, fault)
			}
		}
	}
	fields("kind nodes way metric ratio low high slow of")
	b = written(t, "json", Report(meshReports()["mesh-loses"]), format.Options{})
	doc = nil
	if err := json.Unmarshal([]byte(b), &doc); err != nil {
		t.Fatal(err)
	}
	fields("kind nodes way metric rate_out rate_in low high slow of")
}
