package meter

import (
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

func TestParseThread(t *testing.T) {
	for _, tt := range []struct {
		name, stat string
		ticks, cpu int
		ok         bool
	}{
		{"usual",
			"7 (sh) S 1 7 7 0 -1 4194304 1 2 3 4 30 12 0 0 20 0 1 0 5 6 7 8 1 1 1 1 1 0 0 0 0 0 " +
				"0 0 17 3 0 0 0 0 0", 42, 3, true},
		{"odd-name",
			"7 (a) b (c) S 1 7 7 0 -1 4194304 1 2 3 4 30 12 0 0 20 0 1 0 5 6 7 8 1 1 1 1 1 0 0 " +
				"0 0 0 0 0 17 3 0 0 0 0 0", 42, 3, true},
		{"short", "7 (sh) S 1 7", 0, 0, false},
		{"empty", "", 0, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ticks, cpu, ok := parseThread(tt.stat)
			if ticks != tt.ticks || cpu != tt.cpu || ok != tt.ok {
				t.Errorf("%d ticks on CPU %d, %v", ticks, cpu, ok)
			}
		})
	}
}

func TestTogetherOfPinnedProcesses(t *testing.T) {
	facts, _ := machine.Machine{}.Read()
	if len(facts.CPUsAllowed) < 2 {
		t.Skip("one CPU")
	}
	a, b := facts.CPUsAllowed[0], facts.CPUsAllowed[1]
	m, err := New()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name           string
		client, server int
		want           float64
	}{{"near", a, a, 1}, {"far", a, b, 0}} {
		t.Run(tt.name, func(t *testing.T) {
			// The client's first process was busy on the other CPU before.
			other := a + b - tt.client
			pair := Pair{busyChild(t, other, tt.client), busyChild(t, tt.server, tt.server)}
			testwait.Until(t, time.Minute, "busy threads on their CPUs", func() bool {
				stop := m.Together(pair)
				time.Sleep(2 * leastSamples * sampleStep)
				got := stop()
				return got != nil && *got == tt.want
			})
		})
	}
	t.Run("gone", func(t *testing.T) {
		const gone = 1<<22 + 1 // above the largest pid_max
		if got := m.Together(Pair{gone, gone})(); got != nil {
			t.Errorf("a process that is not there was together with itself: %v", *got)
		}
	})
}

// busyChild starts a process that works on one CPU, and then its child on another.
func busyChild(t *testing.T, first, cpu int) int {
	t.Helper()
	cmd := exec.Command("taskset", "-c", strconv.Itoa(first), "sh", "-c",
		bounded+"i=0; while [ $i -lt 99999 ]; do i=$((i+1)); done; taskset -c "+strconv.Itoa(cpu)+
			" sh -c 'while kill -0 $PPID; do :; done' & wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	endGroup(t, cmd)
	return cmd.Process.Pid
}
