package observe

import (
	"context"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
)

// TestClockMoved reads the clocks while it has to wait for a CPU.
func TestClockMoved(t *testing.T) {
	var over sync.WaitGroup
	ctx, end := context.WithCancel(t.Context())
	for range 16 {
		over.Go(func() {
			for ctx.Err() == nil {
			}
		})
	}
	defer over.Wait()
	defer end()
	ahead := clock.Real()
	for until := time.Now().Add(300 * ms); time.Now().Before(until); {
		if moved := clockMoved(ahead); moved != 0 {
			t.Fatalf("the clock is said to have moved by %v s", moved)
		}
	}
	if moved := clockMoved(ahead - 1e9); math.Abs(moved-1) > 1e-3 {
		t.Errorf("a clock that was set by 1 s moved by %v s", moved)
	}
}

// TestEvidenceOfUnsureHops has a route that may lack hops.
func TestEvidenceOfUnsureHops(t *testing.T) {
	for _, unsure := range []bool{false, true} {
		v := &Visit{w: &Watch{}, route: &route{hops: make([]hop, 1), unsure: unsure}}
		if e := v.evidence(); e.HopsUnsure != unsure {
			t.Errorf("%+v of %+v", e, v.route)
		}
	}
}
