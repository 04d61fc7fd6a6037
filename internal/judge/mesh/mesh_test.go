package mesh

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

// A round trip takes 50 µs and throughput is 10 Gbit/s, with some noise.
type meshRun struct {
	t    *testing.T
	f    *sample.File
	rng  *rand.Rand
	trip func(a, b int) float64 // factor of a round trip; nil: 1
	rate func(a, b int) float64 // factor of the throughput from a to b; nil: 1
	lose func(a, b int) float64 // retransmitted share of a's data to b; nil: 0
	fail func(sweep int, p sample.Pair, load string) string
	left string // node that the engine reports as gone, for failed visits
}

func newMesh(t *testing.T, nodes int) *meshRun {
	t.Helper()
	m := &meshRun{t: t, rng: rand.New(rand.NewPCG(1, 2)), f: &sample.File{
		Header: sample.Header{Schema: sample.Schema,
			Plan: sample.Plan{Study: sample.StudyMesh, Seed: 1, Budget: 60, Precision: 0.05,
				Loads: []sample.Load{{Kind: "rr", Options: sample.RROptions{
					Messages: sample.Messages{Request: 1, Reply: 1}}, Window: 1},
					{Kind: "bulk", Streams: 1, Window: 1}},
				Cells: []sample.Cell{}, Mesh: &sample.Mesh{Mode: "host", On: "swarm"}}},
		End: sample.End{Reason: sample.EndedByRounds, Elapsed: 12}}}
	for i := range nodes {
		m.f.Header.Plan.Mesh.Nodes = append(m.f.Header.Plan.Mesh.Nodes,
			sample.Node{Name: string(rune('a' + i))})
	}
	return m
}

func (m *meshRun) factor(f func(a, b int) float64, p sample.Pair) float64 {
	if f == nil {
		return 1
	}
	return f(p[0], p[1])
}

