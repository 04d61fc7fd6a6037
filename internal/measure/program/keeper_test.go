package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/measure/pipe"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// bindArg makes the test binary a program that binds a port: bind NETWORK ADDRESS.
const bindArg = "bind"

// The test binary is its own keeper, and a program that it keeps.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == Arg:
		if err := Main(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	case len(os.Args) > 3 && os.Args[1] == bindArg:
		if err := bind(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		time.Sleep(time.Minute)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func bind(network, addr string) (err error) {
	if strings.HasPrefix(network, "udp") {
		_, err = net.ListenPacket(network, addr)
	} else {
		_, err = net.Listen(network, addr)
	}
	return err
}

// kept is a keeper's process. An inherited environment variable marks its programs.
type kept struct {
	*Control
	in     io.WriteCloser
	cmd    *exec.Cmd
	stderr bytes.Buffer
	marker string
}

func startKeeper(t *testing.T, apart bool, as ...syscall.Credential) *kept {
	t.Helper()
	k := &kept{marker: fmt.Sprintf("TOLL_TEST=%s-%d", t.Name(), time.Now().UnixNano())}
	k.cmd = exec.Command("/proc/self/exe", Arg)
	k.cmd.Env = append(os.Environ(), k.marker, "SECRET=sesame")
	k.cmd.Stderr = &k.stderr
	if apart {
		k.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
		if os.Getuid() != 0 {
			k.cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
			k.cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
			k.cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
		}
	}
	for _, user := range as {
		k.cmd.SysProcAttr.Credential = &user
	}
	in, err := k.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	k.cmd.Stdout = w
	err = k.cmd.Start()
	w.Close()
	if apart && errors.Is(err, unix.EPERM) {
		pathtest.SkipOrFail(t, "PID and mount namespaces need root here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	k.in, k.Control = in, NewControl(in, out)
	t.Cleanup(func() {
		_ = k.cmd.Process.Kill()
		_ = k.cmd.Wait()
		_ = k.Close()
		for _, pid := range k.programs() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return k
}

func (k *kept) programs() (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if env, err := os.ReadFile(f); err == nil && bytes.Contains(env, []byte(k.marker)) &&
			pid != k.cmd.Process.Pid {
			pids = append(pids, pid)
		}
	}
	return pids
}

// patience limits what takes no time on an idle machine.
const patience = time.Minute

func (k *kept) await(t *testing.T, n int) {
	t.Helper()
	var pids []int
	if !testwait.Met(patience, func() bool { pids = k.programs(); return len(pids) == n }) {
		t.Fatalf("the processes %v run, %d should", pids, n)
	}
}

func (k *kept) try(t *testing.T, o Request) (State, error) {
	t.Helper()
	if o.Limit == 0 {
		o.Limit = patience
	}
	st, err := k.Do(context.Background(), o)
	var told *Error
	if err != nil && !errors.As(err, &told) {
		t.Fatalf("%s: %v; %s", o.Op, err, k.stderr.String())
	}
	return st, err
}

func (k *kept) do(t *testing.T, o Request) State {
	t.Helper()
	st, err := k.try(t, o)
	if err != nil {
		t.Fatalf("%s: %v", o.Op, err)
	}
	return st
}

func (k *kept) run(t *testing.T, command string) State {
	t.Helper()
	k.do(t, Request{Op: Start, Command: command})
	return k.do(t, Request{Op: Wait})
}

func both(t *testing.T, f func(t *testing.T, k *kept)) {
	for name, apart := range map[string]bool{"apart": true, "not-apart": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, startKeeper(t, apart))
		})
	}
}

func binds(t *testing.T, network, host string) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("sleep 0.05; exec '%s' %s %s '%s:{port}'", exe, bindArg, network, host)
}

func TestReady(t *testing.T) {
	for _, c := range []struct{ name, command, ready string }{
		{"tcp", binds(t, "tcp4", "127.0.0.1"), ReadyTCP},
		{"tcp-over-ipv6", binds(t, "tcp6", "[::1]"), ReadyTCP},
		{"udp", binds(t, "udp4", "127.0.0.1"), readyUDP},
		{"udp-over-ipv6", binds(t, "udp6", "[::1]"), readyUDP},
		{"output", "echo starting; sleep 0.05; echo now ready; sleep 60", "ready"},
		{"standard-error", "sleep 0.05; echo ready >&2; sleep 60", "ready"},
		{"line", "echo one; echo two; echo three; sleep 60", "^two$"},
		{"part-of-a-line", "printf 'port: '; sleep 0.05; printf '%s' 80; sleep 60", `port: \d`},
		{"at-once", "sleep 60", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := os.Stat("/proc/net/tcp6"); err != nil && strings.HasSuffix(c.name,
				"-over-ipv6") {
				pathtest.SkipOrFail(t, "no IPv6 here: %v", err)
			}
			both(t, func(t *testing.T, k *kept) {
				port := testnet.Port(t)
				command := strings.ReplaceAll(c.command, wordPort, strconv.Itoa(int(port)))
				st := k.do(t, Request{Op: Start, Command: command, Ready: c.ready, Port: port})
				if st.Ended {
					t.Errorf("state %+v", st)
				}
				if st := k.do(t, Request{Op: Stop}); !st.Ended {
					t.Errorf("after Stop: %+v", st)
				}
				k.await(t, 0)
			})
		})
	}
}

