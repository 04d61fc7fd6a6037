// Package testwait lets tests wait for what they need instead of for a time.
package testwait

import (
	"testing"
	"time"
)

// Met reports whether a condition was met within a limit. It checks often at first, and once more
// at the end. The time between slow checks is a multiple of their duration.
func Met(limit time.Duration, met func() bool) bool {
	const (
		most      = 50 * time.Millisecond
		rest      = 3 // multiple of the duration of a check
		mostOfAll = time.Second
	)
	end := time.Now().Add(limit)
	for pause := time.Millisecond; time.Now().Before(end); pause = min(2*pause, most) {
		asked := time.Now()
		if met() {
			return true
		}
		took := min(rest*time.Since(asked), mostOfAll)
		time.Sleep(min(max(pause, took), time.Until(end)))
	}
	return met()
}

// Until ends the test if a condition, described by what, is not met within a limit.
func Until(t testing.TB, limit time.Duration, what string, met func() bool) {
	t.Helper()
	if !Met(limit, met) {
		t.Fatalf("after %s it is not yet so: %s", limit, what)
	}
}
