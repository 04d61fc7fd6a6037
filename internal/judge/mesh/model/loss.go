package model

import (
	"math"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Sent counts the TCP segments that a visit sent from one node to another.
type Sent struct {
	Pair         sample.Pair // from, to
	Sweep, Round int
	Segments     int64 // received ones
	Again        int64 // retransmitted ones
}

const (
	// harmless is added to each retransmission rate, so that rates near zero do not differ by large
	// factors: such loss costs nothing.
	harmless = 0.0005
	// leastLoss is the least ratio of two rates, with harmless added to both, at which the higher
	// one is a fault: 0.1 % on a network without loss.
	leastLoss = 3
	// fewAgain is the number of retransmissions in a visit below which they count as none.
	fewAgain = 10
)

// Loss fits the model to the share of retransmitted segments. TCP retransmits on a healthy network,
// too, so a link is compared with the others and never with zero. Slownesses, factors and level are
// of rates with harmless added; Rate subtracts it.
func Loss(nodes int, sent []Sent) *Fit {
	visits := make([]Measurement, 0, len(sent))
	for _, s := range sent {
		if s.Segments > 0 {
			visits = append(visits, Measurement{Pair: s.Pair, Sweep: s.Sweep, Round: s.Round,
				Slowness: s.rate() + harmless})
		}
	}
	return newFit(nodes, true, leastLoss, visits)
}

func (s Sent) rate() float64 {
	if s.Again < fewAgain {
		return 0
	}
	return float64(s.Again) / float64(s.Again+s.Segments)
}

// Rate converts a slowness of a Loss fit to the retransmission rate, 0 to 1.
func Rate(slowness float64) float64 {
	const rounded = 1e-9 // logarithms do not return exactly what was added
	if rate := slowness - harmless; !(rate < rounded) {
		return rate
	}
	return 0
}

// LeastRate returns the smallest rate at which a link can be named if all else is typical, or NaN
// if it is not known.
func (f *Fit) LeastRate() float64 {
	if !f.Known() {
		return math.NaN()
	}
	return Rate(f.Level * f.LeastLink())
}
