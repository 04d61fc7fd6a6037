package pathtest

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// NeedsDaemons skips the test, or fails it under CI=true, without root, dockerd and the named
// programs.
func NeedsDaemons(t testing.TB, programs ...string) {
	t.Helper()
	for _, p := range append([]string{"dockerd", "docker", "unshare", "nsenter", "ip"},
		programs...) {
		if _, err := exec.LookPath(p); err != nil {
			SkipOrFail(t, "%v", err)
		}
	}
	if os.Geteuid() != 0 {
		SkipOrFail(t, "dockerd needs root")
	}
}

// Machine is a set of new network, mount and PID namespaces. They end with the machine's first
// process, at the end of the test at the latest.
type Machine struct{ unshare int }

// Boot starts a machine whose first process is bash with a script, and does not wait for it. with
// sets the command's output.
func Boot(t testing.TB, script string, with func(*exec.Cmd), args ...string) *Machine {
	t.Helper()
	cmd := exec.Command("unshare", append([]string{
		"-n", "-m", "-p", "-f", "--kill-child", "--mount-proc", "bash", "-c", script, "boot"},
		args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Env = append(os.Environ(), "DOCKER_HOST=")
	with(cmd)
	over := StartTied(t, cmd)
	m := &Machine{cmd.Process.Pid}
	t.Cleanup(func() {
		defer over()
		first := m.First()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		// Files can be removed only after the processes have ended.
		testwait.Met(time.Minute, func() bool {
			_, err := os.Stat("/proc/" + first)
			return first == "" || err != nil
		})
	})
	return m
}

// StartTied starts a command whose Pdeathsig is set: it gets the signal when the test's process
// ends, also if that is killed. over must be called once the command has ended.
func StartTied(t testing.TB, cmd *exec.Cmd) (over func()) {
	t.Helper()
	started, done := make(chan error), make(chan struct{})
	go func() { // the signal comes when the thread that started the command ends
		runtime.LockOSThread()
		started <- cmd.Start()
		<-done
	}()
	if err := <-started; err != nil {
		close(done)
		t.Fatal(err)
	}
	return sync.OnceFunc(func() { close(done) })
}

// First returns the PID of the machine's first process here, or "" before it exists.
func (m *Machine) First() string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", m.unshare, m.unshare))
	return strings.TrimSpace(string(b))
}
