package fake

import (
	"context"
	"sync"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine/meter"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Clock is a clock that only moves when a caller sleeps.
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

// Sleep moves the clock to t. If ctx has ended, it returns ctx's cause instead.
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

// Timeout returns a context that ends after a minute of real time, whatever it is to be: the clock
// stands still, and a busy machine may take seconds to answer.
func (c *Clock) Timeout(ctx context.Context, _ time.Duration, cause error) (context.Context,
	context.CancelFunc) {
	return context.WithTimeoutCause(ctx, time.Minute, cause)
}

// Meter is a meter of two CPUs, each of which is busy half of the clock's time. Client and server
// run on one CPU for three quarters of the time.
type Meter struct{ Clock *Clock }

// Together returns a function that returns 0.75.
func (m Meter) Together(...meter.Pair) (stop func() *float64) {
	x := 0.75
	return func() *float64 { return &x }
}

// Read returns readings that follow from the clock. The processes' CPU times are 0.
func (m Meter) Read(pids ...int) (meter.Reading, error) {
	s := float64(m.Clock.Now()) / 1e9
	cpu := sample.CPU{User: s / 4, System: s / 4, Idle: s / 2}
	return meter.Reading{At: time.Unix(0, m.Clock.Now()), CPUs: []sample.CPU{cpu, cpu},
		Procs: make([]float64, len(pids))}, nil
}
