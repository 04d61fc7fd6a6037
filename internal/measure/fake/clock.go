package fake

import (
	"context"
	"sync"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine/meter"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Clock only moves when a caller sleeps.
type Clock struct {
	mu  sync.Mutex
	now int64
	// OnSleep, if set, is called with the time before each sleep.
	OnSleep func(now int64)
}

// Now returns the clock in ns.
func (c *Clock) Now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Sleep moves the clock to t.
func (c *Clock) Sleep(ctx context.Context, t int64) error {
	if c.OnSleep != nil {
		c.OnSleep(c.Now())
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = max(c.now, t)
	return nil
}

// Meter has two CPUs, each half busy by the clock. Client and server share one for three quarters
// of the time.
type Meter struct{ Clock *Clock }

// Together returns that share.
func (m Meter) Together(...meter.Pair) (stop func() *float64) {
	x := 0.75
	return func() *float64 { return &x }
}

// Read returns the clock as CPU time.
func (m Meter) Read(pids ...int) (meter.Reading, error) {
	s := float64(m.Clock.Now()) / 1e9
	cpu := sample.CPU{User: s / 4, System: s / 4, Idle: s / 2}
	return meter.Reading{At: time.Unix(0, m.Clock.Now()), CPUs: []sample.CPU{cpu, cpu},
		Procs: make([]float64, len(pids))}, nil
}
