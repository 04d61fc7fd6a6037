package meter

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// bounded limits the CPU time of busy loops, which may outlive a test that is killed, in s.
const bounded = "ulimit -t 60; "

// endGroup ends a program and all that it has started when the test ends.
func endGroup(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	t.Cleanup(func() {
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
		_ = cmd.Wait()
	})
}

func TestFamilyCPU(t *testing.T) {
	if _, err := os.Stat("/proc/self/task/self/children"); err != nil {
		if _, err := os.Stat("/proc/thread-self/children"); err != nil {
			t.Skip("the kernel does not list children")
		}
	}
	for _, tt := range []struct{ name, script string }{
		{"alive", "(trap 'exit 0' TERM; while kill -0 $PPID; do :; done) & wait"},
		{"grandchild", "(sh -c 'while kill -0 $PPID; do :; done'; :) & wait"},
		{"ended", "while :; do (i=0; while [ $i -lt 9999 ]; do i=$((i+1)); done); done"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.Command("sh", "-c", bounded+tt.script)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			if err := cmd.Start(); err != nil {
				t.Skip(err)
			}
			endGroup(t, cmd)
			pid := cmd.Process.Pid
			testwait.Until(t, time.Minute, "its children use CPU time", func() bool {
				all := FamilyCPU(pid)
				return all-ProcessCPU(pid) > 10*tick
			})
		})
	}
	const gone = 1<<22 + 1 // above the largest pid_max
	if x := FamilyCPU(gone); x != 0 {
		t.Errorf("a process that is not there used %s", x)
	}
}
