package cli

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestLoadsOverASlowWire(t *testing.T) {
	f, fl := sending(t)
	for _, tt := range []struct {
		delay                        float64
		bulkWarmup, rrWarmup, window float64
	}{
		{0, 0.1, 0.05, 0.25},
		{0.001, 0.14, 0.054, 0.25},
		{0.1, 4.1, 0.45, 2},
	} {
		loads, _, err := f.loadsOver(fl, sample.Wire{Delay: tt.delay})
		if err != nil || len(loads) != 2 {
			t.Fatal(loads, err)
		}
		near := func(a, b float64) bool { return a > b-1e-9 && a < b+1e-9 }
		if !near(loads[0].Warmup, tt.bulkWarmup) || !near(loads[1].Warmup, tt.rrWarmup) ||
			!near(loads[0].Window, tt.window) || !near(loads[1].Window, tt.window) {
			t.Errorf("delay %g: %+v", tt.delay, loads)
		}
	}
}
