package observe

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
	"github.com/bridgetoll/bridgetoll/internal/testing/testversions"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// first runs a process before others, if that is permitted.
func first(cmd *exec.Cmd) { _ = unix.Setpriority(unix.PRIO_PROCESS, cmd.Process.Pid, -20) }

// starts starts a server that ends with the test, and waits until it is ready.
func starts(t *testing.T, server *exec.Cmd, ready func() bool) {
	t.Helper()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	first(server)
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGQUIT)
		_ = server.Wait()
	})
	testwait.Until(t, patience, server.Path+" is ready", ready)
}

// redis starts a Redis and returns its process.
func redis(t *testing.T, port string) (pid int) {
	t.Helper()
	for _, name := range []string{"redis-server", "redis-benchmark"} {
		if _, err := exec.LookPath(name); err != nil {
			pathtest.SkipOrFail(t, "%s is not installed: apt-get install redis-server redis-tools", name)
		}
	}
	testversions.Ran(t, "Redis", testversions.Of("redis-server", "--version"), "`toll trace --attach`")
	server := exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "",
		"--appendonly", "no", "--dir", t.TempDir())
	starts(t, server, func() bool {
		c, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return server.Process.Pid
}

// attachedDuring watches a server while a client runs.
func attachedDuring(t testing.TB, at string, client *exec.Cmd) (got *sample.Served) {
	t.Helper()
	s, err := attach(t.Context(), os.Getpid(),
		probing(func() (net.Conn, error) { return net.Dial("tcp", at) }))
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var failed error
	var said bytes.Buffer
	client.Stdout, client.Stderr = &said, &said
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	first(client)
	go func() {
		defer end()
		failed = client.Wait()
	}()
	got, err = s.watch(ctx, patience)
	if errClose := s.Close(); err == nil {
		err = errClose
	}
	<-ctx.Done()
	if err != nil || failed != nil {
		t.Fatalf("%v, %v: %s", err, failed, said.String())
	}
	return got
}

// TestAttachTellsWaitsForCPU pins a Redis to a CPU that another program uses, and compares its parts
// with what the kernel says of its process, which ran and waited while it had no request, too.
func TestAttachTellsWaitsForCPU(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	needsWrites(t)
	at := testnet.TCP(t)
	pid := redis(t, strconv.Itoa(int(at.Port())))
	busy := exec.Command("sh", "-c", "while :; do :; done")
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	first(busy)
	t.Cleanup(func() {
		_ = busy.Process.Kill()
		_ = busy.Wait()
	})
	var one, cpus unix.CPUSet
	if err := unix.SchedGetaffinity(0, &cpus); err != nil {
		t.Fatal(err)
	}
	for cpu := range 1024 {
		if cpus.IsSet(cpu) {
			one.Set(cpu)
			break
		}
	}
	for _, p := range []int{busy.Process.Pid, pid} {
		if err := unix.SchedSetaffinity(p, &one); err != nil {
			t.Fatal(err)
		}
	}
	testwait.Unhindered(t, 2*time.Minute, func(u testing.TB) {
		ran, waited := schedOf(u, pid)
		got := attachedDuring(u, at.String(), slowLua(strconv.Itoa(int(at.Port()))))
		ran2, waited2 := schedOf(u, pid)
		for part, want := range map[string]float64{sample.EvidenceServer: ran2 - ran,
			sample.ServedCPU: waited2 - waited} {
			i := slices.IndexFunc(got.Parts, func(p sample.ServedPart) bool { return p.Part == part })
			if i < 0 {
				u.Fatalf("no part %s in %+v", part, got)
			}
			sum := got.Parts[i].Mean * float64(got.Requests)
			if sum > 1.15*want || sum < 0.85*want-idle(got) || want < 0.2 {
				u.Errorf("%s: %.3f s, the kernel says %.3f: %+v", part, sum, want, got)
			}
		}
	})
}

// idle returns for how long a server had no request from its only client between the first one and the
// last, in s.
func idle(s *sample.Served) float64 {
	if s.Client == nil {
		return 0
	}
	return float64(s.Requests) * (s.Client.Whole.Mean - s.Whole.Mean + s.Client.Between.Mean)
}

// schedOf returns for how long a process' first thread has run and waited for a CPU, in s.
func schedOf(t testing.TB, pid int) (ran, waited float64) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, pid))
	if err == nil {
		_, err = fmt.Sscan(string(b), &ran, &waited)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ran / 1e9, waited / 1e9
}

func slowLua(port string) *exec.Cmd {
	return exec.Command("redis-benchmark", "-p", port, "-c", "1", "-n", "300", "--csv", "eval",
		"local x = 0; for i = 1, 300000 do x = x + i end; return x", "0")
}