func TestBoundTellsThemApart(t *testing.T) {
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	port := netip.MustParseAddrPort(conn.LocalAddr().String()).Port()
	if ok, err := bound(readyUDP, port); err != nil || !ok {
		t.Errorf("a UDP port: %v, %v", ok, err)
	}
	if ok, err := bound(ReadyTCP, port); err != nil || ok {
		t.Errorf("a UDP port is no TCP port: %v, %v", ok, err)
	}
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	client, err := net.Dial("tcp4", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ok, err := bound(ReadyTCP, netip.MustParseAddrPort(client.LocalAddr().String()).Port())
	if err != nil || ok {
		t.Errorf("a client's port does not listen: %v, %v", ok, err)
	}
}

func TestNotReady(t *testing.T) {
	port := testnet.Port(t)
	const short = 200 * time.Millisecond
	for _, c := range []struct {
		name    string
		request Request
		want    string // {port}, {limit}, and {sh}: what a shell says of the command
	}{
		{"tcp", Request{Command: "echo warming up; echo still >&2; sleep 60", Ready: ReadyTCP,
			Port: port, Limit: short},
			"it was not ready (listening on TCP port {port}) within {limit}; it said: still"},
		{"udp", Request{Command: "echo warming up; sleep 60", Ready: readyUDP, Port: port,
			Limit: short},
			"it was not ready (bound to UDP port {port}) within {limit}; it said: warming up"},
		{"output", Request{Command: "echo warming up; sleep 60", Ready: "red[dy]{2}", Limit: short},
			"it was not ready (its output matches red[dy]{2}) within {limit}; it said: warming up"},
		{"ended", Request{Command: "echo bad luck; exit 3", Ready: ReadyTCP, Port: port},
			"it ended before it was ready (exit status 3); it said: bad luck"},
		{"ended-well", Request{Command: "true", Ready: ReadyTCP, Port: port},
			"it ended before it was ready"},
		{"killed", Request{Command: "kill -9 $$", Ready: "never"},
			"it ended before it was ready (signal: killed)"},
		{"missing", Request{Command: "exec /no/such/program", Ready: ReadyTCP, Port: port},
			"it ended before it was ready (exit status 127); it said: {sh}"},
		{"no-command-line", Request{Command: "if", Ready: ReadyTCP, Port: port},
			"it ended before it was ready (exit status 2); it said: {sh}"},
		{"no-expression", Request{Command: "sleep 60", Ready: "("},
			"error parsing regexp: missing closing ): `(?m)(`"},
	} {
		t.Run(c.name, func(t *testing.T) {
			both(t, func(t *testing.T, k *kept) {
				o := c.request
				o.Op = Start
				var shell []byte
				if strings.HasSuffix(c.want, "{sh}") {
					shell, _ = exec.Command("/bin/sh", "-c", o.Command).CombinedOutput()
				}
				want := func() string {
					return strings.NewReplacer("{port}", strconv.Itoa(int(port)), "{limit}",
						o.Limit.String(), "{sh}", strings.TrimSpace(string(shell))).Replace(c.want)
				}
				_, err := k.try(t, o)
				// The limit ended before the program had printed anything.
				for o.Limit != 0 && o.Limit < patience && err != nil && err.Error() != want() {
					o.Limit *= 4
					_, err = k.try(t, o)
				}
				if err == nil {
					t.Fatal("it was ready")
				}
				if err.Error() != want() {
					t.Errorf("error %q, want %q", err, want())
				}
				k.do(t, Request{Op: Stop})
				k.await(t, 0)
				if st := k.run(t, "echo well"); st.Stdout != "well\n" {
					t.Errorf("the next one: %+v", st)
				}
			})
		})
	}
}

func TestClientEnds(t *testing.T) {
	for _, c := range []struct {
		name, command        string
		exit, stdout, stderr string
	}{
		{"well", "echo out; echo err >&2", "", "out\n", "err\n"},
		{"silent", "true", "", "", ""},
		{"late", "sleep 0.1; echo out", "", "out\n", ""},
		{"status", "echo out; exit 4", "exit status 4", "out\n", ""},
		{"signal", "kill -SEGV $$", "signal: segmentation fault", "", ""},
		{"not-found", "no-such-program 2>/dev/null", "exit status 127", "", ""},
		{"not-a-program", "/dev/null 2>/dev/null", "exit status 126", "", ""},
		{"environment", `echo "$SECRET"`, "", "sesame\n", ""},
		{"no-input", "cat; echo end", "", "end\n", ""},
		{"binary", `printf 'a\000\377b'`, "", "a\x00\ufffdb", ""},
		// The sleep holds the output open.
		{"background", "sleep 60 & echo out", "", "out\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			both(t, func(t *testing.T, k *kept) {
				st := k.run(t, c.command)
				if !st.Ended || !st.Known || st.Exit != c.exit || st.Stdout != c.stdout ||
					st.Stderr != c.stderr || st.Elapsed <= 0 {
					t.Errorf("state %+v, want %+v", st, c)
				}
				if again := k.do(t, Request{Op: Wait}); again.Exit != st.Exit ||
					again.Elapsed != st.Elapsed {
					t.Errorf("asked again: %+v, then %+v", st, again)
				}
			})
		})
	}
}

