package model

import (
	"math"
)

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
