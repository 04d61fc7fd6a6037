package testwait

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestMet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !Met(time.Hour, func() bool { return time.Since(began) >= time.Minute }) {
			t.Error("a condition that is met after a minute is not seen")
		}
		if took := time.Since(began); took > time.Minute+50*time.Millisecond {
			t.Errorf("it was seen after %s", took)
		}
		began = time.Now()
		if Met(time.Second, func() bool { return false }) {
			t.Error("a condition is never met and was")
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("it gave up after %s", took)
		}
		if !Met(0, func() bool { return true }) {
			t.Error("a condition that is met at once is not seen without time")
		}
	})
}
