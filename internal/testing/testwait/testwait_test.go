package testwait

import (
	"errors"
	"os/exec"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestInCall(t *testing.T) {
	cat := exec.Command("cat")
	in, err := cat.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cat.Start(); err != nil {
		t.Fatal(err)
	}
	InCall(t, time.Minute, cat.Process.Pid, syscall.SYS_READ)
	other := &failing{TB: t}
	InCall(other, 100*time.Millisecond, cat.Process.Pid, syscall.SYS_WRITE)
	if !other.failed {
		t.Error("it is said to write")
	}
	if err := errors.Join(in.Close(), cat.Wait()); err != nil {
		t.Error(err)
	}
}

type failing struct {
	testing.TB
	failed bool
}

func (f *failing) Fatalf(string, ...any) { f.failed = true }

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
