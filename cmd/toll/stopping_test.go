package main

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// heard is a terminal that can be read while it is written.
type heard struct {
	mu   sync.Mutex // guards following
	text strings.Builder
}

func (h *heard) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(b)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// A run that takes long to end after a signal prints why. A run that ends soon, or that nobody
// stopped, prints nothing.
func TestSayStopping(t *testing.T) {
	for _, tt := range []struct {
		name  string
		stop  bool
		takes time.Duration
		says  bool
	}{{"slow", true, 3 * silentStop, true}, {"at-once", true, 0, false}, {"not-stopped", false, 2 * silentStop, false}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				var h heard
				done := (&progress{w: &h}).sayStopping(ctx)
				if tt.stop {
					stop()
				}
				time.Sleep(tt.takes)
				done()
				time.Sleep(2 * silentStop)
				if got := strings.Contains(h.String(), "stopping: removing what was built\n"); got != tt.says {
					t.Errorf("it says %q", h.String())
				}
			})
		})
	}
}