func TestHangingClient(t *testing.T) {
	both(t, func(t *testing.T, k *kept) {
		k.do(t, Request{Op: Start, Command: "echo connecting; sleep 60; echo never",
			Ready: "connecting"})
		_, err := k.try(t, Request{Op: Wait, Limit: 100 * time.Millisecond})
		if want := "it did not end within 100ms; it said: connecting"; err == nil ||
			err.Error() != want {
			t.Errorf("Wait = %v, want %q", err, want)
		}
		if st := k.do(t, Request{Op: Stop}); !st.Ended || st.Exit != "signal: terminated" {
			t.Errorf("state %+v", st)
		}
		k.await(t, 0)
		if st := k.run(t, "echo well"); st.Stdout != "well\n" {
			t.Errorf("the next one: %+v", st)
		}
	})
}

func TestStop(t *testing.T) {
	for _, c := range []struct{ name, command, exit, stdout string }{
		{"asked", "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done", "",
			"ready\nbye\n"},
		{"deaf", "trap '' TERM; echo ready; while :; do sleep 0.01; done", "signal: killed",
			"ready\n"},
		{"parent-dies-first", "(trap '' TERM; while :; do sleep 0.01; done) & echo ready; wait",
			"signal: terminated", "ready\n"},
		{"endless-output", "echo ready; exec yes", "signal: terminated", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			both(t, func(t *testing.T, k *kept) {
				k.do(t, Request{Op: Start, Command: c.command, Ready: "ready|y"})
				st := k.do(t, Request{Op: Stop})
				for tries := 0; tries < 3 && st.Exit == "signal: killed" && st.Exit != c.exit; tries++ {
					k.do(t, Request{Op: Start, Command: c.command, Ready: "ready|y"})
					st = k.do(t, Request{Op: Stop})
				}
				if !st.Ended || st.Exit != c.exit || c.stdout != "" && st.Stdout != c.stdout ||
					len(st.Stdout) > maxOutput {
					t.Errorf("exit %q, %d bytes of output: %.100q", st.Exit, len(st.Stdout),
						st.Stdout)
				}
				k.await(t, 0)
				if st := k.do(t, Request{Op: Stop}); st.Ended {
					t.Errorf("a second Stop: %+v", st)
				}
			})
		})
	}
}

