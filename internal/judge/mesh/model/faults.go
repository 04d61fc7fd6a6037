package model

import (
	"cmp"
	"math"
	"slices"
)

// Kind is the kind of a fault.
type Kind string

const (
	Node      Kind = "node"      // most links of the node are slow, in both directions if measured
	Direction Kind = "direction" // only sending or only receiving of a node is slow
	Link      Kind = "link"      // between otherwise healthy nodes, in both directions if measured
	LinkWay   Kind = "link-way"  // one direction of a link
	Apart     Kind = "group"     // nodes that are healthy among themselves and slow to the others
)

// Fault is a node, link or group that is slower than typical, by more than the fit's smallest
// factor and beyond the noise.
type Fault struct {
	Kind Kind
	// Nodes holds the node, the two nodes of a link (from, to) or the group's nodes.
	Nodes []int
	// Out and In mark the slow sides of a node; for a link, from-to and back.
	Out, In   bool
	Factor    float64 // relative to the typical value for its nodes; of two sides the worse one
	Low, High float64 // 95 % interval of Factor
	Slow, Of  int     // slow links and all links; for a link, its visits
}

// falseAlarms is the average number of nodes, and of links, that are named in a run without any
// fault, if its noise is normal.
const falseAlarms = 0.01

// Among at least several nodes, a slow one must stand out by outlying robust standard deviations of
// all nodes, because machines of different kinds are not faults.
const (
	outlying = 3.5
	several  = 8
)

// Known reports whether faults can be distinguished from noise, with several sweeps or enough links
// in one.
func (f *Fit) Known() bool { return !math.IsNaN(f.Noise) }

// LeastLink returns the smallest detectable factor of a link, or NaN if the noise is not known.
func (f *Fit) LeastLink() float64 { return math.Exp(max(f.least, f.linkBeyond())) }

// LeastNode returns the smallest factor at which every node with links to others would be named, or
// NaN if it is not known.
func (f *Fit) LeastNode() float64 {
	least := math.NaN()
	for _, sides := range [][]side{f.out, f.in} {
		from := f.sidesFrom(sides)
		for i, s := range sides {
			if s.n >= minLinks && !(from[i] <= least) {
				least = from[i]
			}
		}
	}
	return math.Exp(least)
}

func (f *Fit) linkBeyond() float64 { return f.linkQuantile() * f.Noise }

func (f *Fit) linkQuantile() float64 { return student(1-falseAlarms/f.pairs(), f.df) }

// Faults returns the faults of each fit (groups, nodes, links; each from the worst on) and the
// number of links that only look slow. The fits must be of the same sweeps. A link is named if more
// of its visits, over all fits, are slow than chance explains in a mesh of this size; a single
// visit never names one.
func Faults(fits ...*Fit) (by [][]Fault, doubtful int) {
	by = make([][]Fault, len(fits))
	links, doubtful := slowLinks(fits)
	for i, f := range fits {
		if !f.Known() {
			continue
		}
		for _, g := range f.Groups {
			by[i] = append(by[i], Fault{Kind: Apart, Nodes: g.Nodes, Out: true, In: true,
				Factor: g.Factor, Low: g.Low, High: g.High, Slow: g.Slow, Of: g.Of})
		}
		by[i] = append(append(by[i], f.nodeFaults()...), links[i]...)
		sortFaults(by[i])
	}
	return by, doubtful
}

func (f *Fit) pairs() float64 {
	n := f.Nodes * (f.Nodes - 1)
	if !f.Directed {
		n /= 2
	}
	return float64(n)
}

func (f *Fit) nodeFaults() []Fault {
	out, in := f.slowSides(f.out, f.Out), f.slowSides(f.in, f.In)
	var faults []Fault
	for i := range f.Nodes {
		if !out[i] && !in[i] {
			continue
		}
		e := f.Out[i]
		if !out[i] || in[i] && f.In[i].Factor > e.Factor {
			e = f.In[i]
		}
		kind := Node
		if out[i] != in[i] {
			kind = Direction
		}
		faults = append(faults, Fault{kind, []int{i}, out[i], in[i], e.Factor, e.Low, e.High,
			e.Slow, e.Of})
	}
	return faults
}

func (f *Fit) slowSides(sides []side, effects []Effect) []bool {
	from := f.sidesFrom(sides)
	out := make([]bool, len(sides))
	for i, s := range sides {
		out[i] = s.n >= minLinks && s.effect >= from[i] && 2*effects[i].Slow > effects[i].Of
	}
	return out
}

func (f *Fit) sidesFrom(sides []side) []float64 {
	var all []float64
	for _, s := range sides {
		if s.n >= minLinks {
			all = append(all, s.effect)
		}
	}
	beyond := 0.0
	if len(all) >= several {
		beyond = outlying * spread(all, lowMedian(all))
	}
	t := student(1-falseAlarms/float64(f.Nodes), f.df)
	out := make([]float64, len(sides))
	for i, s := range sides {
		out[i] = max(f.least, beyond, t*f.error(s))
	}
	return out
}

func (f *Fit) suspects() []Fault {
	if !f.Known() {
		return nil
	}
	quantile := f.linkQuantile()
	over := func(a, b int) float64 {
		x := f.row(a, b) - f.level
		whole := x - f.out[a].effect - f.in[b].effect
		// A node that is faster than typical cannot make its links faster.
		slow := x - max(0, f.out[a].effect) - max(0, f.in[b].effect)
		if slow >= f.least && whole >= quantile*f.linkNoise(f.linkOf(a, b)) {
			return slow
		}
		return 0
	}
	var out []Fault
	for a := range f.Nodes {
		for b := a + 1; b < f.Nodes; b++ {
			to := over(a, b)
			back := to
			if f.Directed {
				back = over(b, a)
			}
			switch {
			case to == 0 && back == 0:
			case to > 0 && back > 0:
				worse, from, at := to, a, b
				if back > to {
					worse, from, at = back, b, a
				}
				out = append(out, f.link(Link, from, at, worse, true))
			case to > 0:
				out = append(out, f.link(LinkWay, a, b, to, false))
			default:
				out = append(out, f.link(LinkWay, b, a, back, false))
			}
		}
	}
	return out
}

func (f *Fit) link(k Kind, from, to int, by float64, back bool) Fault {
	l := f.linkOf(from, to)
	half := student(upper, f.df) * f.linkNoise(l)
	out := Fault{Kind: k, Nodes: []int{from, to}, Out: true, In: back, Factor: math.Exp(by),
		Low: math.Exp(by - half), High: math.Exp(by + half)}
	expected := f.row(from, to) + f.between(from, to) - by
	for _, v := range f.visits[f.first[l]:f.first[l+1]] {
		out.Of++
		if v.y-expected >= by/2 {
			out.Slow++
		}
	}
	return out
}

func sortFaults(fs []Fault) {
	rank := map[Kind]int{Apart: 0, Node: 1, Direction: 1, Link: 2, LinkWay: 2}
	slices.SortStableFunc(fs, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(rank[a.Kind], rank[b.Kind]), cmp.Compare(b.Factor, a.Factor),
			slices.Compare(a.Nodes, b.Nodes))
	})
}
