package observe

import (
	"bytes"
	"context"
	"errors"
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
func attachedDuring(t testing.TB, at string, client *exec.Cmd) *sample.Served {
	t.Helper()
	return attachedWhile(t, at, client, func() error { return nil })
}

// attachedWhile does as attachedDuring. It calls mark before the client runs, and after it.
func attachedWhile(t testing.TB, at string, client *exec.Cmd,
	mark func() error) (got *sample.Served) {
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
	if err := errors.Join(mark(), client.Start()); err != nil {
		t.Fatal(err)
	}
	first(client)
	go func() {
		defer end()
		failed = errors.Join(client.Wait(), mark())
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
// with what the kernel says of its process, which ran and waited while it had no request, too: on a
// busy machine mostly before the client runs, and after it.
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
		var marks []sched
		got := attachedWhile(u, at.String(), slowLua(strconv.Itoa(int(at.Port()))), func() error {
			s, err := schedOf(pid)
			marks = append(marks, s)
			return err
		})
		before, after := marks[0], marks[1]
		took := after.at.Sub(before.at).Seconds()
		idle := took - float64(got.Requests)*got.Whole.Mean
		for part, want := range map[string]float64{sample.EvidenceServer: after.ran - before.ran,
			sample.ServedCPU: after.waited - before.waited} {
			i := slices.IndexFunc(got.Parts, func(p sample.ServedPart) bool { return p.Part == part })
			if i < 0 {
				u.Fatalf("no part %s in %+v", part, got)
			}
			sum := got.Parts[i].Mean * float64(got.Requests)
			most := 1.15 * want
			if part == sample.EvidenceServer {
				most += 0.02 * took // it also has what others' softirqs take until it is woken
			}
			if sum > most || sum < 0.85*want-idle || want < 0.2 {
				u.Errorf("%s: %.3f s, the kernel says %.3f, of which %.3f without a request: %+v", part,
					sum, want, idle, got)
			}
		}
	})
}

// sched is for how long a process' first thread has run and waited for a CPU at a time, in s.
type sched struct {
	at          time.Time
	ran, waited float64
}

func schedOf(pid int) (s sched, err error) {
	s.at = time.Now()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, pid))
	if err == nil {
		_, err = fmt.Sscan(string(b), &s.ran, &s.waited)
	}
	s.ran, s.waited = s.ran/1e9, s.waited/1e9
	return s, err
}

func slowLua(port string) *exec.Cmd {
	return exec.Command("redis-benchmark", "-p", port, "-c", "1", "-n", "300", "--csv", "eval",
		"local x = 0; for i = 1, 300000 do x = x + i end; return x", "0")
}
