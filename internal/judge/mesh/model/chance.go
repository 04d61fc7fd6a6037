package model

import (
	"math"
	"slices"
)

// allowed returns the largest average number of links that may be named by chance in a run: 0.05
// or, in a large mesh, 3 in a million.
func allowed(pairs float64) float64 {
	const (
		inRun  = 0.05
		inLink = 3e-6
	)
	return max(inRun, inLink*pairs)
}

func (f *Fit) ways() int {
	if f.Directed {
		return 2
	}
	return 1
}

type suspect struct {
	slow   int     // fits and directions that show it
	chance float64 // probability that all of them do so by chance
}

func slowLinks(fits []*Fit) (by [][]Fault, doubtful int) {
	by = make([][]Fault, len(fits))
	suspects := make([][]Fault, len(fits))
	ways := 0
	for i, f := range fits {
		ways += f.ways()
		suspects[i] = f.suspects()
	}
	of := func(s Fault) [2]int {
		return [2]int{min(s.Nodes[0], s.Nodes[1]), max(s.Nodes[0], s.Nodes[1])}
	}
	pairs := map[[2]int]suspect{}
	for i, f := range fits {
		chances := f.chances(suspects[i])
		for k, s := range suspects[i] {
			p, ok := pairs[of(s)]
			if !ok {
				p.chance = 1
			}
			n := 1
			if s.Kind == Link {
				n = f.ways()
			}
			p.slow += n
			p.chance *= math.Pow(chances[k], float64(n))
			pairs[of(s)] = p
		}
	}
	named := func(p suspect, f *Fit) bool {
		all := float64(f.Nodes*(f.Nodes-1)) / 2
		return (f.Sweeps > 1 || p.slow > 1) && p.chance*choose(ways, p.slow)*all <= allowed(all)
	}
	kept := map[[2]int]bool{}
	for i, f := range fits {
		for _, s := range suspects[i] {
			if named(pairs[of(s)], f) {
				by[i] = append(by[i], s)
				kept[of(s)] = true
			}
		}
	}
	return by, len(pairs) - len(kept)
}

// chances returns, for each suspect, the probability that as many of its visits are slow by chance.
// The visits to other links show how often that happens, whatever the noise's distribution.
func (f *Fit) chances(suspects []Fault) []float64 {
	// Faulty suspects are no evidence of chance. In a single sweep their removal would leave no
	// chance.
	suspected := make([]bool, f.Nodes*f.Nodes)
	if f.Sweeps > 1 {
		for _, s := range suspects {
			suspected[f.linkOf(s.Nodes[0], s.Nodes[1])] = true
			if s.In {
				suspected[f.linkOf(s.Nodes[1], s.Nodes[0])] = true
			}
		}
	}
	var tail []float64
	n := 0
	for _, v := range f.visits {
		if suspected[v.link] {
			continue
		}
		n++
		if y := v.y - f.expected(v.link); y >= f.least/2 {
			tail = append(tail, y)
		}
	}
	slices.Sort(tail)
	out := make([]float64, len(suspects))
	for i, s := range suspects {
		at, _ := slices.BinarySearch(tail, math.Log(s.Factor)/2)
		// Half a slow visit more, among one visit more, keeps unobserved events possible.
		slow, all := float64(len(tail)-at)+0.5, float64(n+1)
		if f.Sweeps == 1 { // leave its own visit out
			own := 1.0
			if s.Kind == Link {
				own = float64(f.ways())
			}
			slow, all = max(0.5, slow-own), all-own
		}
		out[i] = binomial(s.Slow, s.Of, min(1, slow/all))
	}
	return out
}

func (f *Fit) linkOf(from, to int) int32 {
	if !f.Directed {
		from, to = min(from, to), max(from, to)
	}
	return int32(from*f.Nodes + to)
}

func binomial(k, n int, p float64) float64 {
	sum := 0.0
	for i := k; i <= n; i++ {
		sum += choose(n, i) * math.Pow(p, float64(i)) * math.Pow(1-p, float64(n-i))
	}
	return min(1, sum)
}

func choose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return math.Round(math.Exp(a - b - c))
}
