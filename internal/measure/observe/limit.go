package observe

import limits "github.com/bridgetoll/bridgetoll/internal/machine"

// strain reads for how long CPU limits stop a hop's process.
type strain struct {
	*limits.Strain // nil: the process is unknown
	before         map[string]float64
}

func strainOf(h hop) (s strain) {
	if pid := h.about.PID; pid != 0 {
		s.Strain = limits.Machine{}.StrainOf(pid)
		s.before = s.Stopped()
	}
	return s
}

// stopped returns for how long the limit that stopped the process for the longest time did so since
// strainOf, in s.
func (s strain) stopped() (most float64) {
	if s.Strain == nil {
		return 0
	}
	for group, x := range s.Stopped() {
		if before, ok := s.before[group]; ok {
			most = max(most, x-before)
		}
	}
	return most
}
