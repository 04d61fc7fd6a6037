package plan

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func meshRequest(nodes int, change func(*MeshRequest)) MeshRequest {
	r := MeshRequest{On: "swarm", Loads: []sample.Load{rr, bulk}, Budget: 60, Precision: 0.02,
		Pin: "auto", Seed: 1}
	for i := range nodes {
		r.Nodes = append(r.Nodes, sample.Node{
			Name: string(rune('a'+i/26)) + string(rune('a'+i%26))})
	}
	if change != nil {
		change(&r)
	}
	return r
}

func TestMesh(t *testing.T) {
	p, err := Mesh(meshRequest(5, func(r *MeshRequest) { r.Sweeps, r.AtOnce = 3, 1 }))
	if err != nil {
		t.Fatal(err)
	}
	if p.Study != sample.StudyMesh || p.Mesh.Mode != "host" || p.Mesh.On != "swarm" ||
		p.Mesh.Sweeps != 3 || p.Mesh.AtOnce != 1 ||
		len(p.Mesh.Nodes) != 5 || len(p.Loads) != 2 || p.Cells == nil || len(p.Cells) > 0 ||
		p.Seed != 1 || p.Pin != "auto" {
		t.Errorf("plan %+v, mesh %+v", p, p.Mesh)
	}
	if got := MeshRounds(p); got != 5 {
		t.Errorf("%d rounds, want 5", got)
	}
}

func TestMeshRefuses(t *testing.T) {
	for _, tt := range []struct {
		want   string
		nodes  int
		change func(*MeshRequest)
	}{
		{"a mesh needs at least two nodes, not 1", 1, nil},
		{"a mesh needs at least two nodes, not 0", 0, nil},
		{"1025 nodes: at most 1024 can be measured", 1025, func(r *MeshRequest) {
			for i := range r.Nodes {
				r.Nodes[i].Name = strings.Repeat("x", i+1)
			}
		}},
		{`two nodes are called "aa", or one has no name`, 3, func(r *MeshRequest) { r.Nodes[2].Name = "aa" }},
		{`two nodes are called "", or one has no name`, 3, func(r *MeshRequest) { r.Nodes[2].Name = "" }},
		{"a mesh without a backend", 3, func(r *MeshRequest) { r.On = "" }},
		{"nothing to measure: no placement, load or backend was given", 3, func(r *MeshRequest) { r.Loads = nil }},
		{"load udp: a mesh takes rr and bulk, each once", 3, func(r *MeshRequest) {
			r.Loads = []sample.Load{{Kind: "udp", Window: 1}}
		}},
		{"load rr: a mesh takes rr and bulk, each once", 3, func(r *MeshRequest) { r.Loads = []sample.Load{rr, rr} }},
		{"load bulk: a mesh measures both directions anyway, one after the other", 3, func(r *MeshRequest) {
			r.Loads = []sample.Load{{Kind: "bulk", Options: sample.BulkOptions{Reverse: true},
				Window: 1}}
		}},
		{"-1 pairs at once: must not be negative", 3, func(r *MeshRequest) { r.AtOnce = -1 }},
		{"-1 sweeps: must not be negative", 3, func(r *MeshRequest) { r.Sweeps = -1 }},
		{"budget 0s: must be more than 0", 3, func(r *MeshRequest) { r.Budget = 0 }},
		{"precision 1: must be between 0 and 1", 3, func(r *MeshRequest) { r.Precision = 1 }},
		{"load rr: window 0s, warm-up 0s: must be positive", 3, func(r *MeshRequest) { r.Loads = []sample.Load{{Kind: "rr"}} }},
	} {
		if _, err := Mesh(meshRequest(tt.nodes, tt.change)); err == nil ||
			err.Error() != tt.want {
			t.Errorf("error %v, want %q", err, tt.want)
		}
	}
}

// A results file with too many sweeps could not be read again.
func TestMeshTooLargeForAFile(t *testing.T) {
	for _, tt := range []struct{ nodes, sweeps, most int }{{2, 1_000_001, 1_000_000},
		{3, 888_889, 888_888}, {1000, 6, 5}, {sample.MaxNodes, 6, 5}} {
		request := func(sweeps int) MeshRequest {
			return meshRequest(tt.nodes, func(r *MeshRequest) {
				for i := range r.Nodes {
					r.Nodes[i].Name = strconv.Itoa(i)
				}
				r.Sweeps = sweeps
			})
		}
		var too *refusal
		hint := fmt.Sprintf("--rounds %d, or fewer nodes or loads", tt.most)
		if _, err := Mesh(request(tt.sweeps)); !errors.As(err, &too) || too.hint != hint {
			t.Errorf("%d sweeps of %d nodes: %v, want %d at most", tt.sweeps, tt.nodes, err,
				tt.most)
		}
		if _, err := Mesh(request(tt.most)); err != nil || tt.most < MinSweeps {
			t.Errorf("%d sweeps of %d nodes: %v", tt.most, tt.nodes, err)
		}
	}
}

