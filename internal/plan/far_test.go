package plan

import (
	"math"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

func TestFarVisitsTakeLonger(t *testing.T) {
	p := sample.Plan{Loads: []sample.Load{{Kind: workload.RR, Warmup: 0.1, Window: 0.3}}}
	on := func(name string) float64 {
		p.Cells = []sample.Cell{{Mode: "host", Load: workload.RR, On: name}}
		return RoundTime(p)
	}
	for _, name := range sample.Backends() {
		if more := on(name) - on(sample.Lab); sample.Distant(name) &&
			math.Abs(more-farOverhead) > 1e-9 {
			t.Errorf("%s: a visit is planned to take %g s more than in the lab", name, more)
		}
	}
}
