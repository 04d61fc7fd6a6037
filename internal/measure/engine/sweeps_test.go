package engine

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestMeshEndsWhenItsFileIsFull(t *testing.T) {
	p := sample.Plan{Budget: 1e9, Loads: []sample.Load{{Kind: "rr"}, {Kind: "bulk"}},
		Mesh: &sample.Mesh{Nodes: make([]sample.Node, sample.MaxNodes)}}
	for sweeps, want := range map[int]string{p.MaxSweeps() - 1: "",
		p.MaxSweeps(): sample.EndedBySize} {
		r := &run{Config: Config{Plan: p, Clock: Monotonic{}}, sweepsIn: sweeps}
		r.began = r.Clock.Now()
		got := r.enoughSweeps([]sample.PairVisit{{PairTurn: sample.PairTurn{Sweep: sweeps - 1}}}, 1)
		if got != want {
			t.Errorf("after %d sweeps: ended by %q, want %q", sweeps, got, want)
		}
	}
}
