package model

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/plan"
)

// The maps hold factors of slowness.
type cluster struct {
	nodes int
	send  map[int]float64    // a node's sending, and its part of a round trip
	recv  map[int]float64    // a node's receiving
	link  map[[2]int]float64 // from, to
	rack  []int              // of each node; nil: one rack
	trunk float64            // of links between racks
	// noise is the standard deviation of a visit's logarithm, and kinds of the nodes' speeds.
	noise, kinds float64
	// spikes is the share of visits that are slowed down. The logarithm of their factor is the
	// absolute value of a normal one with the standard deviation spike.
	spikes, spike float64
	drift         float64 // of the level within a sweep, as a logarithm
	gone          map[int]bool
	seed          uint64
}

func times(m map[int]float64, i int) float64 {
	if x, ok := m[i]; ok {
		return x
	}
	return 1
}

// slowness returns the slowness of a link. The delays of a round trip add up; the slowest part
// decides a throughput.
func (c cluster) slowness(a, b int, directed bool) float64 {
	trunk, l := 1.0, 1.0
	if c.rack != nil && c.rack[a] != c.rack[b] {
		trunk = c.trunk
	}
	if x, ok := c.link[[2]int{a, b}]; ok {
		l = x
	}
	if directed {
		return max(times(c.send, a), times(c.recv, b), l, trunk)
	}
	if x, ok := c.link[[2]int{b, a}]; ok {
		l = max(l, x)
	}
	return times(c.send, a) + times(c.send, b) + l + trunk - 3
}

func (c cluster) run(sweeps int, directed bool) []Measurement {
	rng := rand.New(rand.NewPCG(c.seed, 7))
	own := make([]float64, c.nodes)
	for i := range own {
		own[i] = c.kinds * rng.NormFloat64()
	}
	var out []Measurement
	for s := range sweeps {
		sweep := plan.NewSweep(c.nodes, c.seed, s)
		day := 0.3 * rng.NormFloat64()
		rounds := plan.SweepRounds(c.nodes)
		for r := range rounds {
			level := day + c.drift*math.Sin(2*math.Pi*float64(r)/float64(rounds))
			for _, p := range sweep.Round(r) {
				for way := range 2 {
					if way == 1 && !directed {
						continue
					}
					if way == 1 {
						p[0], p[1] = p[1], p[0]
					}
					y := level + own[p[0]] + own[p[1]] + c.noise*rng.NormFloat64()
					if rng.Float64() < c.spikes {
						y += math.Abs(c.spike * rng.NormFloat64())
					}
					if c.gone[p[0]] || c.gone[p[1]] {
						continue
					}
					out = append(out, Measurement{p, s, r,
						50e-6 * c.slowness(p[0], p[1], directed) * math.Exp(y)})
				}
			}
		}
	}
	return out
}

func names(fs []Fault) (nodes []int, links [][2]int, groups [][]int) {
	for _, f := range fs {
		switch f.Kind {
		case Node, Direction:
			nodes = append(nodes, f.Nodes[0])
		case Link, LinkWay:
			links = append(links, [2]int{min(f.Nodes[0], f.Nodes[1]), max(f.Nodes[0], f.Nodes[1])})
		case Apart:
			groups = append(groups, f.Nodes)
		}
	}
	slices.Sort(nodes)
	return nodes, links, groups
}