func (m *meshRun) visit(sweep, round int, p sample.Pair, load string) sample.Visit {
	m.t.Helper()
	noise := math.Exp(0.03 * m.rng.NormFloat64())
	v := sample.Visit{Turn: sample.Turn{Round: round,
		PairTurn: sample.PairTurn{Sweep: sweep, Pair: p, Load: load}},
		Ends:  sample.Ends{Client: sample.Party{Window: 1}, Server: sample.Party{Window: 1}},
		Proof: sample.Proof{Witness: sample.Witness{OK: true}}}
	if m.fail != nil {
		if v.Failure = m.fail(sweep, p, load); v.Failure != "" {
			v.Left = m.left
			return v
		}
	}
	if load == "bulk" {
		v.Server.Received = int64(10e9 / 8 * m.factor(m.rate, p) * noise)
		v.Client.TCP.MSS = 1448
		if m.lose != nil {
			v.Client.TCP.Retransmits = int64(m.lose(p[0], p[1]) * float64(v.Server.Received) / 1448)
		}
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

func (m *meshRun) sweeps(n int) *sample.File {
	m.t.Helper()
	var b strings.Builder
	w := sample.NewWriter(&b)
	nodes := len(m.f.Header.Plan.Mesh.Nodes)
	m.f.End.Sweeps, m.f.End.Rounds = n, n*plan.SweepRounds(nodes)
	write := func(err error) {
		if err != nil {
			m.t.Fatal(err)
		}
	}
	write(w.Header(m.f.Header))
	for s := range n {
		order := plan.NewSweep(nodes, 1, s)
		for r := range plan.SweepRounds(nodes) {
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

func ofNode(node int, x float64) func(a, b int) float64 {
	return func(a, b int) float64 {
		if a == node || b == node {
			return x
		}
		return 1
	}
}

func TestMeshSlowNode(t *testing.T) {
	m := newMesh(t, 3)
	m.trip, m.rate = ofNode(2, 3), ofNode(2, 0.2)
	r := Judge(m.sweeps(6))
	if len(r.Mesh.Faults) != 2 || r.Mesh.Sweeps != 6 {
		t.Fatalf("%d sweeps, faults %+v", r.Mesh.Sweeps, r.Mesh.Faults)
	}
	for i, want := range []Fault{{Metric: workload.LatencyP50, Ratio: 3, Slow: 2, Of: 2},
		{Metric: workload.Throughput, Ratio: 0.2, Slow: 2, Of: 2}} {
		got := r.Mesh.Faults[i]
		if got.Kind != FaultNode || !slices.Equal(got.Nodes, []string{"c"}) || got.Way != WayBoth ||
			got.Metric != want.Metric ||
			math.Abs(math.Log(got.Ratio/want.Ratio)) > 0.1 ||
			!(*got.Low < want.Ratio && *got.High > want.Ratio) || got.Slow != 2 || got.Of != 2 {
			t.Errorf("fault %+v, want %+v of c", got, want)
		}
	}
	if f := r.Found; len(f) != 2 || f[0].Code != AtFault || !slices.Equal(f[0].Rows, []int{0, 1}) ||
		f[1].Code != VisitsWitnessed {
		t.Errorf("found %+v", f)
	}
	x := r.Mesh.Metrics[workload.Throughput]
	if !x.Slow[2][0] || !x.Slow[1][2] || x.Slow[0][1] || math.Abs(*x.Matrix[0][1]-10e9) > 1e9 ||
		x.Matrix[1][1] != nil {
		t.Errorf("throughput %+v", x)
	}
	for name, e := range r.Mesh.Nodes[0].Effects {
		if e.Slow != 0 {
			t.Errorf("%s of a, a well node: %d slow links, which are c's", name, e.Slow)
		}
	}
	if e := r.Mesh.Nodes[2].Effects[workload.ThroughputOut]; e.Slow != 2 || e.Of != 2 ||
		math.Abs(e.Ratio-0.2) > 0.03 {
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
		faults string
		found  []string // but for the witness
		codes  []string
	}{
		{"nothing", 4, 6, func(*meshRun) {}, "", []string{NoFault, NoFault, NothingSlow},
			nil},
		{"one-way-of-a-link", 4, 6, func(m *meshRun) { m.rate = one(1, 3, 0.2) },
			"link b d out throughput 6/6", nil, nil},
		{"link", 5, 6, func(m *meshRun) {
			m.rate = both(0, 4, 0.3)
			m.trip = func(a, b int) float64 { return 4 - 3*(both(0, 4, 0)(a, b)) }
		}, "link a e both latency_p50 6/6, link a e both throughput 6/6", nil, nil},
		{"receiving", 5, 6, func(m *meshRun) {
			m.rate = func(_, b int) float64 {
				if b == 3 {
					return 0.25
				}
				return 1
			}
		}, "node d in throughput 4/4", nil, nil},
		{"two-nodes", 2, 6, func(m *meshRun) { m.rate = one(0, 1, 0.3) },
			"link a b out throughput 6/6", nil, []string{"two-nodes"}},
		{"two-nodes-well", 2, 6, func(*meshRun) {}, "",
			[]string{NeitherWay, NotComparable, NeitherWaySlow}, []string{"two-nodes"}},
		{"two-nodes-and-round-trips", 2, 6, func(m *meshRun) {
			m.fail = func(_ int, _ sample.Pair, load string) string {
				return strings.Repeat("x", count01(load == "bulk"))
			}
		}, "", []string{PairUnreached, NotComparable, OnePairAlone, PairsWithoutResult},
			[]string{"two-nodes", "failed-visits"}},
		{"group", 8, 6, func(m *meshRun) {
			m.trip = func(a, b int) float64 {
				if a/6 != b/6 {
					return 3
				}
				return 1
			}
		}, "group g h both latency_p50 12/12", nil, nil},
		{"one-sweep-of-few", 3, 1, func(m *meshRun) {
			m.trip = ofNode(2, 3)
		}, "", []string{TooFewSweeps, TooFewSweeps, NoiseUnknown}, []string{"few-sweeps"}},
		{"few-sweeps", 4, 3, func(*meshRun) {}, "", []string{NoFault, NoFault, NothingSlow},
			[]string{"few-sweeps"}},
		{"one-machine", 4, 6, func(m *meshRun) {
			for i := range m.f.Header.Plan.Mesh.Nodes {
				m.f.Header.Plan.Mesh.Nodes[i].Boot = []string{"x", "y", "x", ""}[i]
				m.f.Header.Plan.Mesh.Nodes[i].MTU = []int{1500, 1500, 0, 9000}[i]
			}
		}, "", []string{NoFault, NoFault, NothingSlow}, []string{"same-machine", "mtu"}},
		{"left", 4, 6, func(m *meshRun) {
			m.fail = func(sweep int, p sample.Pair, _ string) string {
				if sweep > 3 && (p[0] == 1 || p[1] == 1) {
					return "node b left: no answer for 15 s"
				}
				return ""
			}
		}, "", []string{NodeLeft, NothingElse, NothingElse, NothingSlow},
			[]string{"failed-visits"}},
		{"link-that-loses", 4, 6, func(m *meshRun) {
			m.lose = func(a, b int) float64 { return 0.01 - both(0, 2, 0)(a, b)/100 }
		}, "link a c both retransmission_rate 6/6", nil, nil},
		{"way-that-loses", 2, 6, func(m *meshRun) {
			m.lose = func(a, _ int) float64 { return float64(a) / 50 }
		}, "link b a out retransmission_rate 6/6", nil, []string{"two-nodes"}},
		{"slow-and-loses", 5, 6, func(m *meshRun) {
			m.rate = ofNode(2, 0.2)
			m.lose = func(a, b int) float64 { return 0.03 * float64(count01(b == 2)) }
		}, "node c both throughput 4/4, node c in retransmission_rate 4/4", nil, nil},
		{"group-that-loses", 8, 6, func(m *meshRun) {
			m.lose = func(a, b int) float64 { return 0.01 * float64(count01(a/6 != b/6)) }
		}, "group g h both retransmission_rate 12/12", nil, nil},
		{"nothing-works", 3, 2, func(m *meshRun) {
			m.fail = func(int, sample.Pair, string) string { return "no route" }
		}, "", []string{analysis.NothingMeasured}, []string{"failed-visits"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMesh(t, tt.nodes)
			tt.change(m)
			r := Judge(m.sweeps(tt.sweeps))
			var faults []string
			for _, x := range r.Mesh.Faults {
				faults = append(faults,
					fmt.Sprintf("%s %s %s %s %d/%d", x.Kind, strings.Join(x.Nodes, " "),
						x.Way, x.Metric, x.Slow, x.Of))
			}
			if got := strings.Join(faults, ", "); got != tt.faults {
				t.Errorf("faults %q, want %q", got, tt.faults)
			}
			if tt.found == nil { // faults, all of the same
				tt.found = []string{AtFault}
			}
			var found []string
			for _, f := range r.Found {
				if f.Code != VisitsWitnessed && f.Code != VisitsFailed {
					found = append(found, f.Code)
				}
			}
			if !slices.Equal(found, tt.found) {
				t.Errorf("found %q, want %q", found, tt.found)
			}
			if got := judgetest.Codes(r.Warnings); !slices.Equal(got,
				append([]string{}, tt.codes...)) {
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
		want []string
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
		{"now-and-then", func(s int, _ sample.Pair, _ string) string {
			return strings.Repeat("x", s%2)
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMesh(t, 4)
			m.fail = tt.fail
			f := m.sweeps(2)
			if tt.name == "now-and-then" {
				f.Pairs = append(f.Pairs, f.Pairs[:18]...)
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

func TestMeshFailedPairOfTwo(t *testing.T) {
	m := newMesh(t, 2)
	m.fail = func(int, sample.Pair, string) string { return "no route" }
	got := Judge(m.sweeps(2)).Mesh.Failed
	if len(got) != 2 || !slices.Equal(got[0].Nodes, []string{"a", "b"}) || got[0].Load != "bulk" ||
		got[1].Load != "rr" {
		t.Errorf("%+v", got)
	}
}

func TestMeshLeft(t *testing.T) {
	for _, tt := range []struct {
		name  string
		nodes int
		left  string
		fails func(sweep int, p sample.Pair, load string) bool
		want  []Failed
		code  string
	}{
		{"in-the-last-round-of-two", 2, "b", func(s int, _ sample.Pair, load string) bool {
			return s == 2 && load == "bulk"
		},
			[]Failed{{Nodes: []string{"b"}, Visits: 2, Left: true, Reason: "x"}}, NodeLeft},
		{"in-the-last-sweep-of-three", 3, "c", func(s int, p sample.Pair, _ string) bool {
			return s == 2 && p[0]+p[1] == 3
		},
			[]Failed{{Nodes: []string{"c"}, Visits: 3, Left: true, Reason: "x"}}, NodeLeft},
		{"nobody-knows-who", 3, "", func(s int, p sample.Pair, _ string) bool {
			return s == 2 && p[0]+p[1] == 3
		}, []Failed{}, NoFault},
		{"a-link", 4, "", func(s int, p sample.Pair, load string) bool {
			return s > 0 && p[0]+p[1] == 1 && load == "rr"
		},
			[]Failed{{Nodes: []string{"a", "b"}, Load: "rr", Visits: 2, Left: true, Reason: "x"}},
			PairParted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMesh(t, tt.nodes)
			m.left = tt.left
			m.fail = func(s int, p sample.Pair, load string) string {
				return strings.Repeat("x", count01(tt.fails(s, p, load)))
			}
			f := m.sweeps(3)
			if tt.name == "in-the-last-sweep-of-three" { // the pair met last
				slices.SortStableFunc(f.Pairs, func(a, b sample.PairVisit) int {
					return count01(a.Failure != "") - count01(b.Failure != "")
				})
			}
			r := Judge(f)
			if !reflect.DeepEqual(r.Mesh.Failed, tt.want) {
				t.Errorf("%+v, want %+v", r.Mesh.Failed, tt.want)
			}
			if r.Found[0].Code != tt.code {
				t.Errorf("found %+v, want %s first", r.Found, tt.code)
			}
		})
	}
}

func TestMeshOneStory(t *testing.T) {
	slow := func(a, b int) float64 {
		return 1 + 4*float64(count01(min(a, b) == 1 && max(a, b) == 4))
	}
	for sweeps, named := range map[int]int{1: 0, 6: 1} { // one visit proves nothing
		m := newMesh(t, 8)
		m.trip = slow
		r := Judge(m.sweeps(sweeps)).Mesh
		for i, n := range r.Nodes {
			if got, want := n.Effects[workload.LatencyP50].Slow, named*count01(i == 1 || i == 4); got != want {
				t.Errorf("%d sweeps: the table counts %d slow links of %s, %d are named", sweeps,
					got, n.Name, want)
			}
		}
		if len(r.Faults) != named || r.Doubtful != 1-named {
			t.Errorf("%d sweeps: %+v, %d doubtful", sweeps, r.Faults, r.Doubtful)
		}
	}
	m := newMesh(t, 9)
	m.rate = func(a, b int) float64 { return min(ofNode(0, 0.5)(a, b), ofNode(4, 0.2)(a, b)) }
	r := Judge(m.sweeps(5)).Mesh
	marked := r.Metrics[workload.Throughput].Slow
	for _, i := range []int{0, 4} {
		n := 0
		for _, is := range marked[i] {
			n += count01(is)
		}
		if e := r.Nodes[i].Effects[workload.ThroughputOut]; e.Slow != 8 || n != e.Slow {
			t.Errorf("%s sends slowly on %d of %d links, %d are marked", r.Nodes[i].Name, e.Slow,
				e.Of, n)
		}
	}
	for _, x := range r.Faults {
		if x.Slow != 8 || x.Of != 8 {
			t.Errorf("%+v", x)
		}
	}
}

func TestMeshLoss(t *testing.T) {
	m := newMesh(t, 5)
	m.lose = func(a, b int) float64 { return 0.02 * float64(count01(a == 1 && b == 3)) }
	r := Judge(m.sweeps(6)).Mesh
	if len(r.Faults) != 1 {
		t.Fatalf("%+v", r.Faults)
	}
	x, all := r.Faults[0], r.Metrics[workload.RetransmissionRate]
	if x.Kind != FaultLink || x.Metric != workload.RetransmissionRate || x.Way != WayOut ||
		!slices.Equal(x.Nodes, []string{"b", "d"}) ||
		math.Abs(*x.RateOut-0.0196) > 1e-4 || *x.RateIn != 0 || x.Ratio != 0 ||
		!(*x.Low <= *x.RateOut && *x.High >= *x.RateOut) {
		t.Errorf("%+v", x)
	}
	if all.Unit != "1" || all.Load != "bulk" || all.Slowest != *x.RateOut ||
		all.SlowestLink != [2]string{"b", "d"} || all.Fastest != 0 ||
		math.Abs(*all.NamedFrom-0.001) > 1e-4 || *all.Matrix[1][3] != *x.RateOut ||
		!all.Slow[1][3] || all.Slow[3][1] {
		t.Errorf("%+v", all)
	}
}

func TestMeshConverged(t *testing.T) {
	for _, tt := range []struct {
		nodes, sweeps int
		precision     float64
		want          bool
	}{{3, 12, 0.2, true}, {3, 12, 0.001, false}, {3, 4, 0.2, false}, {2, 12, 0.2, true},
		{2, 12, 0.001, false}} {
		f := newMesh(t, tt.nodes).sweeps(tt.sweeps)
		p := f.Header.Plan
		p.Precision = tt.precision
		if got := Converged(p, f.Pairs); got != tt.want {
			t.Errorf("%+v: %t", tt, got)
		}
	}
}
