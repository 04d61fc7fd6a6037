package analysis

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/mesh"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// meshRun builds the results file of a mesh with known faults: a round trip is
// 50 µs, throughput 10 Gbit/s, with some noise.
type meshRun struct {
	t    *testing.T
	f    *sample.File
	rng  *rand.Rand
	trip func(a, b int) float64 // factor of a round trip; nil: 1
	rate func(a, b int) float64 // factor of the throughput from a to b; nil: 1
	fail func(sweep int, p sample.Pair, load string) string
}

func newMesh(t *testing.T, nodes int) *meshRun {
	t.Helper()
	m := &meshRun{t: t, rng: rand.New(rand.NewPCG(1, 2)), f: &sample.File{
		Header: sample.Header{Schema: sample.Schema, Plan: sample.Plan{Study: sample.StudyMesh, Seed: 1, Budget: 60, Precision: 0.05,
			Loads: []sample.Load{{Kind: "rr", Request: 1, Reply: 1, Window: 1}, {Kind: "bulk", Streams: 1, Window: 1}},
			Cells: []sample.Cell{}, Mesh: &sample.Mesh{Mode: "host", On: "swarm"}}},
		End: sample.End{Reason: sample.EndedByRounds, Elapsed: 12}}}
	for i := range nodes {
		m.f.Header.Plan.Mesh.Nodes = append(m.f.Header.Plan.Mesh.Nodes, sample.Node{Name: string(rune('a' + i))})
	}
	return m
}

func (m *meshRun) factor(f func(a, b int) float64, p sample.Pair) float64 {
	if f == nil {
		return 1
	}
	return f(p[0], p[1])
}

// visit is a visit as the engine writes it.
func (m *meshRun) visit(sweep, round int, p sample.Pair, load string) sample.Visit {
	m.t.Helper()
	noise := math.Exp(0.03 * m.rng.NormFloat64())
	v := sample.Visit{Sweep: sweep, Round: round, Pair: p, Load: load, Witness: sample.Witness{OK: true},
		Client: sample.Party{Window: 1}, Server: sample.Party{Window: 1}}
	if m.fail != nil {
		if v.Failure = m.fail(sweep, p, load); v.Failure != "" {
			return v
		}
	}
	if load == "bulk" {
		v.Server.Received = int64(10e9 / 8 * m.factor(m.rate, p) * noise)
		return v
	}
	h := sample.NewHistogram()
	if err := h.RecordValues(int64(50*m.factor(m.trip, p)*noise*float64(time.Microsecond)), 100); err != nil {
		m.t.Fatal(err)
	}
	e, err := sample.Encode(h)
	if err != nil {
		m.t.Fatal(err)
	}
	v.Latency = e
	return v
}

// sweeps makes that many, writes the file and reads it again.
func (m *meshRun) sweeps(n int) *sample.File {
	m.t.Helper()
	var b strings.Builder
	w := sample.NewWriter(&b)
	nodes := len(m.f.Header.Plan.Mesh.Nodes)
	m.f.End.Sweeps, m.f.End.Rounds = n, n*mesh.Rounds(nodes)
	write := func(err error) {
		if err != nil {
			m.t.Fatal(err)
		}
	}
	write(w.Header(m.f.Header))
	for s := range n {
		order := mesh.NewSweep(nodes, 1, s)
		for r := range order.Rounds() {
			for _, p := range order.Round(r) {
				write(w.Visit(m.visit(s, r, p, "rr")))
				write(w.Visit(m.visit(s, r, p, "bulk")))
				write(w.Visit(m.visit(s, r, sample.Pair{p[1], p[0]}, "bulk")))
			}
		}
	}
	write(w.End(m.f.End))
	f, err := sample.Read(strings.NewReader(b.String()))
	if err != nil {
		m.t.Fatal(err)
	}
	return f
}

// of makes links of one node slower.
func of(node int, x float64) func(a, b int) float64 {
	return func(a, b int) float64 {
		if a == node || b == node {
			return x
		}
		return 1
	}
}

