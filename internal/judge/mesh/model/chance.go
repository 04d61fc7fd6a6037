package model

import (
	"math"
	"slices"
)

// allowed is how many links that only chance made slow are named on average, at
// most: few in a run, or a few among a million.
func allowed(pairs float64) float64 {
	const (
		inRun  = 0.05
		inLink = 3e-6
	)
	return max(inRun, inLink*pairs)
}

// ways is in how many directions a fit has each pair.
func (f *Fit) ways() int {
	if f.Directed {
		return 2
	}
	return 1
}

// suspect is a pair that looks slow to some fits.
type suspect struct {
	slow   int     // fits and ways that show it
	chance float64 // that they all do so by chance
}

// slowLinks are the faults of links by fit, and how many are doubtful.
func slowLinks(fits []*Fit) (by [][]Fault, doubtful int) {
	by = make([][]Fault, len(fits))
	suspects := make([][]Fault, len(fits))
	ways := 0
	for i, f := range fits {
		ways += f.ways()
		suspects[i] = f.suspects()
	}
	of := func(s Fault) [2]int { return [2]int{min(s.Nodes[0], s.Nodes[1]), max(s.Nodes[0], s.Nodes[1])} }
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

// chances are the probabilities that so many visits of each suspect are slow by
// chance alone: visits to other links tell how often one is, whatever the noise
// is like.
func (f *Fit) chances(suspects []Fault) []float64 {
	// Other suspects are left out, because faults tell nothing of chance. In a
	// single sweep that would leave out all that chance has done.
	suspected := make([]bool, f.Nodes*f.Nodes) // by link
	if f.Sweeps > 1 {
		for _, s := range suspects {
			suspected[f.linkOf(s.Nodes[0], s.Nodes[1])] = true
			if s.In {
				suspected[f.linkOf(s.Nodes[1], s.Nodes[0])] = true
			}
		}
	}
	var tail []float64 // by how much visits are slow, those that are at all
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
		// Half a visit more, of one more: what none has shown may still be.
		slow, all := float64(len(tail)-at)+0.5, float64(n+1)
		if f.Sweeps == 1 { // its own
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

// linkOf is the number of a link.
func (f *Fit) linkOf(from, to int) int32 {
	if !f.Directed {
		from, to = min(from, to), max(from, to)
	}
	return int32(from*f.Nodes + to)
}

// binomial is the probability of at least k of n, each at rate p.
func binomial(k, n int, p float64) float64 {
	sum := 0.0
	for i := k; i <= n; i++ {
		sum += choose(n, i) * math.Pow(p, float64(i)) * math.Pow(1-p, float64(n-i))
	}
	return min(1, sum)
}

// choose is in how many ways k of n can be chosen.
func choose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return math.Round(math.Exp(a - b - c))
}
