package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func noisy(nodes int) cluster {
	return cluster{nodes: nodes, noise: 0.1, kinds: 0.03, spikes: 0.01, spike: 0.7, drift: 0.1}
}

func (c cluster) slow(nodes ...int) cluster {
	c.send, c.recv = map[int]float64{}, map[int]float64{}
	for i, n := range nodes {
		f := 3 + float64(i%3)
		c.send[n], c.recv[n] = f, f
	}
	return c
}

func (c cluster) slowLink(f float64, a, b int) cluster {
	c.link = map[[2]int]float64{{a, b}: f, {b, a}: f}
	return c
}

func (c cluster) racks(trunk float64, of func(i int) int) cluster {
	c.trunk, c.rack = trunk, make([]int, c.nodes)
	for i := range c.rack {
		c.rack[i] = of(i)
	}
	return c
}

func below(n int) (out []int) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

func TestFaults(t *testing.T) {
	for _, tt := range []struct {
		name   string
		c      cluster
		sweeps int
		nodes  []int
		links  [][2]int
		groups int
	}{
		{"nothing-2", noisy(2), 6, nil, nil, 0},
		{"nothing-3", noisy(3), 6, nil, nil, 0},
		{"nothing-7", noisy(7), 5, nil, nil, 0},
		{"nothing-40", noisy(40), 3, nil, nil, 0},
		{"of-two-nodes-none-can-be-named", noisy(2).slow(1), 6, nil, nil, 0},
		// Two of three pairs are slow: the node they share is at fault.
		{"node-of-3", noisy(3).slow(2), 6, []int{2}, nil, 0},
		{"link-of-3", noisy(3).slowLink(4, 0, 2), 6, nil, [][2]int{{0, 2}}, 0},
		{"node-of-4", noisy(4).slow(0), 5, []int{0}, nil, 0},
		{"link-of-4", noisy(4).slowLink(3, 1, 2), 5, nil, [][2]int{{1, 2}}, 0},
		{"node-of-8-in-one-sweep", noisy(8).slow(5), 1, []int{5}, nil, 0},
		{"node-and-link-of-8", noisy(8).slow(3).slowLink(4, 1, 6), 4, []int{3}, [][2]int{{1, 6}},
			0},
		{"a-third-of-9", noisy(9).slow(0, 4, 8), 4, []int{0, 4, 8}, nil, 0},
		{"a-third-of-30", noisy(30).slow(below(10)...), 3, below(10), nil, 0},
		{"a-third-of-30-and-a-link", noisy(30).slow(below(9)...).slowLink(4, 20, 21), 3, below(9),
			[][2]int{{20, 21}}, 0},
		{"halves-of-4", noisy(4).racks(3, func(i int) int { return i / 2 }), 5, nil, nil, 1},
		{"halves-of-12", noisy(12).racks(2, func(i int) int { return i % 2 }), 3, nil, nil, 1},
		{"two-of-9-apart", noisy(9).racks(3, func(i int) int {
			return min(1, i/7)
		}), 3, nil, nil, 1},
		{"a-third-of-30-apart", noisy(30).racks(2, func(i int) int {
			return min(1, i/20)
		}), 3, nil, nil, 1},
		{"racks-60-20-20", noisy(20).racks(3, func(i int) int {
			return max(0, i-8) / 4
		}), 3, nil, nil, 2},
		{"racks-and-a-slow-node", noisy(20).racks(2, func(i int) int {
			return i / 10
		}).slow(3), 3, []int{3}, nil, 1},
		{"racks-and-a-slow-link", noisy(20).racks(2, func(i int) int {
			return i / 10
		}).slowLink(5, 2, 4), 3, nil, [][2]int{{2, 4}}, 1},
		{"ten-racks", noisy(40).racks(2, func(i int) int { return i / 4 }), 3, nil, nil, 0},
	} {
		for _, directed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s-%s", tt.name, map[bool]string{
				false: "latency", true: "throughput"}[directed]), func(t *testing.T) {
				wrong := 0
				const seeds = 10
				for seed := range uint64(seeds) {
					c := tt.c
					c.seed = seed
					by, _ := Faults(New(c.nodes, directed, c.run(tt.sweeps, directed)))
					nodes, links, groups := names(by[0])
					if !slices.Equal(nodes, tt.nodes) || !slices.Equal(links, tt.links) ||
						len(groups) != tt.groups {
						wrong++
						t.Logf("seed %d: nodes %v, links %v, groups %v", seed, nodes, links, groups)
					}
				}
				if wrong > 1 { // chance may add one
					t.Errorf("%d of %d runs are misjudged; want nodes %v, links %v, %d groups",
						wrong, seeds, tt.nodes, tt.links, tt.groups)
				}
			})
		}
	}
}

