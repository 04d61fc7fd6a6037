// Package model finds the slow nodes and links of a cluster from measured figures.
//
// A slow machine makes all of its links slow, a bad cable only one. The model is of logarithms,
// because slowness is a factor:
//
//	slowness of a link = level + effect of one node + effect of the other + its own
//
// Medians find level and effects if up to about a third of the nodes are slow: the first step of
// Tukey's median polish (Exploratory Data Analysis, 1977, chapter 11). Further steps would subtract
// the effects of slow nodes from their partners' links. But where the slower of two nodes decides,
// two slow nodes do not make a link slow twice over, and their partners would be called fast.
//
// A slowness that all nodes share is part of the level and no fault. With two nodes only the link
// between them can be named.
package model

import (
	"math"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Measurement is the result of one visit to a pair of nodes.
type Measurement struct {
	Pair         sample.Pair // from, to
	Sweep, Round int
	// Slowness is more than 0, in any unit where more is slower, such as seconds of a round trip or
	// seconds a bit.
	Slowness float64
}

// Effect is the slowness of a node relative to a typical one.
type Effect struct {
	Factor float64 // 1: typical; the median over its links
	// Low and High bound the 95 % interval; they are NaN if the noise is not known.
	Low, High float64
	// Slow counts the links that are off by at least half of Factor, in logarithms, or, if the node
	// is not slow, by enough to be named. Of counts all links.
	Slow, Of int
}

// Fit is the model of the measured visits.
type Fit struct {
	Nodes    int
	Directed bool // the link from a to b is not the one from b to a
	Sweeps   int  // that have visits
	Visits   int
	Level    float64 // slowness of a typical link
	// Noise is the robust standard deviation of a link's logarithm over all sweeps, or NaN if there
	// is too little data.
	Noise float64
	// Out and In hold the effects of sending and receiving by node. Without directions they are the
	// same slice.
	Out, In []Effect
	Groups  []Group
	// Alone is set if only one pair has visits: its round trips cannot be compared, and each
	// direction only with the other.
	Alone bool

	least float64 // smallest fault, as a logarithm
	df    float64 // degrees of freedom of Noise

	// The standard deviation of a visit, NaN if not known, and its degrees of freedom.
	visitNoise, visitFree float64
	beside                float64   // difference between links that their visits do not explain
	info                  []float64 // comparable visits of each link
	// The common part of all visits of a sweep: the mean, its standard error, NaN if not known, and
	// its degrees of freedom.
	centre, drift, driftFree float64
	// Student's quantiles of 95 % intervals with visitFree and driftFree
	visitT, driftT float64
	centres        []float64 // absolute value of each link

	rounds  int     // that have visits, of all sweeps
	visits  []visit // by link
	first   []int32 // index of a link's first visit; one entry more than links
	links   []float64
	out, in []side
	level   float64
	label   []int       // a node's group; 0: the main one
	block   [][]float64 // additional slowness of links between two groups
}

type visit struct {
	link         int32
	sweep, round int32   // numbered from 0; rounds over all sweeps
	y            float64 // logarithm of the slowness, later without its time's level
}

type side struct {
	effect, own float64 // own: robust standard deviation of the node's links
	unit        float64 // standard error of one of its links, relative to a visit's
	n           int     // links
}

const upper = 1 - (1-stats.Confidence)/2

// Least is the smallest factor that is a fault: less is not worth a repair.
const Least = 1.25

// New fits the model to visits between nodes numbered from 0. It skips visits without a slowness.
func New(nodes int, directed bool, visits []Measurement) *Fit {
	return newFit(nodes, directed, Least, visits)
}

func newFit(nodes int, directed bool, least float64, visits []Measurement) *Fit {
	f := &Fit{Nodes: nodes, Directed: directed, least: math.Log(least), Noise: math.NaN(),
		label: make([]int, nodes)}
	f.sort(visits)
	f.takeLevels()
	f.summarize()
	f.effects()
	f.noise()
	f.group()
	f.takeRoundLevels()
	f.summarize()
	f.effects()
	f.noise()
	f.Level = math.Exp(f.level)
	f.visitT, f.driftT = student(upper, f.visitFree), student(upper, f.driftFree)
	f.Out, f.In = f.describe(f.out, f.row), f.describe(f.in, f.column)
	if !directed {
		f.In = f.Out
	}
	f.describeGroups()
	return f
}

// summarize sets the links' medians. It takes the lower one of two middle values, so of two visits
// both must be slow.
func (f *Fit) summarize() {
	n := f.Nodes
	f.links = make([]float64, n*n)
	var ys []float64
	for a := range n {
		for b := range n {
			if !f.Directed && b < a {
				f.links[a*n+b] = f.links[b*n+a]
				continue
			}
			ys = ys[:0]
			for _, v := range f.visits[f.first[a*n+b]:f.first[a*n+b+1]] {
				ys = append(ys, v.y)
			}
			f.links[a*n+b] = lowMedian(ys) - f.between(a, b)
		}
	}
}

func (f *Fit) between(a, b int) float64 {
	if f.block == nil {
		return 0
	}
	return f.block[f.label[a]][f.label[b]]
}

func (f *Fit) row(i, j int) float64    { return f.links[i*f.Nodes+j] }
func (f *Fit) column(i, j int) float64 { return f.links[j*f.Nodes+i] }

// minLinks is the least number of links for a node to have an effect. With one, the effect could as
// well be the link's.
const minLinks = 2

// effects computes the nodes' effects from all links, and then again from the links to nodes that
// do not look slow. With a third of the nodes slow, one more slow link would otherwise make slow
// links the majority.
func (f *Fit) effects() {
	all := make([]bool, f.Nodes)
	f.sides(all, all)
	slow := func(sides []side) []bool {
		out := make([]bool, len(sides))
		for i, s := range sides {
			out[i] = s.effect >= f.least
		}
		return out
	}
	f.sides(slow(f.in), slow(f.out))
}

func (f *Fit) sides(slowIn, slowOut []bool) {
	f.out = f.side(f.row, func(i, j int) int32 { return f.linkOf(i, j) }, slowIn)
	f.in = f.out
	both := [][]side{f.out}
	if f.Directed {
		f.in = f.side(f.column, func(i, j int) int32 { return f.linkOf(j, i) }, slowOut)
		both = append(both, f.in)
	}
	var levels []float64
	for _, s := range both {
		for _, e := range s {
			if e.n >= minLinks {
				levels = append(levels, e.effect)
			}
		}
	}
	if len(levels) == 0 {
		for _, x := range f.links {
			if !math.IsNaN(x) {
				levels = append(levels, x)
			}
		}
	}
	f.level = lowMedian(levels)
	for _, s := range both {
		for i := range s {
			if s[i].n < minLinks {
				s[i].effect = f.level
			}
			s[i].effect -= f.level
		}
	}
}

// side returns each node's effect on its links. It leaves out links to slow nodes if enough others
// remain.
func (f *Fit) side(at func(i, j int) float64, link func(i, j int) int32, slow []bool) []side {
	out := make([]side, f.Nodes)
	var xs, well []float64
	for i := range out {
		xs, well = xs[:0], well[:0]
		errors := 0.0
		for j := range f.Nodes {
			x := at(i, j)
			if math.IsNaN(x) {
				continue
			}
			info := f.info[link(i, j)]
			if info == 0 { // its visits cannot be compared
				continue
			}
			xs = append(xs, x)
			errors += linkError(info) * linkError(info)
			if !slow[j] {
				well = append(well, x)
			}
		}
		n, unit := len(xs), math.Sqrt(errors/float64(len(xs)))
		if len(well) >= minLinks {
			xs, well = well, xs
		}
		m := lowMedian(xs)
		out[i] = side{m, spread(xs, m), unit, n}
	}
	return out
}

func (f *Fit) expected(link int32) float64 {
	a, b := int(link)/f.Nodes, int(link)%f.Nodes
	return f.level + f.out[a].effect + f.in[b].effect + f.between(a, b)
}

func (f *Fit) describe(sides []side, at func(i, j int) float64) []Effect {
	out := make([]Effect, len(sides))
	t, beyond := student(upper, f.df), max(f.least, f.linkBeyond())
	if math.IsNaN(beyond) {
		beyond = f.least
	}
	for i, s := range sides {
		e := Effect{Factor: math.Exp(s.effect), Low: math.NaN(), High: math.NaN(), Of: s.n}
		if s.n >= minLinks {
			half := t * f.error(s)
			e.Low, e.High = math.Exp(s.effect-half), math.Exp(s.effect+half)
		}
		slow := s.effect / 2
		if s.effect < f.least {
			slow = beyond
		}
		for j := range f.Nodes {
			if x := at(i, j); x-f.level-f.other(sides, j) >= slow {
				e.Slow++
			}
		}
		out[i] = e
	}
	return out
}

func (f *Fit) other(sides []side, j int) float64 {
	if f.Directed && &sides[0] == &f.out[0] {
		return max(0, f.in[j].effect)
	}
	return max(0, f.out[j].effect)
}

// Slowness returns the slowness of a link over its visits, or NaN if it has none.
func (f *Fit) Slowness(from, to int) float64 {
	return math.Exp(f.row(from, to) + f.between(from, to))
}
