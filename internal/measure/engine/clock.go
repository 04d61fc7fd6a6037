package engine

import (
	"context"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
)

// Monotonic is the machine's CLOCK_MONOTONIC.
type Monotonic struct{}

var _ Clock = Monotonic{}

// Now returns the clock in ns.
func (Monotonic) Now() int64 { return clock.Now() }

// Timeout returns a context that ends after a time.
func (Monotonic) Timeout(ctx context.Context, in time.Duration, cause error) (context.Context,
	context.CancelFunc) {
	return context.WithTimeoutCause(ctx, in, cause)
}

// Sleep returns at t (ns). If ctx ends before, it returns ctx's cause.
func (Monotonic) Sleep(ctx context.Context, t int64) error {
	timer := time.NewTimer(time.Duration(t - clock.Now()))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