func TestDirections(t *testing.T) {
	c := noisy(6)
	c.seed = 4
	c.recv = map[int]float64{2: 4}
	c.send = map[int]float64{4: 3}
	c.link = map[[2]int]float64{{1, 3}: 5}
	by, _ := Faults(New(6, true, c.run(5, true)))
	if len(by[0]) != 3 {
		t.Fatalf("faults %+v, want three", by[0])
	}
	recv, send, link := by[0][0], by[0][1], by[0][2]
	if recv.Kind != Direction || recv.Nodes[0] != 2 || recv.Out || !recv.In ||
		!(recv.Low < 4.3 && recv.High > 3.7) {
		t.Errorf("receiving: %+v", recv)
	}
	if send.Kind != Direction || send.Nodes[0] != 4 || !send.Out || send.In ||
		!(send.Low < 3.2 && send.High > 2.8) {
		t.Errorf("sending: %+v", send)
	}
	if link.Kind != LinkWay || !slices.Equal(link.Nodes, []int{1, 3}) || link.Slow != link.Of ||
		link.Of != 5 {
		t.Errorf("link: %+v", link)
	}
}

func TestTwoNodes(t *testing.T) {
	c := noisy(2)
	c.spikes = 0
	c.link = map[[2]int]float64{{1, 0}: 5}
	by, _ := Faults(New(2, true, c.run(10, true)))
	if len(by[0]) != 1 || by[0][0].Kind != LinkWay || !slices.Equal(by[0][0].Nodes, []int{1, 0}) {
		t.Errorf("faults %+v, want the way from 1 to 0", by[0])
	}
}

func TestKindsAreNoFaults(t *testing.T) {
	c := noisy(20)
	c.send, c.recv = map[int]float64{}, map[int]float64{}
	for i := range 10 {
		c.send[i], c.recv[i] = 1.6, 1.6
	}
	for _, directed := range []bool{false, true} {
		by, _ := Faults(New(20, directed, c.run(3, directed)))
		if nodes, _, _ := names(by[0]); len(nodes) > 0 {
			t.Errorf("directed %t: nodes %v are named", directed, nodes)
		}
	}
}

func TestNodesThatLeft(t *testing.T) {
	c := noisy(8).slow(3).slowLink(5, 0, 1)
	c.gone = map[int]bool{6: true}
	f := New(8, true, c.run(4, true))
	by, _ := Faults(f)
	if nodes, links, _ := names(by[0]); !slices.Equal(nodes, []int{3}) ||
		!slices.Equal(links, [][2]int{{0, 1}}) {
		t.Errorf("nodes %v, links %v", nodes, links)
	}
	if e := f.Out[6]; e.Of != 0 || !math.IsNaN(f.Slowness(6, 0)) {
		t.Errorf("of the node that left: %+v", e)
	}

	c = noisy(3).slowLink(5, 0, 1)
	visits := slices.DeleteFunc(c.run(6, false), func(v Measurement) bool {
		return v.Pair[0]+v.Pair[1] == 3
	})
	by, _ = Faults(New(3, false, visits))
	if nodes, links, _ := names(by[0]); len(nodes) > 0 || !slices.Equal(links, [][2]int{{0, 1}}) {
		t.Errorf("of two links: nodes %v, links %v", nodes, links)
	}
}

func TestNoiseUnknown(t *testing.T) {
	f := New(3, false, noisy(3).slow(1).run(1, false))
	by, _ := Faults(f)
	if f.Known() || len(by[0]) > 0 || !math.IsNaN(f.Out[0].Low) {
		t.Errorf("known %t, faults %+v", f.Known(), by[0])
	}
	if got := f.Out[1].Factor; !(got > 2) {
		t.Errorf("the factor is there all the same: %v", got)
	}
	for _, visits := range [][]Measurement{nil, {{}},
		{{Pair: sample.Pair{0, 1}, Slowness: math.Inf(1)}}} {
		if f := New(3, true, visits); f.Visits != 0 || f.Known() || !math.IsNaN(f.Level) {
			t.Errorf("of nothing: %+v", f)
		}
	}
}

