package idle

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// used returns how often CPUs have idled in the states that match a pattern.
func used(t *testing.T, state string) (n int) {
	t.Helper()
	files, err := filepath.Glob("/sys/devices/system/cpu/cpu[0-9]*/cpuidle/" + state + "/usage")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // of a CPU that was taken away
		}
		x, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil {
			t.Fatal(err)
		}
		n += x
	}
	return n
}

func TestPoll(t *testing.T) {
	var missing *machine.UnsupportedError
	if err := Try(); errors.As(err, &missing) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	release, err := Poll()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := release(); err != nil {
			t.Error(err)
		}
	})
	polled, idled := used(t, "state0"), used(t, "state*")
	if !testwait.Met(time.Minute, func() bool { return used(t, "state0") > polled }) {
		if used(t, "state*") == idled {
			t.Skip("no CPU was idle")
		}
		t.Error("idle CPUs do not poll")
	}
}
