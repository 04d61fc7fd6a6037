// Package testwait lets tests wait for what they need instead of for a time.
package testwait

import (
	"testing"
	"time"
)

// Met reports whether a condition was met within a limit. It asks often at first, and
// once more at the end.
func Met(limit time.Duration, met func() bool) bool {
	const most = 50 * time.Millisecond
	end := time.Now().Add(limit)
	for pause := time.Millisecond; time.Now().Before(end); pause = min(2*pause, most) {
		if met() {
			return true
		}
		time.Sleep(min(pause, time.Until(end)))
	}
	return met()
}

// Until ends the test if a condition, which what names, is not met within a limit.
func Until(t testing.TB, limit time.Duration, what string, met func() bool) {
	t.Helper()
	if !Met(limit, met) {
		t.Fatalf("after %s it is not yet so: %s", limit, what)
	}
}
