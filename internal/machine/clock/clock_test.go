package clock

import (
	"testing"
	"time"
)

func TestNowIsMonotonicClock(t *testing.T) {
	before := monotonic()
	now := Now()
	after := monotonic()
	const slack = int64(50 * time.Microsecond) // a busy machine may interrupt the calibration
	if now < before-slack || now > after+slack {
		t.Errorf("Now() = %d, CLOCK_MONOTONIC from %d to %d", now, before, after)
	}
}
