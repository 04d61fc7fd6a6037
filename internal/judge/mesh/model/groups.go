package model

import (
	"cmp"
	"math"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
)

// Group holds nodes that are healthy among themselves, while their links to the others are slow,
// such as a rack behind a slow trunk.
type Group struct {
	Nodes     []int
	Factor    float64 // of the links to the others, relative to links inside
	Low, High float64 // 95 % interval
	Slow, Of  int     // slow links and all links to the others
}

func (f *Fit) group() {
	if f.Nodes < 4 {
		return
	}
	x := f.both()
	label := f.split(x)
	if label == nil {
		label = f.behind(x)
	}
	if label == nil {
		return
	}
	f.label = label
	f.block = f.blocks(x)
	f.summarize()
	f.effects()
	f.noise()
}

// both returns the links' values, averaged over both directions, or NaN where a direction is
// missing.
func (f *Fit) both() []float64 {
	if !f.Directed {
		return f.links
	}
	n := f.Nodes
	out := make([]float64, n*n)
	for a := range n {
		for b := range n {
			out[a*n+b] = (f.row(a, b) + f.row(b, a)) / 2
		}
	}
	return out
}

// leaders groups nodes: each node without a group gathers those that are fast with it, and then
// those that are fast with most of these. Nodes without another are left out.
func leaders(nodes []int, fast func(i, j int) bool) [][]int {
	var out [][]int
	taken := map[int]bool{}
	for _, lead := range nodes {
		if taken[lead] {
			continue
		}
		g := []int{lead}
		for step := range 3 {
			var next []int
			for _, i := range nodes {
				with, others := 0, 0
				for _, j := range g {
					if i != j {
						others++
						if fast(i, j) {
							with++
						}
					}
				}
				if !taken[i] && (2*with > others || step == 0 && i == lead) {
					next = append(next, i)
				}
			}
			g = next
		}
		if len(g) < 2 {
			continue
		}
		for _, i := range g {
			taken[i] = true
		}
		out = append(out, g)
	}
	return out
}

// sure is the least distance of a group from the others, in standard errors.
const sure = 4

// behind finds small groups of nodes that look slow, but not to each other. It returns each node's
// group, 0 for nodes outside the groups, or nil without groups.
func (f *Fit) behind(x []float64) []int {
	effect := func(i int) float64 { return (f.out[i].effect + f.in[i].effect) / 2 }
	var slow []int
	for i := range f.Nodes {
		if e := effect(i); e >= f.least && !(e < 3*f.error(f.out[i])) {
			slow = append(slow, i)
		}
	}
	if len(slow) < 2 {
		return nil
	}
	var label []int
	groups := 0
	for _, g := range leaders(slow, func(i, j int) bool {
		return x[i*f.Nodes+j]-f.level < min(effect(i), effect(j))/2
	}) {
		var inside, outside []float64
		for _, i := range g {
			outside = append(outside, effect(i))
			for _, j := range g {
				if y := x[i*f.Nodes+j]; i < j && !math.IsNaN(y) {
					inside = append(inside, y-f.level)
				}
			}
		}
		gap := lowMedian(outside) - lowMedian(inside)
		if !(gap >= f.least && gap >= sure*f.Noise*medianError/math.Sqrt(float64(len(inside)))) {
			continue
		}
		if label == nil {
			label = make([]int, f.Nodes)
		}
		groups++
		for _, i := range g {
			label[i] = groups
		}
	}
	return label
}

// pure is the least share of fast links inside groups, and of slow links between them.
const pure = 0.9

