package clock

import (
	"testing"
	"time"
)

func TestReal(t *testing.T) {
	const slack = int64(50 * time.Microsecond)
	before := time.Now().UnixNano()
	now := Now() + Real()
	if after := time.Now().UnixNano(); now < before-slack || now > after+slack {
		t.Errorf("it is %d, not from %d to %d", now, before, after)
	}
}

func TestNowIsMonotonicClock(t *testing.T) {
	before := monotonic()
	now := Now()
	after := monotonic()
	const slack = int64(50 * time.Microsecond) // a busy machine may interrupt the calibration
	if now < before-slack || now > after+slack {
		t.Errorf("Now() = %d, CLOCK_MONOTONIC from %d to %d", now, before, after)
	}
}