func TestDaemonsEnd(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		pathtest.SkipOrFail(t, "setsid is not installed: apt-get install util-linux")
	}
	const daemons = "setsid sleep 1000 & (setsid sh -c 'trap \"\" TERM; sleep 1001 & sleep " +
		"1002; sleep 1003' &) ; "
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		k := startKeeper(t, true)
		k.do(t, Request{Op: Start, Command: daemons + "exec sleep 1004"})
		k.await(t, 5)
		k.do(t, Request{Op: Stop})
		k.await(t, 0)
	})
	t.Run("of-one-that-ended", func(t *testing.T) {
		t.Parallel()
		k := startKeeper(t, true)
		k.run(t, daemons)
		k.await(t, 4)
		k.do(t, Request{Op: Stop})
		k.await(t, 0)
	})
	t.Run("of-one-before", func(t *testing.T) {
		t.Parallel()
		k := startKeeper(t, true)
		k.run(t, daemons)
		k.await(t, 4)
		k.do(t, Request{Op: Start, Command: "exec sleep 1005"})
		k.await(t, 1)
	})
	t.Run("killed-keeper", func(t *testing.T) {
		t.Parallel()
		k := startKeeper(t, true)
		k.do(t, Request{Op: Start, Command: daemons + "exec sleep 1006"})
		k.await(t, 5)
		if err := k.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		k.await(t, 0)
	})
}

func TestStartEndsTheOneBefore(t *testing.T) {
	both(t, func(t *testing.T, k *kept) {
		k.do(t, Request{Op: Start, Command: "echo first; exec sleep 60", Ready: "first"})
		k.do(t, Request{Op: Start, Command: "echo second; exec sleep 60", Ready: "second"})
		k.await(t, 1)
		if st := k.do(t, Request{Op: Stop}); st.Stdout != "second\n" {
			t.Errorf("state %+v", st)
		}
	})
}

