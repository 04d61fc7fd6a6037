package model

import (
	"math"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
)

// additive is a robust fit of y = group + time + noise to the visits: Huber's M-estimate with his
// proposal 2 for the scale (Robust Statistics, 1981, chapter 6). A group is a link.
type additive struct {
	y           []float64
	group, time []int32
	weights     []float64
	rest        []float64 // residuals
	centres     []float64 // by group
	levels      []float64 // by time; their mean is 0 in each connected part of the visits
	free        int       // degrees of freedom that the groups and times leave
	scale       float64   // standard deviation of the noise, NaN without degrees of freedom
}

const (
	// bend is where Huber's function turns from squares to absolute values, in standard deviations.
	bend = 1.5
	// bent is the mean of the square of Huber's function over a normal distribution.
	bent  = 0.7784
	steps = 30
)

func newAdditive(y []float64, group, time []int32, groups, times int) *additive {
	a := &additive{y: y, group: group, time: time, weights: make([]float64, len(y)),
		rest:    make([]float64, len(y)),
		centres: make([]float64, groups), levels: make([]float64, times), scale: math.NaN()}
	a.free = len(y) - a.rank()
	for i := range a.weights {
		a.weights[i] = 1
	}
	a.start()
	for range steps {
		a.solve()
		last := a.scale
		a.rescale()
		const settled = 1e-3
		if !(math.Abs(a.scale-last) > settled*a.scale) && !math.IsNaN(last) || !(a.scale > 0) {
			break
		}
		for i, r := range a.rest {
			a.weights[i] = min(1, bend*a.scale/math.Abs(r))
		}
	}
	return a
}

// rank returns the number of independent parameters: groups plus times, less one for each connected
// part of the visits.
func (a *additive) rank() int {
	groups := len(a.centres)
	parent := make([]int32, groups+len(a.levels))
	for i := range parent {
		parent[i] = int32(i)
	}
	find := func(i int32) int32 {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	joined := 0
	for i := range a.y {
		if g, t := find(a.group[i]), find(int32(groups)+a.time[i]); g != t {
			parent[g] = t
			joined++
		}
	}
	return joined
}

// start sets the first weights by each visit's distance from its group's median, after subtracting
// the median of its time, so that no single visit decides them.
func (a *additive) start() {
	none := make([]float64, len(a.levels))
	a.levels = medians(a.y, a.time, len(a.levels), none, a.time)
	a.centres = medians(a.y, a.group, len(a.centres), a.levels, a.time)
	a.residuals()
	far := make([]float64, len(a.rest))
	for i, r := range a.rest {
		far[i] = math.Abs(r)
	}
	if len(far) == 0 {
		return
	}
	if scale := normal * stats.Kth(far, (len(far)+a.rankedBelow())/2); scale > 0 {
		for i, r := range a.rest {
			a.weights[i] = min(1, 2*bend*scale/math.Abs(r))
		}
	}
}

func (a *additive) rankedBelow() int { return min(len(a.y)-a.free, len(a.y)-1) }

// solve finds the weighted least squares: the levels by conjugate gradients, with the groups'
// centres eliminated.
func (a *additive) solve() {
	inGroup := make([]float64, len(a.centres))
	for i, w := range a.weights {
		inGroup[a.group[i]] += w
	}
	clear(a.levels)
	if len(a.levels) > 1 {
		a.level(inGroup)
	}
	a.means(a.centres, inGroup, a.y, a.levels)
	a.residuals()
}

func (a *additive) level(inGroup []float64) {
	times := len(a.levels)
	means := make([]float64, len(a.centres))
	r, p, ap := make([]float64, times), make([]float64, times), make([]float64, times)
	a.means(means, inGroup, a.y, a.levels)
	for i, w := range a.weights {
		r[a.time[i]] += w * (a.y[i] - means[a.group[i]])
	}
	copy(p, r)
	first := dot(r, r)
	for left, step := first, 0; left > 1e-20*first && left > 0 && step < 4*times; step++ {
		a.means(means, inGroup, nil, p)
		clear(ap)
		for i, w := range a.weights {
			ap[a.time[i]] += w * (p[a.time[i]] + means[a.group[i]])
		}
		curve := dot(p, ap)
		if !(curve > 0) {
			break
		}
		by := left / curve
		for t := range r {
			a.levels[t] += by * p[t]
			r[t] -= by * ap[t]
		}
		next := dot(r, r)
		for t := range p {
			p[t] = r[t] + next/left*p[t]
		}
		left = next
	}
}

// means stores each group's weighted mean of y - off, or 0 for a group without weight. A nil y
// counts as 0.
func (a *additive) means(means, inGroup, y, off []float64) {
	clear(means)
	for i, w := range a.weights {
		x := -off[a.time[i]]
		if y != nil {
			x += y[i]
		}
		means[a.group[i]] += w * x
	}
	for g, w := range inGroup {
		if w > 0 {
			means[g] /= w
		}
	}
}

func (a *additive) residuals() {
	for i, y := range a.y {
		a.rest[i] = y - a.centres[a.group[i]] - a.levels[a.time[i]]
	}
}

func (a *additive) rescale() {
	if a.free < 1 {
		return
	}
	most := math.Inf(1)
	for range steps {
		sum := 0.0
		for _, r := range a.rest {
			r = min(math.Abs(r), most)
			sum += r * r
		}
		if math.IsInf(most, 1) {
			sum *= bent
		}
		scale := math.Sqrt(sum / (bent * float64(a.free)))
		const settled = 1e-4
		if math.Abs(scale-a.scale) <= settled*scale {
			a.scale = scale
			return
		}
		a.scale, most = scale, bend*scale
	}
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}

func medians(y []float64, group []int32, groups int, off []float64, time []int32) []float64 {
	first := make([]int, groups+1) // of each group's values
	for _, g := range group {
		first[g+1]++
	}
	for g := range groups {
		first[g+1] += first[g]
	}
	values, next := make([]float64, len(y)), slices.Clone(first)
	for i, g := range group {
		values[next[g]] = y[i] - off[time[i]]
		next[g]++
	}
	out := make([]float64, groups)
	for g := range out {
		if xs := values[first[g]:first[g+1]]; len(xs) > 0 {
			out[g] = median(xs)
		}
	}
	return out
}
