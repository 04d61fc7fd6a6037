package sample

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
)

const meshHeader = `{"header":{"schema":"` + Schema +
	`","plan":{"study":"mesh","loads":[{"kind":"rr"},{"kind":"bulk"}],"cells":[],` +
	`"mesh":{"nodes":[{"name":"a"},{"name":"b"},{"name":"c"}],"mode":"host","on":"swarm"}}}}`

func meshVisit(t testing.TB, sweep, round int, p Pair, load string) Visit {
	t.Helper()
	v := Visit{Turn: Turn{Round: round, At: 1.5,
		PairTurn: PairTurn{Sweep: sweep, Pair: p, Load: load}},
		Ends: Ends{Client: Party{Window: 0.25, Sent: 1 << 28,
			TCP: TCPInfo{Retransmits: 3, MSS: 1448}},
			Server: Party{Window: 0.25, Received: 250e6, TCP: TCPInfo{Retransmits: 1}}},
		Metered: Metered{Machine: []CPU{{User: 1}}, Elapsed: 0.25},
		Proof: Proof{Witness: Witness{OK: true},
			Hops: []HopReading{{Kind: "wire", Name: "eth0", Where: "node a"}}}}
	if load == "rr" {
		h := NewHistogram()
		for i := range int64(1000) {
			if err := h.RecordValue(55_000 + 10*i); err != nil {
				t.Fatal(err)
			}
		}
		e, err := Encode(h)
		if err != nil {
			t.Fatal(err)
		}
		v.Latency = e
	}
	return v
}

func meshFile(t testing.TB) *File {
	f := &File{Header: Header{Schema: Schema,
		Plan: Plan{Study: StudyMesh, Seed: 1, Budget: 60, Precision: 0.02, Cells: []Cell{},
			Loads: []Load{{Kind: "rr", Options: RROptions{}},
				{Kind: "bulk", Options: BulkOptions{}}},
			Mesh: &Mesh{Mode: "host", On: "swarm", AtOnce: 1, Sweeps: 2,
				Nodes: []Node{{Name: "a", ID: "x1", Address: "10.0.0.1", Kernel: "6.1",
					CPUModel: "Xeon", CPUs: 4, MTU: 1500, Boot: "b-1"}, {Name: "b"},
					{Name: "c"}}}}},
		End: End{Reason: EndedByRounds, Rounds: 6, Sweeps: 2, Elapsed: 9}}
	for s := range 2 {
		for r, p := range []Pair{{0, 1}, {2, 0}, {1, 2}} {
			f.Visits = append(f.Visits, meshVisit(t, s, r, p, "rr"), meshVisit(t, s, r, p, "bulk"),
				meshVisit(t, s, r, Pair{p[1], p[0]}, "bulk"))
		}
	}
	return f
}

func TestMeshRoundTrip(t *testing.T) {
	f := meshFile(t)
	full, err := Read(strings.NewReader(written(t, f)))
	if err != nil {
		t.Fatal(err)
	}
	if len(full.Visits) != 0 || len(full.Pairs) != len(f.Visits) || full.End.Sweeps != 2 ||
		!reflect.DeepEqual(full.Header.Plan, f.Header.Plan) {
		t.Fatalf("%d visits, %d of pairs, %+v, plan %+v", len(full.Visits), len(full.Pairs),
			full.End, full.Header.Plan)
	}
	for i, want := range f.Visits {
		got := full.Pairs[i]
		if got.Pair != want.Pair || got.Sweep != want.Sweep || got.Round != want.Round ||
			got.Load != want.Load || got.Failure != "" || got.Retransmits != 4 ||
			got.Segments != map[string]int64{"bulk": 250_000_000 / 1448}[want.Load] {
			t.Errorf("%+v of %+v", got, want)
		}
		x := map[string]float64{"rr": 60e-6, "bulk": 8e9}[want.Load]
		if math.Abs(got.Value/x-1) > 0.002 {
			t.Errorf("%s: %v, want %v", want.Load, got.Value, x)
		}
	}
	for i := range f.Visits {
		if v := f.Visits[i].ForMesh(fullNodes); !reflect.DeepEqual(v, f.Visits[i]) {
			t.Errorf("of few nodes, a visit is changed: %+v", v)
		}
		f.Visits[i] = f.Visits[i].ForMesh(fullNodes + 1)
	}
	brief, err := Read(strings.NewReader(written(t, f)))
	if err != nil || !reflect.DeepEqual(brief, full) {
		t.Errorf("brief: %v, %+v\nfull: %+v", err, brief.Pairs[0], full.Pairs[0])
	}
}