// split finds groups that together hold nearly all nodes, so that the typical links need not be
// known. It returns each node's group, 0 for the largest one and for nodes without one, or nil
// without groups.
func (f *Fit) split(x []float64) []int {
	n := f.Nodes
	var all []float64
	for i := range n {
		for j := range i {
			if y := x[i*n+j]; !math.IsNaN(y) {
				all = append(all, y)
			}
		}
	}
	if len(all) < 6 {
		return nil
	}
	fifth := (len(all) - 1) / 5
	low, high := stats.Kth(all, fifth), stats.Kth(all, len(all)-1-fifth)
	if high-low < f.least {
		return nil
	}
	nodes := make([]int, n)
	for i := range nodes {
		nodes[i] = i
	}
	fast := func(i, j int) bool { return x[i*n+j] < (low+high)/2 }
	groups := leaders(nodes, fast)
	slices.SortStableFunc(groups, func(a, b []int) int { return cmp.Compare(len(b), len(a)) })
	label := make([]int, n)
	for i := range label {
		label[i] = nobodys
	}
	in := 0
	for l, g := range groups {
		in += len(g)
		for _, i := range g {
			label[i] = l
		}
	}
	if len(groups) < 2 || 10*(n-in) > n || !f.apart(x, label, fast) {
		return nil
	}
	for i, l := range label {
		if l == nobodys {
			label[i] = 0
		}
	}
	return label
}

const nobodys = -1

func (f *Fit) apart(x []float64, label []int, fast func(i, j int) bool) bool {
	var inside, outside []float64
	fastIn, slowOut := 0, 0
	for i := range f.Nodes {
		for j := range i {
			y := x[i*f.Nodes+j]
			switch {
			case math.IsNaN(y) || label[i] == nobodys || label[j] == nobodys:
			case label[i] == label[j]:
				inside = append(inside, y)
				if fast(i, j) {
					fastIn++
				}
			default:
				outside = append(outside, y)
				if !fast(i, j) {
					slowOut++
				}
			}
		}
	}
	if float64(fastIn) < pure*float64(len(inside)) ||
		float64(slowOut) < pure*float64(len(outside)) || len(outside) == 0 {
		return false
	}
	// The model's residuals include the groups.
	sigma := f.visitNoise * linkError(f.typicalInfo())
	far := lowMedian(outside)
	gap := far - lowMedian(inside)
	if own := spread(outside, far); len(outside) >= 10 && !(own <= sigma) {
		sigma = own
	}
	return gap >= f.least && gap >= sure*sigma*medianError/math.Sqrt(float64(len(inside)))
}

func (f *Fit) blocks(x []float64) [][]float64 {
	n, k := f.Nodes, slices.Max(f.label)+1
	between := make([][][]float64, k)
	for i := range between {
		between[i] = make([][]float64, k)
	}
	var inside []float64
	for i := range n {
		for j := range i {
			y := x[i*n+j]
			if math.IsNaN(y) {
				continue
			}
			a, b := min(f.label[i], f.label[j]), max(f.label[i], f.label[j])
			if a == b {
				inside = append(inside, y)
			} else {
				between[a][b] = append(between[a][b], y)
			}
		}
	}
	near := lowMedian(inside)
	out := make([][]float64, k)
	for i := range out {
		out[i] = make([]float64, k)
	}
	for a := range k {
		for b := range a {
			if d := lowMedian(between[b][a]) - near; d > 0 {
				out[a][b], out[b][a] = d, d
			}
		}
	}
	return out
}

func (f *Fit) describeGroups() {
	if f.block == nil {
		return
	}
	for l := 1; l < len(f.block); l++ {
		g := Group{}
		var to []float64
		for i := range f.Nodes {
			if f.label[i] != l {
				continue
			}
			g.Nodes = append(g.Nodes, i)
			for j := range f.Nodes {
				if y := f.row(i, j) + f.between(i, j) - f.level; f.label[j] != l && !math.IsNaN(y) {
					to = append(to, y)
				}
			}
		}
		m := lowMedian(to)
		half := student(upper, f.df) * f.Noise * min(1, medianError/math.Sqrt(float64(len(to))))
		g.Factor, g.Low, g.High = math.Exp(m), math.Exp(m-half), math.Exp(m+half)
		g.Of = len(to)
		for _, y := range to {
			if y >= m/2 {
				g.Slow++
			}
		}
		if len(g.Nodes) > 0 && m >= f.least {
			f.Groups = append(f.Groups, g)
		}
	}
}