func TestMeshSlowNode(t *testing.T) {
	m := newMesh(t, 3)
	m.trip, m.rate = of(2, 3), of(2, 0.2)
	r := Judge(m.sweeps(6))
	if len(r.Mesh.Faults) != 2 || r.Mesh.Sweeps != 6 {
		t.Fatalf("%d sweeps, faults %+v", r.Mesh.Sweeps, r.Mesh.Faults)
	}
	for i, want := range []MeshFault{{Metric: LatencyP50, Ratio: 3, Slow: 2, Of: 2}, {Metric: Throughput, Ratio: 0.2, Slow: 2, Of: 2}} {
		got := r.Mesh.Faults[i]
		if got.Kind != FaultNode || !slices.Equal(got.Nodes, []string{"c"}) || got.Way != WayBoth || got.Metric != want.Metric ||
			math.Abs(math.Log(got.Ratio/want.Ratio)) > 0.1 || !(*got.Low < want.Ratio && *got.High > want.Ratio) || got.Slow != 2 || got.Of != 2 {
			t.Errorf("fault %+v, want %+v of c", got, want)
		}
	}
	says := strings.Join(r.Findings, "\n")
	for _, want := range []string{"Every visit was witnessed", "c is slow: its round trips take ", " times as long as is typical (2 of 2 links); it sends at 0.2", " and receives at "} {
		if !strings.Contains(says, want) {
			t.Errorf("findings lack %q: %s", want, says)
		}
	}
	x := r.Mesh.Metrics[Throughput]
	if !x.Slow[2][0] || !x.Slow[1][2] || x.Slow[0][1] || math.Abs(*x.Matrix[0][1]-10e9) > 1e9 || x.Matrix[1][1] != nil {
		t.Errorf("throughput %+v", x)
	}
	if e := r.Mesh.Nodes[2].Effects[ThroughputOut]; e.Slow != 2 || e.Of != 2 || math.Abs(e.Ratio-0.2) > 0.03 {
		t.Errorf("sending %+v", e)
	}
}