func TestBriefVisitIsSmall(t *testing.T) {
	const most = 250 // bytes
	for _, load := range []string{"rr", "bulk"} {
		v := meshVisit(t, 12, 998, Pair{999, 998}, load)
		v.At = 12345.678901234
		b, err := json.Marshal(line{Visit: ptr(v.ForMesh(1000))})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s", b)
		if len(b) > most {
			t.Errorf("%d bytes, at most %d: %s", len(b), most, b)
		}
	}
}

func ptr[T any](x T) *T { return &x }

func TestPairVisit(t *testing.T) {
	rr := func(change func(*Visit)) Visit {
		v := meshVisit(t, 0, 0, Pair{0, 1}, "rr")
		change(&v)
		return v
	}
	for _, tt := range []struct {
		name    string
		v       Visit
		failure string
	}{
		{"good", rr(func(*Visit) {}), ""},
		{"failed", rr(func(v *Visit) { v.Failure = "node b left" }), "node b left"},
		{"not-witnessed", rr(func(v *Visit) {
			v.Witness = Witness{Evidence: "lo counted nothing"}
		}), "the path was not witnessed: lo counted nothing"},
		{"no-latency", rr(func(v *Visit) { v.Latency = nil }), "nothing came through"},
		{"bad-latency", rr(func(v *Visit) {
			v.Latency = ptr(EncodedHisto("HISTFAAA"))
		}), "nothing came through"},
		{"no-bytes", Visit{Turn: Turn{PairTurn: PairTurn{Load: "bulk"}},
			Ends: Ends{Server: Party{Window: 1}}, Proof: Proof{Witness: Witness{OK: true}}},
			"nothing came through"},
		{"no-window", Visit{Turn: Turn{PairTurn: PairTurn{Load: "bulk"}},
			Ends: Ends{Server: Party{Received: 9}}, Proof: Proof{Witness: Witness{OK: true}}},
			"nothing came through"},
		{"absurd-value", Visit{Turn: Turn{PairTurn: PairTurn{Load: "bulk"}},
			Proof:   Proof{Witness: Witness{OK: true}},
			Foreign: Foreign{Values: map[string]float64{"throughput": 1e30}}},
			"nothing came through"},
		{"tiny-value", Visit{Turn: Turn{PairTurn: PairTurn{Load: "rr"}},
			Proof:   Proof{Witness: Witness{OK: true}},
			Foreign: Foreign{Values: map[string]float64{"latency_p50": 5e-324}}},
			"nothing came through"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for nodes, v := range map[int]Visit{3: tt.v, 1000: tt.v.ForMesh(1000)} {
				got := v.PairVisit()
				if got.Failure != tt.failure || (got.Value > 0) == (tt.failure != "") {
					t.Errorf("of %d nodes: %+v, want failure %q", nodes, got, tt.failure)
				}
			}
		})
	}
}

