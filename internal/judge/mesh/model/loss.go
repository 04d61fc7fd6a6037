package model

import (
	"math"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Sent is what a visit sent from a node to another, in TCP's segments.
type Sent struct {
	Pair         sample.Pair // from, to
	Sweep, Round int
	Segments     int64 // that came through
	Again        int64 // that were retransmitted
}

const (
	// harmless is the rate of retransmission that is added to each, so that of two
	// next to none neither is many times the other: it takes more to cost anything.
	harmless = 0.0005
	// leastLoss is how many times a rate, what is harmless added to both, must be
	// another to be a fault: on a network that loses nothing 0.1 %.
	leastLoss = 3
	// fewAgain is how many retransmissions in a visit are taken for none: of so few, a
	// rate says nothing.
	fewAgain = 10
)

// Loss fits the model to how much of what was sent had to be sent again. TCP does
// that without a fault of the network, too: a stream that fills a queue loses what
// does not fit. All others do so on such a network, so a link is held against
// them, and never against none.
//
// Be aware: slownesses of such a fit, its factors and its level are of rates to
// which what is harmless was added; Rate takes it off.
func Loss(nodes int, sent []Sent) *Fit {
	visits := make([]Visit, 0, len(sent))
	for _, s := range sent {
		if s.Segments > 0 {
			visits = append(visits, Visit{Pair: s.Pair, Sweep: s.Sweep, Round: s.Round, Slowness: s.rate() + harmless})
		}
	}
	return newFit(nodes, true, leastLoss, visits)
}

// rate is the share of what was sent that was sent again.
func (s Sent) rate() float64 {
	if s.Again < fewAgain {
		return 0
	}
	return float64(s.Again) / float64(s.Again+s.Segments)
}

// Rate is the rate of retransmission of a slowness of a fit of Loss.
func Rate(slowness float64) float64 {
	const rounded = 1e-9 // logarithms do not give back what was added
	if rate := slowness - harmless; !(rate < rounded) {
		return rate
	}
	return 0
}

// LeastRate is the rate from which on a link can be named, where all else is as
// typical; NaN if that is not known.
func (f *Fit) LeastRate() float64 {
	if !f.Known() {
		return math.NaN()
	}
	return Rate(f.Level * f.LeastLink())
}