func TestMeshFindings(t *testing.T) {
	one := func(a, b int, x float64) func(i, j int) float64 {
		return func(i, j int) float64 {
			if i == a && j == b {
				return x
			}
			return 1
		}
	}
	both := func(a, b int, x float64) func(i, j int) float64 {
		return func(i, j int) float64 { return min(one(a, b, x)(i, j), one(b, a, x)(i, j)) }
	}
	for _, tt := range []struct {
		name   string
		nodes  int
		sweeps int
		change func(*meshRun)
		faults int
		says   []string
		codes  []string
	}{
		{"nothing", 4, 6, func(*meshRun) {}, 0, []string{"Nothing is named as slow: no node is 1.25 times slower than is typical beyond the noise, and no link is 1.25 times (round trips) or 1.25 times (throughput) slower than its nodes make it."}, nil},
		{"one-way-of-a-link", 4, 6, func(m *meshRun) { m.rate = one(1, 3, 0.2) }, 1,
			[]string{"The link between b and d is slow, while most other links of both are well: b sends to d at 0.2", "which the way back does not (6 of 6 visits)"}, nil},
		{"link", 5, 6, func(m *meshRun) {
			m.rate = both(0, 4, 0.3)
			m.trip = func(a, b int) float64 { return 4 - 3*(both(0, 4, 0)(a, b)) }
		}, 2,
			[]string{"is slow, while most other links of both are well: its round trips take ", "; its throughput is 0.", ", both ways (6 of 6 visits)."}, nil},
		{"receiving", 5, 6, func(m *meshRun) {
			m.rate = func(_, b int) float64 {
				if b == 3 {
					return 0.25
				}
				return 1
			}
		}, 1, []string{"d is slow: it receives at 0.2", " of the typical rate (4 of 4 links) but sends well."}, nil},
		{"two-nodes", 2, 6, func(m *meshRun) { m.rate = one(0, 1, 0.3) }, 1,
			[]string{"The link between a and b is slow, and which of them it is cannot be told: a sends to b at 0.3", "of the other way's rate"}, []string{"two-nodes"}},
		{"two-nodes-well", 2, 6, func(*meshRun) {}, 0, []string{"Neither way of the link is 1.25 times slower than the other."}, []string{"two-nodes"}},
		{"two-nodes-and-round-trips", 2, 6, func(m *meshRun) {
			m.fail = func(_ int, _ sample.Pair, load string) string { return strings.Repeat("x", count01(load == "bulk")) }
		}, 0, []string{"Round trips between two nodes have nothing to be held against."}, []string{"two-nodes", "failed-visits"}},
		{"group", 8, 6, func(m *meshRun) {
			m.trip = func(a, b int) float64 {
				if a/6 != b/6 {
					return 3
				}
				return 1
			}
		}, 1, []string{"g and h are well among themselves and slow to the others: round trips to those take ", "(12 of 12 links)"}, nil},
		{"one-sweep-of-few", 3, 1, func(m *meshRun) { m.trip = of(2, 3) }, 0, []string{"No node and no link can be named: what was measured, 1 sweep of 3 nodes, says nothing of the noise."}, []string{"few-sweeps"}},
		{"few-sweeps", 4, 3, func(*meshRun) {}, 0, nil, []string{"few-sweeps"}},
		{"one-machine", 4, 6, func(m *meshRun) {
			for i := range m.f.Header.Plan.Mesh.Nodes {
				m.f.Header.Plan.Mesh.Nodes[i].Boot = []string{"x", "y", "x", ""}[i]
				m.f.Header.Plan.Mesh.Nodes[i].MTU = []int{1500, 1500, 0, 9000}[i]
			}
		}, 0, nil, []string{"same-machine", "mtu"}},
		{"left", 4, 6, func(m *meshRun) {
			m.fail = func(sweep int, p sample.Pair, _ string) string {
				if sweep > 3 && (p[0] == 1 || p[1] == 1) {
					return "node b left: no answer for 15 s"
				}
				return ""
			}
		}, 0, []string{"What is shown was witnessed; 18 of 108 visits failed and are left out."}, []string{"failed-visits"}},
		{"nothing-works", 3, 2, func(m *meshRun) { m.fail = func(int, sample.Pair, string) string { return "no route" } }, 0,
			[]string{"Nothing was measured."}, []string{"failed-visits"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMesh(t, tt.nodes)
			tt.change(m)
			r := Judge(m.sweeps(tt.sweeps))
			if len(r.Mesh.Faults) != tt.faults {
				t.Errorf("faults %+v, want %d", r.Mesh.Faults, tt.faults)
			}
			says := strings.Join(r.Findings, "\n")
			for _, want := range tt.says {
				if !strings.Contains(says, want) {
					t.Errorf("findings lack %q:\n%s", want, says)
				}
			}
			if got := codes(r.Warnings); !slices.Equal(got, append([]string{}, tt.codes...)) {
				t.Errorf("warnings %v, want %v", got, tt.codes)
			}
			if _, err := json.Marshal(r); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestMeshFailed(t *testing.T) {
	for _, tt := range []struct {
		name string
		fail func(sweep int, p sample.Pair, load string) string
		want []string // nodes, load, visits, left
	}{
		{"nobody", nil, nil},
		{"never", func(_ int, p sample.Pair, _ string) string {
			return strings.Repeat("x", count01(p[0] == 2 || p[1] == 2))
		}, []string{"[c]  18 false"}},
		{"left", func(s int, p sample.Pair, _ string) string {
			return strings.Repeat("x", count01(s > 0 && (p[0] == 2 || p[1] == 2)))
		}, []string{"[c]  9 true"}},
		{"pair", func(_ int, p sample.Pair, load string) string {
			return strings.Repeat("x", count01(p[0]+p[1] == 1 && load == "bulk"))
		}, []string{"[a b] bulk 4 false"}},
		{"one-way-of-a-pair", func(_ int, p sample.Pair, load string) string {
			return strings.Repeat("x", count01(p[0] == 1 && p[1] == 0))
		}, nil},
		{"now-and-then", func(s int, _ sample.Pair, _ string) string { return strings.Repeat("x", s%2) }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMesh(t, 4)
			m.fail = tt.fail
			f := m.sweeps(2)
			if tt.name == "now-and-then" {
				f.Pairs = append(f.Pairs, f.Pairs[:18]...) // it came back
			}
			var got []string
			for _, x := range Judge(f).Mesh.Failed {
				got = append(got, fmt.Sprint(x.Nodes, " ", x.Load, " ", x.Visits, " ", x.Left))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func count01(is bool) int {
	if is {
		return 1
	}
	return 0
}

// A node of a pair of two cannot be told.
func TestMeshFailedPairOfTwo(t *testing.T) {
	m := newMesh(t, 2)
	m.fail = func(int, sample.Pair, string) string { return "no route" }
	got := Judge(m.sweeps(2)).Mesh.Failed
	if len(got) != 2 || !slices.Equal(got[0].Nodes, []string{"a", "b"}) || got[0].Load != "bulk" || got[1].Load != "rr" {
		t.Errorf("%+v", got)
	}
}

// Retransmissions of what is slow are told, where they are unusual.
func TestMeshRetransmits(t *testing.T) {
	m := newMesh(t, 5)
	m.rate = of(2, 0.2)
	f := m.sweeps(6)
	for i := range f.Pairs {
		if p := f.Pairs[i].Pair; f.Pairs[i].Load == "bulk" && p[0] == 2 {
			f.Pairs[i].Retransmits = 1000
		}
	}
	r := Judge(f)
	if got := strings.Join(r.Findings, " "); !strings.Contains(got, "with 1000 retransmitted segments a visit where 200.0 are usual") {
		t.Errorf("findings: %s", got)
	}
}

func TestMeshConverged(t *testing.T) {
	for _, tt := range []struct {
		nodes, sweeps int
		precision     float64
		want          bool
	}{{3, 12, 0.2, true}, {3, 12, 0.001, false}, {3, 4, 0.2, false}, {2, 12, 0.2, true}, {2, 12, 0.001, false}} {
		f := newMesh(t, tt.nodes).sweeps(tt.sweeps)
		p := f.Header.Plan
		p.Precision = tt.precision
		if got := MeshConverged(p, f.Pairs); got != tt.want {
			t.Errorf("%+v: %t", tt, got)
		}
	}
}

func TestList(t *testing.T) {
	for want, names := range map[string]string{
		"a": "a", "a and b": "a b", "a, b and c": "a b c", "a, b, c, d, e, f, g and 3 others": "a b c d e f g h i j",
	} {
		if got := List(strings.Fields(names)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
