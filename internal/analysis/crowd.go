package analysis

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// addCrowd adds a visit of a crowd, whose rates are the servers' word.
func (s *series) addCrowd(v sample.Visit, busy float64) {
	var clients, procs []float64
	total := 0.0
	for _, c := range v.Rates {
		sum := 0.0
		for _, p := range c {
			sum += p
		}
		clients = append(clients, sum)
		procs = append(procs, c...)
		total += sum
	}
	unit := 1.0
	if trafficOf(s.load).trips {
		s.addLatency(v)
		s.addTrips(v, total, busy)
	} else {
		s.addBulk(v, total, busy)
		unit = bitsPerByte
	}
	s.set(Memory, v.Round, float64(v.Client.RSS+v.Server.RSS))
	s.set(Setup, v.Round, v.Setup)
	s.set(StartSpread, v.Round, max(v.Client.Late, v.Server.Late))
	if len(procs) == 0 {
		return
	}
	s.set(ClientMean, v.Round, unit*total/float64(len(clients)))
	s.set(ClientMin, v.Round, unit*slices.Min(clients))
	s.set(ClientMax, v.Round, unit*slices.Max(clients))
	s.set(ClientFairness, v.Round, jain(clients))
	s.set(ProcessMin, v.Round, unit*slices.Min(procs))
	s.set(ProcessFairness, v.Round, jain(procs))
}

// jain is the fairness index of Jain, Chiu and Hawe (DEC-TR-301, 1984): from 1/n
// (one has all) to 1 (all have the same). NaN if nobody has anything.
func jain(xs []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, x := range xs {
		sum += x
		squares += x * x
	}
	return sum * sum / (float64(len(xs)) * squares)
}
