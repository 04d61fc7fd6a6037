package meter

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testwait"
)

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
			cmd := exec.Command("sh", "-c", tt.script)
			if err := cmd.Start(); err != nil {
				t.Skip(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
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
