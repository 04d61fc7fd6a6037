// Package mesh says in which order the pairs of a cluster's nodes are measured,
// and what is wrong with which node or link, from what was measured. It is
// pure: numbers in, numbers out.
//
// A slow machine makes all of its links slow, a bad cable one. The model is of
// logarithms, because what is slow is so by a factor:
//
//	slowness of a link = level + effect of one node + effect of the other + its own
//
// Nearly all that a link has of its own is noise, and most nodes have no effect
// worth naming; medians find both where up to about a third of the nodes are
// slow, as in Tukey's median polish (Exploratory Data Analysis, 1977, chapter
// 11), of which this is the first step. Further steps would take the effects of
// slow nodes off their partners' links; but two slow nodes do not make a link
// slow twice over where the slower one decides, and then the polish would call
// their partners fast.
//
// Be aware: what all nodes share is the level, and no fault. Of two nodes only
// the link between them can be named.
package mesh

import (
	"math"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/sample"
	"github.com/bridgetoll/bridgetoll/internal/stats"
)

// Visit is what a visit found.
type Visit struct {
	Pair         sample.Pair // from, to
	Sweep, Round int
	// Slowness is in any unit of which more is slower, such as seconds of a round
	// trip or seconds a bit, and more than 0.
	Slowness float64
}

// Effect is by how much a node is slower than is typical.
type Effect struct {
	Factor float64 // 1: as typical; the median over its links
	// Low and High bound the 95 % interval; they are NaN if the noise is not known.
	Low, High float64
	// Slow is how many of its links are slow: by half of that at least, in
	// logarithms, or if the node is not by what a link is named from.
	Slow, Of int
}

// Fit is the model of what was measured.
type Fit struct {
	Nodes    int
	Directed bool // a link from a to b is another than that from b to a
	Sweeps   int  // that have visits
	Visits   int
	Level    float64 // slowness of a link that is typical
	// Noise is the standard deviation of a link's logarithm, robustly, over all
	// sweeps together; NaN if there is too little to know it.
	Noise float64
	// Out and In are the effects of sending and receiving by node; they are the same
	// slice if the fit is not directed.
	Out, In []Effect
	Groups  []Group

	df      float64 // degrees of freedom behind Noise
	visits  []visit // by link
	first   []int32 // index of a link's first visit; one more than links
	links   []float64
	out, in []side
	level   float64
	label   []int       // a node's group; 0: the main one
	block   [][]float64 // what a link between two groups has more
}

// visit is a visit on its way through the model.
type visit struct {
	link         int32
	sweep, round int32
	y            float64 // logarithm of the slowness, later without its time's level
}

// side is one side of the node effects: rows (sending) or columns (receiving).
type side struct {
	effect, own float64 // own: robust standard deviation of its links
	n           int     // links
}

// What a fault is at least, as a factor: less is not worth a screwdriver.
const Least = 1.25

var least = math.Log(Least)

// New fits the model to visits between nodes that are numbered from 0. Visits
// without a slowness are left out.
func New(nodes int, directed bool, visits []Visit) *Fit {
	f := &Fit{Nodes: nodes, Directed: directed, Noise: math.NaN(), label: make([]int, nodes)}
	f.sort(visits)
	times := f.times(false)
	f.takeLevels(times, func(int32) float64 { return 0 })
	f.summarize()
	f.effects()
	f.noise()
	f.group()
	// Now that the nodes' effects are known, the level of each time can be told
	// from which of them it happened to visit.
	f.takeLevels(f.times(true), f.expected)
	f.summarize()
	f.effects()
	f.noise()
	f.Level = math.Exp(f.level)
	f.Out, f.In = f.describe(f.out, f.row), f.describe(f.in, f.column)
	if !directed {
		f.In = f.Out
	}
	f.describeGroups()
	return f
}

