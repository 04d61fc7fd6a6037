package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/plan"
)

type lossy struct {
	nodes int
	// usual is the retransmission rate of all links; its logarithm varies by spread. bursts is the
	// share of visits that also lose burst.
	usual, spread, bursts, burst float64
	segments                     float64
	rate                         func(a, b int) float64
	seed                         uint64
}

func (c lossy) run(sweeps int) []Sent {
	rng := rand.New(rand.NewPCG(c.seed, 11))
	var out []Sent
	for s := range sweeps {
		sweep := plan.NewSweep(c.nodes, c.seed, s)
		for r := range plan.SweepRounds(c.nodes) {
			for _, p := range sweep.Round(r) {
				for range 2 {
					p[0], p[1] = p[1], p[0]
					rate := c.usual * math.Exp(c.spread*rng.NormFloat64())
					if rng.Float64() < c.bursts {
						rate += c.burst * rng.Float64()
					}
					if c.rate != nil {
						rate += c.rate(p[0], p[1])
					}
					n := c.segments * (0.5 + rng.Float64())
					mean := min(0.9, rate) * n
					again := max(0, mean+math.Sqrt(mean)*rng.NormFloat64())
					out = append(out, Sent{p, s, r, int64(n - again), int64(again)})
				}
			}
		}
	}
	return out
}

// These networks have no fault.
var sound = map[string]lossy{
	"clean":  {segments: 50e3},
	"queues": {segments: 200e3, usual: 0.002, spread: 0.8},
	"bursts": {segments: 200e3, bursts: 0.02, burst: 0.05},
	"slow":   {segments: 300, usual: 0.005, spread: 0.5},
}

func TestLoss(t *testing.T) {
	where := func(x float64, is func(a, b int) bool) func(a, b int) float64 {
		return func(a, b int) float64 {
			if is(a, b) {
				return x
			}
			return 0
		}
	}
	for _, tt := range []struct {
		name   string
		on     string
		nodes  int
		sweeps int
		rate   func(a, b int) float64
		want   []Fault // kind, nodes, out, in
	}{
		{"nothing-2", "clean", 2, 6, nil, nil},
		{"nothing-3", "clean", 3, 5, nil, nil},
		{"nothing-queues-3", "queues", 3, 5, nil, nil},
		{"nothing-queues-12", "queues", 12, 4, nil, nil},
		{"nothing-bursts-20", "bursts", 20, 3, nil, nil},
		{"nothing-slow-12", "slow", 12, 5, nil, nil},
		{"all-lose", "clean", 6, 5, where(0.02, func(int, int) bool { return true }), nil},
		{"harmless", "clean", 6, 5, where(0.0004, func(a, b int) bool { return a+b == 3 }), nil},
		{"way-of-2", "clean", 2, 6, where(0.01, func(a, _ int) bool {
			return a == 1
		}), []Fault{{Kind: LinkWay, Nodes: []int{1, 0}, Out: true}}},
		{"link-of-3", "clean", 3, 5, where(0.01, func(a, b int) bool {
			return a+b == 2
		}), []Fault{{Kind: Link, Nodes: []int{0, 2}, Out: true, In: true}}},
		{"link-of-4", "clean", 4, 5, where(0.01, func(a, b int) bool {
			return a+b == 5
		}), []Fault{{Kind: Link, Nodes: []int{2, 3}, Out: true, In: true}}},
		{"way-of-4-of-little", "clean", 4, 6, where(0.002, func(a, b int) bool {
			return a == 3 && b == 1
		}), []Fault{{Kind: LinkWay, Nodes: []int{3, 1}, Out: true}}},
		{"link-among-queues", "queues", 8, 5, where(0.03, func(a, b int) bool {
			return a+b == 13
		}), []Fault{{Kind: Link, Nodes: []int{6, 7}, Out: true, In: true}}},
		{"link-among-bursts", "bursts", 8, 5, where(0.01, func(a, b int) bool {
			return a+b == 1
		}), []Fault{{Kind: Link, Nodes: []int{0, 1}, Out: true, In: true}}},
		{"node", "clean", 5, 5, where(0.01, func(a, b int) bool {
			return a == 2 || b == 2
		}), []Fault{{Kind: Node, Nodes: []int{2}, Out: true, In: true}}},
		{"node-of-3", "clean", 3, 5, where(0.01, func(a, b int) bool {
			return a == 1 || b == 1
		}), []Fault{{Kind: Node, Nodes: []int{1}, Out: true, In: true}}},
		{"receiving", "queues", 6, 5, where(0.05, func(_, b int) bool {
			return b == 4
		}), []Fault{{Kind: Direction, Nodes: []int{4}, In: true}}},
		{"group", "clean", 8, 4, where(0.01, func(a, b int) bool {
			return a/6 != b/6
		}), []Fault{{Kind: Apart, Nodes: []int{6, 7}, Out: true, In: true}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wrong := 0
			const seeds = 10
			for seed := range uint64(seeds) {
				c := sound[tt.on]
				c.nodes, c.rate, c.seed = tt.nodes, tt.rate, seed
				by, _ := Faults(Loss(c.nodes, c.run(tt.sweeps)))
				same := func(a, b Fault) bool {
					if a.Kind == Link {
						slices.Sort(a.Nodes) // the worse direction is first
					}
					return a.Kind == b.Kind && slices.Equal(a.Nodes, b.Nodes) && a.Out == b.Out &&
						a.In == b.In
				}
				if !slices.EqualFunc(by[0], tt.want, same) {
					wrong++
					t.Logf("seed %d: %+v", seed, by[0])
				}
			}
			if wrong > 1 { // chance may add one
				t.Errorf("%d of %d runs are misjudged", wrong, seeds)
			}
		})
	}
}