func TestEndlessOutputIsBounded(t *testing.T) {
	both(t, func(t *testing.T, k *kept) {
		st := k.run(
			t,
			"head -c 200000000 /dev/zero; echo end; head -c 100000000 /dev/zero >&2; echo end >&2")
		for _, s := range []string{st.Stdout, st.Stderr} {
			if len(s) != maxOutput || !strings.HasSuffix(s, "end\n") {
				t.Errorf("%d bytes, at the end %q", len(s), s[max(0, len(s)-10):])
			}
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", k.cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		const most = 120 << 10 // kB, a third of what was written
		m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
		if m == nil {
			t.Fatalf("no VmHWM in %s", status)
		}
		if used, _ := strconv.Atoi(string(m[1])); used > most {
			t.Errorf("the keeper took %d kB", used)
		}
	})
}

const busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"

func TestCPU(t *testing.T) {
	both(t, func(t *testing.T, k *kept) {
		first := k.run(t, busy)
		inner := k.run(t, "sh -c '"+busy+"'; true")
		idle := k.run(t, "true")
		if !first.Known || first.CPU <= 0 || first.CPU > 2*first.Elapsed {
			t.Errorf("a busy program: %+v", first)
		}
		if !inner.Known || inner.CPU <= idle.CPU {
			t.Errorf("a program with a busy one inside: %+v", inner)
		}
		if !idle.Known || idle.CPU >= first.CPU {
			t.Errorf("an idle one has the CPU time of those before: %+v, before %+v", idle, first)
		}
	})
}

func TestCPUWhileItRuns(t *testing.T) {
	for _, c := range []struct{ name, command string }{
		{"itself", "while :; do :; done"},
		{"child", "(while :; do :; done) & wait"},
		{"daemon", "setsid sh -c 'while :; do :; done' & exec sleep 60"},
		{"children-that-end",
			"while :; do sh -c 'i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done'; done"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k := startKeeper(t, true)
			last := k.do(t, Request{Op: Start, Command: c.command})
			if !last.Known {
				pathtest.SkipOrFail(t, "/proc cannot be mounted in a PID namespace here")
			}
			for range 3 {
				testwait.Until(t, time.Minute, "its CPU time grows", func() bool {
					st := k.do(t, Request{Op: Read})
					if !st.Known || st.Ended {
						t.Fatalf("state %+v", st)
					}
					if st.CPU <= last.CPU+5*time.Millisecond {
						return false
					}
					last = st
					return true
				})
			}
			if st := k.do(t, Request{Op: Stop}); st.CPU < last.CPU {
				t.Errorf("%s while it ran, %s in the end", last.CPU, st.CPU)
			}
		})
	}
}

func TestDir(t *testing.T) {
	in := func(command string) string { return Fill{}.Into(command) }
	k, other := startKeeper(t, true), startKeeper(t, true)
	name := "toll-test-" + strconv.Itoa(os.Getpid())
	k.run(t, in("mkdir -m 755 {dir}/"+name+" && echo kept >{dir}/"+name+"/file"))
	k.do(t, Request{Op: Start, Command: in("stat -fc %T {dir}; exec sleep 60"), Ready: "."})
	if st := k.do(t, Request{Op: Stop}); st.Stdout != "tmpfs\n" {
		t.Errorf("it is %q", st.Stdout)
	}
	if st := k.run(t, in("cat {dir}/"+name+"/file")); st.Stdout != "kept\n" {
		t.Errorf("after Stop: %+v", st)
	}
	if st := other.run(t, in("ls -A {dir}")); st.Stdout != "" {
		t.Errorf("another keeper sees %q", st.Stdout)
	}
	if _, err := os.Stat(filepath.Join(memoryDir, name)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the machine's own %s has it: %v", memoryDir, err)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || strings.Contains(string(mounts), "toll "+memoryDir) {
		t.Errorf("it is mounted here: %v\n%s", err, mounts)
	}
}

func TestNoRoot(t *testing.T) {
	both(t, func(t *testing.T, k *kept) {
		const command = `id -u; id -g; f=` + memoryDir +
			`/toll-test-$$; echo written >$f && cat $f && rm $f; ` +
			`mkdir -p /proc/sys/x 2>/dev/null || echo no root`
		k.do(t, Request{Op: Start, Command: command, NoRoot: true})
		st := k.do(t, Request{Op: Wait})
		if want := "1000\n1000\nwritten\nno root\n"; st.Stdout != want || st.Exit != "" {
			t.Errorf("state %+v, want %q", st, want)
		}
		k.do(t, Request{Op: Start, Command: "echo ready; exec sleep 60", Ready: "ready",
			NoRoot: true})
		if st := k.do(t, Request{Op: Stop}); st.Exit != "signal: terminated" {
			t.Errorf("state %+v", st)
		}
		k.await(t, 0)
	})
}

