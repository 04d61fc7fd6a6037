package analysis

import "github.com/bridgetoll/bridgetoll/internal/sample"

// Names of the metrics of exec besides those that its program prints.
const (
	Elapsed  = sample.Elapsed // how long the client took
	BusyCPUs = "busy_cpus"    // of the whole machine meanwhile, programs and kernel
)

// addProgram adds a visit of exec.
func (s *series) addProgram(v sample.Visit, l sample.Load, busy float64) {
	for name, x := range v.Values {
		if _, ok := l.Gauge(name); ok || name == Elapsed {
			s.set(name, v.Round, x)
		}
	}
	if v.Elapsed >= shortest && len(v.Machine) > 0 {
		s.set(BusyCPUs, v.Round, busy/v.Elapsed)
	}
}

// runs is what a visit of exec got done: the client once.
func runs(sample.Visit, sample.Load) float64 { return 1 }