func TestMeshRounds(t *testing.T) {
	for _, n := range []int{2, 3, 6, 9} {
		for _, atOnce := range []int{0, 1, 2} {
			p, err := Mesh(meshRequest(n, func(r *MeshRequest) { r.AtOnce = atOnce }))
			if err != nil {
				t.Fatal(err)
			}
			rrs, bulks := map[sample.Pair]int{}, map[sample.Pair]int{}
			phases := 0
			for round := range MeshRounds(p) {
				for _, ph := range MeshRound(p, 2, round) {
					phases++
					if atOnce > 0 && len(ph.Pairs) > atOnce {
						t.Fatalf("%d pairs at once, at most %d", len(ph.Pairs), atOnce)
					}
					busy := map[int]bool{}
					for _, x := range ph.Pairs {
						if busy[x[0]] || busy[x[1]] {
							t.Fatalf("%v: a node is in two pairs", ph.Pairs)
						}
						busy[x[0]], busy[x[1]] = true, true
						if ph.Load.Kind == "rr" {
							rrs[sample.Pair{min(x[0], x[1]), max(x[0], x[1])}]++
						} else {
							bulks[x]++
						}
					}
				}
			}
			if len(rrs) != n*(n-1)/2 || len(bulks) != n*(n-1) {
				t.Errorf("%d nodes: %d pairs of rr, %d of bulk", n, len(rrs), len(bulks))
			}
			for _, m := range []map[sample.Pair]int{rrs, bulks} {
				for x, times := range m {
					if times != 1 {
						t.Errorf("%d nodes: %v is visited %d times", n, x, times)
					}
				}
			}
			each := 1
			if atOnce > 0 {
				each = (n/2 + atOnce - 1) / atOnce
			}
			if want := MeshRounds(p) * 3 * each; phases != want {
				t.Errorf("%d nodes, %d at once: %d phases, want %d", n, atOnce, phases, want)
			}
			want := float64(phases) / 3 * (0.3 + 2*0.35 + 3*meshOverhead)
			if math.Abs(SweepTime(p)-want) > 1e-9 ||
				RoundTime(p)*float64(MeshRounds(p)) != SweepTime(p) {
				t.Errorf("%d nodes, %d at once: a sweep takes %v, want %v", n, atOnce, SweepTime(p),
					want)
			}
		}
	}
}

func TestMeshOfTwoModes(t *testing.T) {
	one, err := Mesh(meshRequest(6, func(r *MeshRequest) { r.AtOnce = 2 }))
	if err != nil {
		t.Fatal(err)
	}
	two, err := Mesh(meshRequest(6, func(r *MeshRequest) {
		r.AtOnce, r.Mode, r.Beside = 2, "pod", "host"
	}))
	if err != nil {
		t.Fatal(err)
	}
	first, all := 0, 0
	for sweep := range 4 {
		for round := range MeshRounds(one) {
			alone, both := MeshRound(one, sweep, round), MeshRound(two, sweep, round)
			if len(both) != 2*len(alone) {
				t.Fatalf("%d phases, want twice %d", len(both), len(alone))
			}
			for i, ph := range alone {
				a, b := both[2*i], both[2*i+1]
				if a.Beside == b.Beside || !slices.Equal(a.Pairs, ph.Pairs) ||
					!slices.Equal(b.Pairs, ph.Pairs) || a.Load.Kind != ph.Load.Kind ||
					b.Load.Kind != ph.Load.Kind {
					t.Errorf("sweep %d, round %d: %+v and %+v for %+v", sweep, round, a, b, ph)
				}
				all++
				if a.Beside {
					first++
				}
			}
		}
	}
	if 2*first != all || SweepTime(two) != 2*SweepTime(one) {
		t.Errorf("%d of %d phases begin with the second mode; %v and %v s", first, all,
			SweepTime(one), SweepTime(two))
	}
	if _, err := Mesh(meshRequest(2, func(r *MeshRequest) {
		r.Mode, r.Beside = "host", "host"
	})); err == nil {
		t.Error("a mode beside itself is planned")
	}
}

func TestMeshPhasesAreShuffled(t *testing.T) {
	p, err := Mesh(meshRequest(4, nil))
	if err != nil {
		t.Fatal(err)
	}
	kinds := func(p sample.Plan, sweep, round int) (out []string) {
		for _, ph := range MeshRound(p, sweep, round) {
			out = append(out, ph.Load.Kind)
		}
		return out
	}
	first := map[string]int{}
	for sweep := range 40 {
		first[kinds(p, sweep, 0)[0]]++
		if !slices.Equal(kinds(p, sweep, 0), kinds(p, sweep, 0)) {
			t.Fatal("the same seed gives two orders")
		}
	}
	if first["rr"] < 4 || first["bulk"] < 12 {
		t.Errorf("rr comes first in %d of 40 rounds, bulk in %d", first["rr"], first["bulk"])
	}
}