func TestEndOfInput(t *testing.T) {
	for _, c := range []struct {
		name   string
		orders []Request
	}{
		{"idle", nil},
		{"after-start", []Request{{Op: Start, Command: "echo up; exec sleep 60", Ready: "up",
			Limit: time.Minute}}},
		{"in-start", []Request{{Op: Start, Command: "exec sleep 60", Ready: "never",
			Limit: time.Minute}}},
		{"in-wait", []Request{{Op: Start, Command: "exec sleep 60", Limit: time.Minute},
			{Op: Wait, Limit: time.Minute}}},
		{"in-wait-of-a-deaf-one", []Request{{
			Op: Start, Command: "trap '' TERM; echo up; while :; do :; done", Ready: "up",
			Limit: time.Minute},
			{Op: Wait, Limit: time.Minute}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			both(t, func(t *testing.T, k *kept) {
				for i, o := range c.orders {
					if i < len(c.orders)-1 {
						k.do(t, o)
					} else if err := k.Send(o); err != nil {
						t.Fatal(err)
					}
				}
				if len(c.orders) > 0 {
					k.await(t, 1)
				}
				if err := errors.Join(k.Close(), k.cmd.Wait()); err != nil {
					t.Errorf("it ended with %v: %s", err, k.stderr.String())
				}
				k.await(t, 0)
			})
		})
	}
}

func TestOddRequests(t *testing.T) {
	both(t, func(t *testing.T, k *kept) {
		if _, err := k.try(t, Request{Op: "dance"}); err == nil ||
			err.Error() != `unknown request "dance"` {
			t.Errorf("an unknown request: %v", err)
		}
		if _, err := k.try(t, Request{Op: Wait}); err == nil ||
			err.Error() != "nothing was started" {
			t.Errorf("Wait without Start: %v", err)
		}
		for _, op := range []Op{Read, Stop} {
			if st := k.do(t, Request{Op: op}); st.Ended || st.CPU != 0 {
				t.Errorf("%s without Start: %+v", op, st)
			}
		}
		k.run(t, "true")
		k.do(t, Request{Op: Stop})
		if _, err := k.try(t, Request{Op: Wait}); err == nil {
			t.Error("Wait after Stop")
		}
	})
}

func TestGarbageEndsTheKeeper(t *testing.T) {
	for _, c := range []struct{ name, in string }{
		{"words", "hello\n"},
		{"other-types", `{"op": 7}` + "\n"},
		{"binary", "\x00\xff\n"},
		{"half-a-request", `{"op": "sta`},
	} {
		t.Run(c.name, func(t *testing.T) {
			both(t, func(t *testing.T, k *kept) {
				k.do(t, Request{Op: Start, Command: "exec sleep 60"})
				_, err := io.WriteString(k.in, c.in)
				if c.name == "half-a-request" {
					err = errors.Join(err, k.Close())
				}
				if err != nil {
					t.Fatal(err)
				}
				if err := k.cmd.Wait(); err != nil {
					t.Errorf("it ended with %v: %s", err, k.stderr.String())
				}
				k.await(t, 0)
			})
		})
	}
}

