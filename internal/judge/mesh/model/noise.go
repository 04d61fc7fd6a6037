package model

import (
	"math"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
)

const (
	// normal is the standard deviation of a normal distribution whose median absolute deviation is
	// 1.
	normal = 1.4826
	// efficiency is the degrees of freedom that a normal value adds to the median absolute
	// deviation; to the standard deviation it adds 1.
	efficiency = 0.37
	// bentEfficiency is the same for the scale of Huber's proposal 2.
	bentEfficiency = 0.75
	// medianError is the standard error of a median relative to a mean's.
	medianError = 1.2533
	// the smallest credible noise
	quiet = 0.005
)

// takeLevels subtracts the common part of each sweep's visits, because machines drift by tens of
// per cent within minutes, and finds the noise of the visits.
func (f *Fit) takeLevels() {
	times := f.times(false)
	a := f.additive(times)
	f.takeOff(times, a.levels)
	f.visitNoise, f.visitFree = a.scale, freedom(a.free)
	f.informed(times)
	if len(a.levels) > 1 {
		d := newAdditive(a.levels, make([]int32, len(a.levels)), make([]int32, len(a.levels)), 1, 1)
		f.drift, f.driftFree = d.scale/math.Sqrt(float64(len(a.levels))), freedom(d.free)
		f.centre = d.centres[0]
	} else {
		f.drift = math.NaN()
	}
	f.centres = make([]float64, f.Nodes*f.Nodes)
	for i, v := range f.visits {
		f.centres[v.link] = a.centres[a.group[i]] + f.centre
	}
}

// takeRoundLevels does what takeLevels does for each round that is large enough. The effects of the
// nodes must be known, so that a round's level does not depend on its nodes.
func (f *Fit) takeRoundLevels() {
	sweeps, rounds := f.times(false), f.times(true)
	more := len(f.count(rounds)) - len(f.count(sweeps))
	if more == 0 {
		return
	}
	f.takeRounds(rounds)
	a := f.additive(make([]int32, len(f.visits)))
	if free := a.free - len(f.count(rounds)); free > 0 {
		f.visitNoise, f.visitFree = a.scale*math.Sqrt(float64(a.free)/float64(free)), freedom(free)
	}
}

func (f *Fit) additive(times []int32) *additive {
	y, group := make([]float64, len(f.visits)), make([]int32, len(f.visits))
	groups := int32(-1)
	for i, v := range f.visits {
		if i == 0 || v.link != f.visits[i-1].link {
			groups++
		}
		y[i], group[i] = v.y, groups
	}
	return newAdditive(y, group, times, int(groups+1), len(f.count(times)))
}

// freedom returns the degrees of freedom of a bent scale; 1 stays 1.
func freedom(free int) float64 { return max(min(1, float64(free)), bentEfficiency*float64(free)) }

// informed counts, for each link, the visits that can be compared with those of other pairs in
// their sweep. A single pair is compared with its other direction.
func (f *Fit) informed(times []int32) {
	all := f.count(times)
	pairs := 0
	for a := range f.Nodes {
		for b := range a {
			if there, back := f.pair(a, b); len(there)+len(back) > 0 {
				pairs++
			}
		}
	}
	f.Alone = pairs == 1
	f.info = make([]float64, f.Nodes*f.Nodes)
	for i, v := range f.visits {
		with := 0
		if f.Alone {
			with = 1
		} else {
			there, back := f.pair(int(v.link)/f.Nodes, int(v.link)%f.Nodes)
			for _, visits := range [][]visit{there, back} {
				for _, o := range visits {
					if o.sweep == v.sweep {
						with++
					}
				}
			}
		}
		f.info[v.link] += 1 - float64(with)/float64(all[times[i]])
	}
}

// pair returns the visits from a to b and those back. Without directions, there holds all.
func (f *Fit) pair(a, b int) (there, back []visit) {
	l := f.linkOf(a, b)
	there = f.visits[f.first[l]:f.first[l+1]]
	if f.Directed {
		l = f.linkOf(b, a)
		back = f.visits[f.first[l]:f.first[l+1]]
	}
	return there, back
}

