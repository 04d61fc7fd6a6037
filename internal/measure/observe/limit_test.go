package observe

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// serveAt is the environment's variable that makes TestServe a server at its address.
const serveAt = "TOLL_TEST_SERVE"

// TestServe is the process of TestCPULimit and others. Each of its tokens takes 4 ms of CPU time,
// or a pause behind the address.
func TestServe(t *testing.T) {
	var at string
	var pause time.Duration
	if n, _ := fmt.Sscan(os.Getenv(serveAt), &at, &pause); n == 0 {
		t.Skip("other tests start it")
	}
	l, err := listen(at)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("listens")
	serve := model(&truth{}, func(int) time.Duration {
		if pause > 0 {
			return pause
		}
		for until := cpuTime(t) + 4*ms; cpuTime(t) < until; {
		}
		return 0
	}, false)
	for {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		go serve(c)
	}
}

func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// limited makes a cgroup that stops its processes after 20 of each 100 ms of CPU time.
func limited(t *testing.T) (dir string) {
	t.Helper()
	parent := "/sys/fs/cgroup/cpu"
	files := map[string]string{"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "20000"}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil { // version 2
		parent, files = "/sys/fs/cgroup", map[string]string{"cpu.max": "20000 100000"}
	}
	dir, err := os.MkdirTemp(parent, "toll-test-")
	if err != nil {
		pathtest.SkipOrFail(t, "no cgroup can be made: %v", err)
	}
	t.Cleanup(func() {
		testwait.Met(patience, func() bool { return os.Remove(dir) == nil })
	})
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			pathtest.SkipOrFail(t, "no CPU limit can be set: %v", err)
		}
	}
	return dir
}

// startServer starts TestServe at an address of a machine. It returns the process.
func startServer(t *testing.T, m *machine, at string) (pid int) {
	t.Helper()
	server := exec.Command("/proc/self/exe", "-test.run=^TestServe$")
	server.Env = append(os.Environ(), serveAt+"="+at)
	out, err := server.StdoutPipe()
	if err == nil {
		err = m.Start(server)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	if _, err := fmt.Fscanln(out, new(string)); err != nil {
		t.Fatal(err)
	}
	return server.Process.Pid
}

// A CPU limit that stops the server is told from what the server does itself.
func TestCPULimit(t *testing.T) {
	m, dir := newMachine(t), limited(t)
	server := startServer(t, m, "127.0.0.1:7001")
	k := follow(t, m, "http://127.0.0.1:7001", 24)
	e, _ := k.visit(t, 1, 1)
	if e.Hops[0].Stopped != 0 {
		t.Errorf("without a limit it was stopped: %+v", e)
	}
	err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), fmt.Append(nil, server), 0)
	if err != nil {
		t.Fatal(err)
	}
	testwait.Unhindered(t, patience, func(u testing.TB) {
		e, _ := k.visit(u, 1, 2)
		stopped, took := e.Hops[0].Stopped, 2*e.Parts[tokens.Server].Last
		if stopped < took/5 || stopped > 2*e.Window || e.Window < took {
			u.Errorf("stopped for %.3f s of %.3f, the server's part is %.3f", stopped, e.Window,
				took)
		}
	})
}
