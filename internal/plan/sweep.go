package plan

import (
	"math/rand/v2"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// SweepSchedule is the schedule of one sweep: every pair of nodes once, in rounds in which no node
// is in two pairs, by the circle method of round-robin tournaments. Each sweep draws the nodes'
// places, the order of the rounds and of their pairs, and the clients. Otherwise the same pairs
// would always be measured at the same time, and one fault could look like another.
type SweepSchedule struct {
	nodes  int
	rounds []int // places that the nodes have moved on, by round
	seats  []int // the node on each place; the last keeps it; -1: none
	seed   [2]uint64
}

// SweepRounds returns n-1, or n if n is odd.
func SweepRounds(n int) int {
	if n < 2 {
		return 0
	}
	return n - 1 + n%2
}

// NewSweep returns the schedule of a sweep, counted from 0, of n nodes.
func NewSweep(n int, seed uint64, sweep int) *SweepSchedule {
	s := &SweepSchedule{nodes: n, seed: [2]uint64{seed, uint64(sweep) << 32}}
	rng := rand.New(rand.NewPCG(s.seed[0], s.seed[1]))
	s.seats = rng.Perm(n + n%2)
	for i, node := range s.seats {
		if node == n {
			s.seats[i] = -1
		}
	}
	s.rounds = rng.Perm(SweepRounds(n))
	return s
}

// Round returns the pairs of a round, counted from 0, each with its client first.
func (s *SweepSchedule) Round(round int) []sample.Pair {
	moved, circle := s.rounds[round], len(s.seats)-1
	rng := rand.New(rand.NewPCG(s.seed[0], s.seed[1]|uint64(round+1)))
	out := make([]sample.Pair, 0, s.nodes/2)
	meet := func(a, b int) {
		if a < 0 || b < 0 {
			return
		}
		if rng.IntN(2) == 0 {
			a, b = b, a
		}
		out = append(out, sample.Pair{a, b})
	}
	meet(s.seats[circle], s.seats[moved])
	for k := 1; k <= (circle-1)/2; k++ {
		meet(s.seats[(moved+k)%circle], s.seats[(moved-k+circle)%circle])
	}
	rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}
