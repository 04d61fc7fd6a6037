package workload

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Metrics of crowds: how throughput (bulk) or transactions (rr) are distributed over client
// containers and processes. Fairness is Jain's index, from 1/n (one has all) to 1 (all have the
// same).
const (
	ClientMean      = "per_client_mean"
	ClientMin       = "per_client_min"
	ClientMax       = "per_client_max"
	ClientFairness  = "per_client_fairness"
	ProcessMin      = "per_process_min"
	ProcessFairness = "per_process_fairness"
	Memory          = "memory"       // peak of all the load's processes
	Setup           = "setup"        // from the first process's start to the last connection
	StartSpread     = "start_spread" // from the common start to the last first byte
)

func (f *Figures) crowd(v sample.Visit, w Workload) {
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
	if w.Trips {
		f.latency(v)
		f.trips(v, total)
	} else {
		f.bytes(v, total)
		unit = bitsPerByte
	}
	f.set(Memory, float64(v.Client.RSS+v.Server.RSS))
	f.set(Setup, v.Setup)
	f.set(StartSpread, max(v.Client.Late, v.Server.Late))
	if len(procs) == 0 {
		return
	}
	f.set(ClientMean, unit*total/float64(len(clients)))
	f.set(ClientMin, unit*slices.Min(clients))
	f.set(ClientMax, unit*slices.Max(clients))
	f.set(ClientFairness, jain(clients))
	f.set(ProcessMin, unit*slices.Min(procs))
	f.set(ProcessFairness, jain(procs))
}

// jain returns the index of Jain, Chiu and Hawe (DEC-TR-301, 1984), or NaN if all values are 0.
func jain(xs []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, x := range xs {
		sum += x
		squares += x * x
	}
	return sum * sum / (float64(len(xs)) * squares)
}
