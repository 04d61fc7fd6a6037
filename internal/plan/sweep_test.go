package plan

import (
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestSchedule(t *testing.T) {
	sizes := []int{100, 101, 255, 256, 999, 1000}
	for n := 2; n <= 40; n++ {
		sizes = append(sizes, n)
	}
	for _, n := range sizes {
		s := NewSweep(n, uint64(n), n%3)
		want := n - 1
		if n%2 == 1 {
			want = n
		}
		if got := SweepRounds(n); got != want {
			t.Fatalf("%d nodes: %d rounds, want %d", n, got, want)
		}
		met := make([]bool, n*n)
		pairs := 0
		for r := range SweepRounds(n) {
			round := s.Round(r)
			if len(round) != n/2 {
				t.Fatalf("%d nodes, round %d: %d pairs, want %d", n, r, len(round), n/2)
			}
			busy := make([]bool, n)
			for _, p := range round {
				a, b := min(p[0], p[1]), max(p[0], p[1])
				if a < 0 || b >= n || a == b {
					t.Fatalf("%d nodes, round %d: pair %v", n, r, p)
				}
				if busy[a] || busy[b] {
					t.Fatalf("%d nodes, round %d: a node of %v is in two pairs", n, r, p)
				}
				if met[a*n+b] {
					t.Fatalf("%d nodes: %v meets twice", n, p)
				}
				busy[a], busy[b], met[a*n+b] = true, true, true
				pairs++
			}
		}
		if pairs != n*(n-1)/2 {
			t.Fatalf("%d nodes: %d pairs meet, want %d", n, pairs, n*(n-1)/2)
		}
	}
}

func TestScheduleOfNobody(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 0, 2: 1} {
		if got := SweepRounds(n); got != want {
			t.Errorf("%d nodes: %d rounds, want %d", n, got, want)
		}
	}
}

func sweep(n int, seed uint64, number int) (out [][]sample.Pair) {
	s := NewSweep(n, seed, number)
	for r := range SweepRounds(n) {
		out = append(out, s.Round(r))
	}
	return out
}

func TestScheduleFollowsTheSeed(t *testing.T) {
	same := func(a, b [][]sample.Pair) bool {
		return slices.EqualFunc(a, b, func(x, y []sample.Pair) bool { return slices.Equal(x, y) })
	}
	first := sweep(12, 1, 0)
	if !same(first, sweep(12, 1, 0)) {
		t.Error("the same seed gives two schedules")
	}
	if same(first, sweep(12, 2, 0)) || same(first, sweep(12, 1, 1)) {
		t.Error("another seed or sweep gives the same schedule")
	}
}

func TestSweepsDiffer(t *testing.T) {
	const n, sweeps = 8, 40
	beside := map[[4]int]int{}
	client := map[sample.Pair]int{}
	for k := range sweeps {
		for _, round := range sweep(n, 3, k) {
			for i, p := range round {
				client[p]++
				for _, q := range round[:i] {
					a := [2]int{min(p[0], p[1]), max(p[0], p[1])}
					b := [2]int{min(q[0], q[1]), max(q[0], q[1])}
					if b[0] < a[0] {
						a, b = b, a
					}
					beside[[4]int{a[0], a[1], b[0], b[1]}]++
				}
			}
		}
	}
	// Six other nodes make 15 pairs, three of them in the same round.
	for pairs, times := range beside {
		if times > sweeps*3/5 {
			t.Errorf("%v are side by side in %d of %d sweeps", pairs, times, sweeps)
		}
	}
	for p, times := range client {
		if times > sweeps*4/5 || client[sample.Pair{p[1], p[0]}] == 0 {
			t.Errorf("%d is client of %d in %d of %d sweeps", p[0], p[1], times, sweeps)
		}
	}
}