func TestEffects(t *testing.T) {
	c := cluster{nodes: 6, noise: 0.02, seed: 1, send: map[int]float64{2: 3},
		recv: map[int]float64{2: 3}}
	lat, thr := New(6, false, c.run(5, false)), New(6, true, c.run(5, true))
	for name, e := range map[string]Effect{"latency": lat.Out[2], "sending": thr.Out[2],
		"receiving": thr.In[2]} {
		if math.Abs(e.Factor-3) > 0.15 || !(e.Low < 3 && e.High > 3) || e.Slow != 5 || e.Of != 5 {
			t.Errorf("%s: %+v, want 3 on 5 of 5", name, e)
		}
	}
	for i := range 6 {
		if e := lat.Out[i]; i != 2 && (math.Abs(e.Factor-1) > 0.1 || e.Slow != 0) {
			t.Errorf("node %d: %+v, want 1 on 0", i, e)
		}
	}
	if math.Abs(math.Log(lat.Level/50e-6)) > 0.5 || thr.Sweeps != 5 || thr.Visits != 5*30 {
		t.Errorf("level %v, %d sweeps, %d visits", lat.Level, thr.Sweeps, thr.Visits)
	}
}

func TestThousandNodes(t *testing.T) {
	t.Parallel()
	const n = 1000
	for _, tt := range []struct {
		sweeps, slow, links int
		noise               float64
	}{{3, 10, 50, 0.2}, {1, 300, 50, 0.05}} {
		t.Run(fmt.Sprintf("%d-sweeps", tt.sweeps), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 1))
			c := cluster{nodes: n, send: map[int]float64{}, recv: map[int]float64{},
				link:  map[[2]int]float64{},
				noise: tt.noise, kinds: 0.05, spikes: 0.01, spike: 0.7, drift: 0.2, seed: 5}
			nodes := rng.Perm(n)
			for _, i := range nodes[:tt.slow] {
				x := 1.5 + 3*rng.Float64()
				c.send[i], c.recv[i] = x, x
			}
			well := nodes[tt.slow:]
			for i := range tt.links {
				a, b := well[2*i], well[2*i+1]
				c.link[[2]int{a, b}], c.link[[2]int{b, a}] = 6, 6
			}
			want := slices.Sorted(slices.Values(nodes[:tt.slow]))
			by, doubtful := Faults(New(n, false, c.run(tt.sweeps, false)),
				New(n, true, c.run(tt.sweeps, true)))
			for i, what := range []string{"latency", "throughput"} {
				nodes, links, groups := names(by[i])
				if !slices.Equal(nodes, want) {
					t.Errorf("%s: %d nodes are named, %d were planted", what, len(nodes), len(want))
				}
				found, wrong := 0, 0
				for _, l := range links {
					if _, ok := c.link[l]; ok {
						found++
					} else {
						wrong++
					}
				}
				t.Logf("%s: %d links found, %d wrong, %d doubtful", what, found, wrong, doubtful)
				if most := n * (n - 1) / 2 * 3 / 100_000; found != tt.links || wrong > most ||
					len(groups) > 0 {
					t.Errorf("%s: %d of %d links found, %d wrong, at most %d may be; groups %v",
						what, found, tt.links, wrong, most, groups)
				}
			}
		})
	}
}

func TestThousandNodesInRacks(t *testing.T) {
	t.Parallel()
	c := noisy(1000).racks(2, func(i int) int { return max(0, i-500) / 100 })
	by, _ := Faults(New(1000, false, c.run(1, false)))
	nodes, links, groups := names(by[0])
	if len(nodes) > 0 || len(links) > 5 || len(groups) != 4 {
		t.Errorf("nodes %v, %d links, %d groups, want the four smaller racks", nodes, len(links),
			len(groups))
	}
	for _, g := range groups {
		if len(g) != 100 {
			t.Errorf("a group of %d nodes, want 100", len(g))
		}
	}
}

// quantiles from Abramowitz & Stegun, table 26.10
func TestStudent(t *testing.T) {
	for _, tt := range []struct{ p, df, want, within float64 }{
		{0.975, 1e9, 1.960, 0.001}, {0.975, 10, 2.228, 0.003}, {0.975, 5, 2.571, 0.01},
		{0.975, 3, 3.182, 0.06}, {0.9995, 10, 4.587, 0.05}, {0.95, 4, 2.132, 0.02},
	} {
		if got := student(tt.p, tt.df); math.Abs(got-tt.want) > tt.within {
			t.Errorf("student(%v, %v) = %.4f, want %v", tt.p, tt.df, got, tt.want)
		}
	}
	for _, tt := range []struct {
		k, n    int
		p, want float64
	}{{1, 1, 0.3, 0.3}, {2, 3, 0.5, 0.5}, {3, 3, 0.1, 0.001}, {0, 5, 0.2, 1}} {
		if got := binomial(tt.k, tt.n, tt.p); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("binomial(%d, %d, %v) = %v, want %v", tt.k, tt.n, tt.p, got, tt.want)
		}
	}
}