// sort puts the visits in the order of their links and sweeps.
func (f *Fit) sort(visits []Visit) {
	links := f.Nodes * f.Nodes
	f.first = make([]int32, links+1)
	link := func(v Visit) int {
		a, b := v.Pair[0], v.Pair[1]
		if !f.Directed {
			a, b = min(a, b), max(a, b)
		}
		return a*f.Nodes + b
	}
	good := func(v Visit) bool {
		return v.Slowness > 0 && !math.IsInf(v.Slowness, 0) && v.Pair[0] != v.Pair[1]
	}
	for _, v := range visits {
		if good(v) {
			f.first[link(v)+1]++
		}
	}
	for i := range links {
		f.first[i+1] += f.first[i]
	}
	f.Visits = int(f.first[links])
	f.visits = make([]visit, f.Visits)
	next := slices.Clone(f.first)
	sweeps := map[int]bool{}
	for _, v := range visits {
		if !good(v) {
			continue
		}
		l := link(v)
		f.visits[next[l]] = visit{int32(l), int32(v.Sweep), int32(v.Round), math.Log(v.Slowness)}
		next[l]++
		sweeps[v.Sweep] = true
	}
	f.Sweeps = len(sweeps)
}

// manyInRound is how many visits a round must have for a level of its own: of
// few, the median depends on which nodes happen to meet.
const manyInRound = 32

// times is the time of each visit, for which a level is taken off: its sweep or,
// if rounds are large enough, its round.
func (f *Fit) times(rounds bool) []int32 {
	type time struct{ sweep, round int32 }
	count := map[time]int{}
	for _, v := range f.visits {
		count[time{v.sweep, v.round}]++
	}
	ids := map[time]int32{}
	out := make([]int32, len(f.visits))
	for i, v := range f.visits {
		t := time{v.sweep, v.round}
		if !rounds || count[t] < manyInRound {
			t.round = -1
		}
		id, ok := ids[t]
		if !ok {
			id = int32(len(ids))
			ids[t] = id
		}
		out[i] = id
	}
	return out
}

// takeLevels takes off each visit the median of what the visits of its time have
// more than is expected of their links. The machine drifts by tens of per cent
// within minutes.
func (f *Fit) takeLevels(times []int32, expected func(link int32) float64) {
	var count []int
	for _, t := range times {
		for int(t) >= len(count) {
			count = append(count, 0)
		}
		count[t]++
	}
	rest := make([][]float64, len(count))
	for t, n := range count {
		rest[t] = make([]float64, 0, n)
	}
	for i, v := range f.visits {
		rest[times[i]] = append(rest[times[i]], v.y-expected(v.link))
	}
	levels := make([]float64, len(count))
	var all []float64
	for t, xs := range rest {
		levels[t] = lowMedian(xs)
		all = append(all, levels[t])
	}
	typical := lowMedian(all)
	for i := range f.visits {
		f.visits[i].y -= levels[times[i]] - typical
	}
}

// summarize makes one value of each link's visits: the low median, so that of two
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

// between is what a link between the groups of two nodes has more.
func (f *Fit) between(a, b int) float64 {
	if f.block == nil {
		return 0
	}
	return f.block[f.label[a]][f.label[b]]
}

func (f *Fit) row(i, j int) float64    { return f.links[i*f.Nodes+j] }
func (f *Fit) column(i, j int) float64 { return f.links[j*f.Nodes+i] }

// minLinks is how many links a node must have to have an effect: of one it would
// be the link's.
const minLinks = 2

// effects finds level and effects: first over all links of each node, then over
// those to nodes that do not look slow. With a third of the nodes slow, one slow
// link more would else be the majority.
func (f *Fit) effects() {
	all := make([]bool, f.Nodes)
	f.sides(all, all)
	slow := func(sides []side) []bool {
		out := make([]bool, len(sides))
		for i, s := range sides {
			out[i] = s.effect >= least
		}
		return out
	}
	f.sides(slow(f.in), slow(f.out))
}

