package load

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// The runtime's monitor sleeps by nanosleep(2) while a thread is in a raw system call.
func TestMonitorIsFirstThread(t *testing.T) {
	tid, err := monitor()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	defer func() { <-done }()
	go func() {
		defer close(done)
		runtime.LockOSThread()
		for range 100 {
			sleepUntil(clock.Now() + int64(10*time.Millisecond))
		}
	}()
	testwait.Until(t, time.Minute, "the monitor sleeps", func() bool {
		b, err := os.ReadFile("/proc/self/task/" + strconv.Itoa(tid) + "/syscall")
		if err != nil {
			t.Fatal(err)
		}
		return strings.HasPrefix(string(b), strconv.Itoa(unix.SYS_NANOSLEEP)+" ")
	})
}

func TestQuietMonitor(t *testing.T) {
	tid, err := monitor()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = setSlack(tid, 0) }) // the thread's default
	err = quietMonitor()
	if errors.Is(err, os.ErrPermission) && os.Getenv("CI") != "true" {
		t.Skip("the timer slack of another thread needs CAP_SYS_NICE")
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("/proc/" + strconv.Itoa(tid) + "/timerslack_ns")
	if err != nil {
		t.Fatal(err)
	}
	if want := strconv.FormatInt(monitorSlack.Nanoseconds(), 10); strings.TrimSpace(string(got)) != want {
		t.Errorf("the monitor's timer slack is %s ns, not %s", got, want)
	}
}