func TestServersThatDie(t *testing.T) {
	const up = "echo ready; "
	for _, c := range []struct {
		name, command, want string
	}{
		{"runs", up + "exec sleep 60", ""},
		{"killed", up + "echo bye >&2; kill -KILL $$",
			"it ended before it was stopped (signal: killed); it said: bye"},
		{"exit-status", up + "exit 3",
			"it ended before it was stopped (exit status 3); it said: ready"},
		{"ended-well", up + "exit 0", ""},
		{"daemon", "(sleep 60 &) & " + up, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			both(t, func(t *testing.T, k *kept) {
				k.do(t, Request{Op: Start, Command: c.command})
				var st State
				testwait.Met(patience, func() bool {
					st = k.do(t, Request{Op: Read})
					return st.Ended || c.name == "runs"
				})
				// of a client that began after it
				err := st.Died(State{Ended: true, Elapsed: 1, EndedAt: st.EndedAt + 2})
				if got := errorText(err); got != c.want {
					t.Errorf("Died = %q, want %q", got, c.want)
				}
			})
		})
	}
	// The first process of Redis, and of many a daemon, ends before the daemon listens.
	t.Run("daemon-that-is-not-ready", func(t *testing.T) {
		k := startKeeper(t, true)
		k.do(t, Request{Op: Start, Command: "{ sleep 0.5; echo ready; sleep 60; } & exit 0",
			Ready: "ready"})
	})
	t.Run("daemon-that-dies-first", func(t *testing.T) {
		k := startKeeper(t, true)
		const want = "it ended before it was ready"
		_, err := k.try(t, Request{Op: Start, Command: "sleep 0.2 & exit 0", Ready: "ready"})
		if got := errorText(err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
	t.Run("daemon-killed", func(t *testing.T) {
		k := startKeeper(t, true)
		k.do(t, Request{Op: Start, Command: "sh -c 'sleep 0.2; kill -SEGV $$' & echo ready",
			Ready: "ready"})
		const want = "the process that it left running ended (signal: segmentation fault); " +
			"it said: ready"
		testwait.Until(t, patience, want, func() bool {
			return errorText(k.do(t, Request{Op: Read}).Died(State{})) == want
		})
	})
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A client takes from second 10 to second 20.
func TestServerThatEndsWell(t *testing.T) {
	client := State{Ended: true, Elapsed: 10 * time.Second, EndedAt: 20e9}
	for _, c := range []struct {
		name string
		at   int64
		want string
	}{
		{"before-the-client-began", 9e9, ""},
		{"in-the-middle", 15e9, "it ended 5s before the client"},
		{"shortly-before", 19.1e9, ""},
		{"after", 20.5e9, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := errorText(State{Ended: true, EndedAt: c.at}.Died(client))
			if got != c.want {
				t.Errorf("Died = %q, want %q", got, c.want)
			}
		})
	}
	if err := (State{Ended: true, EndedAt: 20e9 - 200e6}).Died(
		State{Ended: true, Elapsed: time.Second, EndedAt: 20e9}); err != nil {
		t.Errorf("a server that ended 200 ms before a client of 1 s: %v", err)
	}
}

// What keeps a keeper from its own mounts, such as a machine without /dev/shm, is its answer to
// each start, and to nothing else: users would read it twice.
func TestKeeperThatCannotMount(t *testing.T) {
	if os.Getuid() != 0 {
		pathtest.SkipOrFail(t, "only root can start a process of another user")
	}
	k := startKeeper(t, true, syscall.Credential{Uid: 65534, Gid: 65534})
	for range 2 {
		const want = "make mounts private: operation not permitted"
		if _, err := k.try(t, Request{Op: Start, Command: "true"}); errorText(err) != want {
			t.Errorf("Do = %v", err)
		}
		k.do(t, Request{Op: Stop})
		k.do(t, Request{Op: Read})
	}
}

func TestControlOfADeadKeeper(t *testing.T) {
	k := startKeeper(t, false)
	if err := k.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := k.Do(context.Background(), Request{Op: Read}); !errors.Is(err, pipe.ErrDied) {
			t.Errorf("Do = %v", err)
		}
	}
}

func TestControlEndsWithItsContext(t *testing.T) {
	k := startKeeper(t, true)
	k.do(t, Request{Op: Start, Command: "exec sleep 60"})
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(stop)
	if _, err := k.Do(ctx, Request{Op: Wait, Limit: time.Minute}); !errors.Is(err, stop) {
		t.Errorf("Do = %v", err)
	}
}

func TestSaid(t *testing.T) {
	for _, c := range []struct {
		name string
		in   State
		want string
	}{
		{"nothing", State{}, ""},
		{"output", State{Stdout: "a\nb\n"}, "; it said: a; b"},
		{"standard-error-first", State{Exit: "exit status 1", Stdout: "a", Stderr: "b"},
			" (exit status 1); it said: b"},
		{"blank-standard-error", State{Exit: "signal: killed", Stdout: "a", Stderr: " \n"},
			" (signal: killed); it said: a"},
		{"silent", State{Exit: "exit status 1"}, " (exit status 1)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.in.said(); got != c.want {
				t.Errorf("Said = %q, want %q", got, c.want)
			}
			if hint := (&Error{c.in}).Hint(); (hint != "") != (c.name == "silent") {
				t.Errorf("hint %q", hint)
			}
		})
	}
}