// sides finds level and effects, of sending over links to nodes that are not
// slowIn, of receiving over links from nodes that are not slowOut.
func (f *Fit) sides(slowIn, slowOut []bool) {
	f.out = f.side(f.row, slowIn)
	f.in = f.out
	both := [][]side{f.out}
	if f.Directed {
		f.in = f.side(f.column, slowOut)
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

// side is the median of each node's links but those to slow nodes, if enough are
// left, and how far they are spread.
func (f *Fit) side(at func(i, j int) float64, slow []bool) []side {
	out := make([]side, f.Nodes)
	var xs, well []float64
	for i := range out {
		xs, well = xs[:0], well[:0]
		for j := range f.Nodes {
			x := at(i, j)
			if math.IsNaN(x) {
				continue
			}
			xs = append(xs, x)
			if !slow[j] {
				well = append(well, x)
			}
		}
		n := len(xs)
		if len(well) >= minLinks {
			xs, well = well, xs
		}
		m := lowMedian(xs)
		out[i] = side{m, spread(xs, m), n}
	}
	return out
}

// expected is what the model says of a link.
func (f *Fit) expected(link int32) float64 {
	a, b := int(link)/f.Nodes, int(link)%f.Nodes
	return f.level + f.out[a].effect + f.in[b].effect + f.between(a, b)
}

const (
	// normal is the standard deviation of a normal distribution whose median
	// absolute deviation is 1.
	normal = 1.4826
	// efficiency is that of the median absolute deviation against the standard
	// deviation, of normal values: what each is worth in degrees of freedom.
	efficiency = 0.37
	// medianError is the standard error of a median against that of a mean.
	medianError = 1.2533
	// quiet is the least noise that is believed.
	quiet = 0.005
)

// noise is the larger one of two: how far the links' values are spread about the
// model, and what the spread of each link's own visits leaves of their median.
func (f *Fit) noise() {
	f.Noise, f.df = f.replicate()
	const enough = 4 // degrees of freedom: with fewer, the visits' own spread says more
	if sigma, df := f.residual(); math.IsNaN(f.Noise) || df >= enough && sigma > f.Noise {
		f.Noise, f.df = sigma, df
	}
	if f.Noise < quiet {
		f.Noise = quiet
	}
}

// residual is the noise by what the model leaves of the links; NaN if there are
// too few.
func (f *Fit) residual() (sigma, df float64) {
	rest := make([]float64, 0, f.Nodes*f.Nodes)
	for l := range f.Nodes * f.Nodes {
		if f.first[l] < f.first[l+1] {
			rest = append(rest, f.links[l]+f.between(l/f.Nodes, l%f.Nodes)-f.expected(int32(l)))
		}
	}
	params := f.Nodes
	if f.Directed {
		params = 2*f.Nodes - 1
	}
	left := float64(len(rest) - params)
	const few = 2 // degrees of freedom: six links more than parameters
	if efficiency*left < few {
		return math.NaN(), 0
	}
	return spread(rest, lowMedian(rest)) * math.Sqrt(float64(len(rest))/left), efficiency * left
}

// replicate is the noise of a link's value by how its own visits differ; NaN if
// there are too few.
func (f *Fit) replicate() (sigma, df float64) {
	steps := make([]float64, 0, len(f.visits))
	visits, links := 0, 0
	for l := range f.Nodes * f.Nodes {
		own := f.visits[f.first[l]:f.first[l+1]]
		visits += len(own)
		for i := range own {
			if i == 0 {
				links++
				continue
			}
			steps = append(steps, math.Abs(own[i].y-own[i-1].y))
		}
	}
	if df = efficiency * float64(len(steps)); df < 1 {
		return math.NaN(), 0
	}
	each := float64(visits) / float64(links)
	return normal * median(steps) / math.Sqrt2 * min(1, medianError/math.Sqrt(each)), df
}

// error is the standard error of a side's effect.
func (f *Fit) error(s side) float64 {
	const enough = 5 // links, for a spread of their own
	sigma := f.Noise
	if s.n >= enough {
		sigma = max(sigma, s.own)
	}
	return sigma * min(1, medianError/math.Sqrt(float64(s.n)))
}

// describe is the effects as a report has them.
func (f *Fit) describe(sides []side, at func(i, j int) float64) []Effect {
	out := make([]Effect, len(sides))
	for i, s := range sides {
		e := Effect{Factor: math.Exp(s.effect), Low: math.NaN(), High: math.NaN(), Of: s.n}
		if s.n >= minLinks {
			half := student(1-(1-stats.Confidence)/2, f.df) * f.error(s) // NaN without noise
			e.Low, e.High = math.Exp(s.effect-half), math.Exp(s.effect+half)
		}
		slow := s.effect / 2
		if s.effect < least {
			slow = least
			if beyond := f.linkBeyond(); beyond > slow {
				slow = beyond
			}
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

// other is by how much node j slows its links down on the side that is not of
// sides.
func (f *Fit) other(sides []side, j int) float64 {
	if f.Directed && &sides[0] == &f.out[0] {
		return max(0, f.in[j].effect)
	}
	return max(0, f.out[j].effect)
}

// Slowness is what a link's visits came to; NaN if it has none.
func (f *Fit) Slowness(from, to int) float64 {
	return math.Exp(f.row(from, to) + f.between(from, to))
}