// noise sets Noise from the spread of the links' visits, or from the links' deviations from the
// model if these are larger.
func (f *Fit) noise() {
	f.Noise, f.df, f.beside = f.visitNoise*linkError(f.typicalInfo()), f.visitFree, 0
	const enough = 4 // degrees of freedom: with fewer, the visits' own spread is better evidence
	if sigma, df := f.residual(); math.IsNaN(f.Noise) || df >= enough && sigma > f.Noise {
		if !math.IsNaN(f.Noise) {
			f.beside = math.Sqrt(sigma*sigma - f.Noise*f.Noise)
		} else {
			f.beside = sigma
		}
		f.Noise, f.df = sigma, df
	}
	if f.Noise < quiet {
		f.beside = math.Hypot(f.beside, quiet)
		f.Noise = quiet
	}
}

func (f *Fit) typicalInfo() float64 {
	var all []float64
	for _, n := range f.info {
		if n > 0 {
			all = append(all, n)
		}
	}
	return lowMedian(all)
}

// linkError returns the standard error of the median of n visits, relative to one visit's.
func linkError(n float64) float64 {
	return max(1/math.Sqrt(n), min(1, medianError/math.Sqrt(n)))
}

// linkNoise returns the standard error of a link's value, or +Inf if the link cannot be compared
// with any other.
func (f *Fit) linkNoise(l int32) float64 {
	if math.IsNaN(f.visitNoise) {
		return f.Noise
	}
	return math.Hypot(f.visitNoise*linkError(f.info[l]), f.beside)
}

// residual returns the noise by the links' deviations from the model, and its degrees of freedom.
// The noise is NaN if there are too few links.
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

func (f *Fit) error(s side) float64 {
	const enough = 5
	sigma := f.Noise
	if own := math.Hypot(f.visitNoise*s.unit, f.beside); own > sigma {
		sigma = own
	}
	if s.n >= enough {
		sigma = max(sigma, s.own)
	}
	return sigma * min(1, medianError/math.Sqrt(float64(s.n)))
}

// student returns the quantile p > 0.5, or NaN for less than one degree of freedom. With many it
// expands about the normal quantile (Abramowitz & Stegun 26.7.5): the exact computation does not
// converge.
func student(p, df float64) float64 {
	const many = 50
	switch {
	case !(df >= 1):
		return math.NaN()
	case df < many:
		return stats.Student(p, df)
	}
	z := math.Sqrt2 * math.Erfinv(2*p-1)
	z2 := z * z
	return z + z*(z2+1)/(4*df) + z*((5*z2+16)*z2+3)/(96*df*df)
}

// Link returns the absolute value of a link and its 95 % interval, which includes the drift from
// sweep to sweep; NaN if that is not known. The value is Huber's mean, while Slowness is the lower
// median.
func (f *Fit) Link(from, to int) (x, low, high float64) {
	l := f.linkOf(from, to)
	n := float64(f.first[l+1] - f.first[l])
	if n == 0 {
		return math.NaN(), math.NaN(), math.NaN()
	}
	own := f.visitNoise / math.Sqrt(f.info[l])
	switch {
	case f.Alone && f.info[l] == 0:
		own = 0
	case f.Alone: // the common part of both directions belongs to the sweep
		own = f.visitNoise * math.Sqrt(f.info[l]) / n
	}
	half := f.interval(own)
	return math.Exp(f.centres[l]), math.Exp(f.centres[l] - half), math.Exp(f.centres[l] + half)
}

// Typical returns the mean over the sweeps of the common part of all links, and its 95 % interval,
// NaN if that is not known.
func (f *Fit) Typical() (x, low, high float64) {
	var all []float64
	unknown, links := 0.0, 0.0
	for l := range f.Nodes * f.Nodes {
		if f.first[l] == f.first[l+1] || !f.Directed && l/f.Nodes > l%f.Nodes {
			continue
		}
		all = append(all, f.centres[l])
		links++
		if n := f.info[l]; n > 0 {
			unknown += f.visitNoise * f.visitNoise / n
		}
	}
	if len(all) == 0 {
		return math.NaN(), math.NaN(), math.NaN()
	}
	m := median(all)
	own := 0.0
	if links > 2 { //nolint:mnd // of fewer the sweeps' mean is theirs
		own = medianError * math.Sqrt(unknown) / links
	}
	half := f.interval(own)
	return math.Exp(m), math.Exp(m - half), math.Exp(m + half)
}

func (f *Fit) interval(own float64) float64 {
	half := f.driftT * f.drift
	if own > 0 {
		half = math.Hypot(half, f.visitT*own)
	}
	return max(half, quiet)
}