func TestLossRate(t *testing.T) {
	c := sound["clean"]
	c.nodes, c.rate = 5, func(a, b int) float64 {
		if a+b == 7 {
			return 0.01
		}
		return 0
	}
	f := Loss(c.nodes, c.run(6))
	by, _ := Faults(f)
	if len(by[0]) != 1 || by[0][0].Slow != 6 || by[0][0].Of != 6 {
		t.Fatalf("%+v", by)
	}
	if rate := Rate(f.Slowness(3, 4)); math.Abs(rate-0.01) > 0.001 || Rate(f.Level) > 1e-6 ||
		math.Abs(f.LeastRate()-0.001) > 1e-4 {
		t.Errorf("rate %v, typical %v, named from %v", rate, Rate(f.Level), f.LeastRate())
	}
	// The number of sent segments is unknown.
	if f := Loss(3, []Sent{{Again: 1000}}); f.Visits != 0 || f.Known() ||
		!math.IsNaN(f.LeastRate()) {
		t.Errorf("of unknown numbers: %+v", f)
	}
}

func TestLossOfThousandNodes(t *testing.T) {
	t.Parallel()
	// Only the cheapest case has the largest size; the fits of the others take time.
	sizes := map[string]int{"clean": 1000, "queues": 500, "bursts": 500}
	for _, on := range []string{"clean", "queues", "bursts"} {
		t.Run(on, func(t *testing.T) {
			t.Parallel()
			n, c := sizes[on], sound[on]
			planted := 3 * n / 100
			c.nodes, c.seed = n, 3
			loses := map[[2]int]bool{}
			for i := range planted {
				loses[[2]int{20 * i, 20*i + 7}] = true // the last one is below n
			}
			rate := map[string]float64{"clean": 0.01, "queues": 0.06, "bursts": 0.01}[on]
			c.rate = func(a, b int) float64 {
				if loses[[2]int{a, b}] || loses[[2]int{b, a}] {
					return rate
				}
				return 0
			}
			by, doubtful := Faults(Loss(n, c.run(3)))
			nodes, links, groups := names(by[0])
			found := 0
			for _, l := range links {
				if loses[l] {
					found++
				}
			}
			t.Logf("%d found, %d wrong, %d doubtful", found, len(links)-found, doubtful)
			if most := n * (n - 1) / 2 * 3 / 100_000; found != planted || len(links)-found > most ||
				len(nodes)+len(groups) > 0 {
				t.Errorf("%d of %d links found, %d wrong, at most %d may be; nodes %v, groups %v",
					found, planted, len(links)-found, most, nodes, groups)
			}
		})
	}
}