func TestReadMesh(t *testing.T) {
	visit := func(s string) string { return `{"visit":{` + s + `}}` }
	header := func(s string) string {
		return `{"header":{"schema":"` + Schema + `","plan":{` + s + `}}}`
	}
	const rr = `"load":"rr","witness":{"ok":true},"values":{"latency_p50":0.00006}`
	for _, tt := range []struct {
		name  string
		lines []string
		fails string
	}{
		{"good", []string{meshHeader, visit(`"pair":[0,2],` + rr)}, ""},
		{"failed", []string{meshHeader, visit(
			`"pair":[1,2],"load":"bulk","left":"c","failure":"left"`)}, ""},
		{"no-pair", []string{meshHeader, visit(rr)}, "line 2: pair [0 0] is not in the " +
			"plan, which has 3 nodes"},
		{"with-itself", []string{meshHeader, visit(`"pair":[1,1],` + rr)},
			"line 2: pair [1 1] is not in the plan, which has 3 nodes"},
		{"beyond", []string{meshHeader, visit(`"pair":[1,3],` + rr)},
			"line 2: pair [1 3] is not in the plan, which has 3 nodes"},
		{"negative", []string{meshHeader, visit(`"pair":[-1,1],` + rr)},
			"line 2: pair [-1 1] is not in the plan, which has 3 nodes"},
		{"cell", []string{meshHeader, visit(`"cell":1,"pair":[0,1],` + rr)},
			"line 2: a visit to a pair has cell 1"},
		{"load", []string{meshHeader, visit(`"pair":[0,1],"load":"udp"`)},
			`line 2: load "udp" is not in the plan`},
		{"sweep", []string{meshHeader, visit(`"pair":[0,1],"sweep":-1,` + rr)},
			"line 2: impossible sweep -1"},
		{"round", []string{meshHeader, visit(`"pair":[0,1],"round":-1,` + rr)},
			"line 2: impossible round -1"},
		{"time", []string{meshHeader, visit(`"pair":[0,1],"elapsed_s":-1,` + rr)},
			"line 2: impossible time -1"},
		{"pair-of-a-comparison", []string{okHeader, visit(`"cell":1,"pair":[0,1],` + rr)},
			"line 2: a visit to a pair, but the plan has no nodes"},
		{"no-nodes", []string{header(`"study":"mesh"`)}, "line 1: a mesh without nodes"},
		{"one-node", []string{header(`"study":"mesh","mesh":{"nodes":[{}]}`)},
			"line 1: a mesh of 1 nodes, from 2 to 1024 are read"},
		{"too-many", []string{header(`"study":"mesh","mesh":{"nodes":[` +
			strings.Repeat("{},", MaxNodes) + `{}]}`)}, "line 1: a mesh of 1025 nodes, " +
			"from 2 to 1024 are read"},
		{"another-study", []string{header(`"study":"scale","mesh":{"nodes":[{},{}]}`)},
			`line 1: a study "scale" with nodes`},
		{"cells", []string{header(`"study":"mesh","cells":[{}],"mesh":{"nodes":[{},{}]}`)},
			"line 1: a mesh with cells"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := Read(strings.NewReader(strings.Join(tt.lines, "\n") + "\n"))
			if tt.fails == "" {
				if err != nil || len(f.Pairs) != 1 {
					t.Fatalf("%v, %+v", err, f)
				}
				return
			}
			if err == nil || err.Error() != tt.fails {
				t.Errorf("error %v, want %q", err, tt.fails)
			}
		})
	}
}

func TestMeshCutShort(t *testing.T) {
	text := written(t, meshFile(t))
	lines := strings.SplitAfter(text, "\n")
	for visits, want := range map[int][2]int{0: {0, 0}, 2: {0, 0}, 3: {1, 0}, 8: {2, 0}, 9: {3, 1},
		17: {5, 1}, 18: {6, 2}} {
		f, err := Read(strings.NewReader(strings.Join(lines[:1+visits], "")))
		if err != nil || f.End.Rounds != want[0] || f.End.Sweeps != want[1] || !f.Truncated {
			t.Errorf("%d visits: %v, %+v, want %v rounds and sweeps", visits, err, f.End, want)
		}
	}
}

// A reader without meshes fails because the file has visits and no cells.
func TestOlderReadersRefuseAMesh(t *testing.T) {
	b, err := json.Marshal(meshVisit(t, 0, 0, Pair{0, 1}, "rr").ForMesh(1000))
	if err != nil {
		t.Fatal(err)
	}
	var old struct {
		Cell *int `json:"cell"`
	}
	if err := json.Unmarshal(b, &old); err != nil || old.Cell == nil || *old.Cell != 0 {
		t.Errorf("%v: %s has no cell 0", err, b)
	}
	if err := (Visit{}).check(len(meshFile(t).Header.Plan.Cells)); err == nil {
		t.Error("cell 0 of no cells is taken")
	}
}

func BenchmarkReadMesh(b *testing.B) {
	f := meshFile(b)
	var text bytes.Buffer
	w := NewWriter(&text)
	if err := w.Header(f.Header); err != nil {
		b.Fatal(err)
	}
	for i := range 30_000 {
		v := f.Visits[i%len(f.Visits)]
		v.At = float64(i) / 7
		if err := w.Visit(v.ForMesh(1000)); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		if _, err := Read(bytes.NewReader(text.Bytes())); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/30_000, "ns/visit")
}
