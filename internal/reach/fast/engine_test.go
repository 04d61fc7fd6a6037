package fast

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/bridgetoll/bridgetoll/internal/reach/replica/start" // holds copies
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// Tests with a daemon run in this program again, in new network, mount and PID namespaces with a
// dockerd. Containers run this program, too.
const (
	homeEnv  = "BRIDGETOLL_TEST_FAST"       // the dockerd's directory
	flagsEnv = "BRIDGETOLL_TEST_FAST_FLAGS" // dockerd's flags
	onlyEnv  = "BRIDGETOLL_TEST_FAST_ONLY"  // regexp of tests to run, without TestBeside; "": all
	image    = "fast-test"

	nativeFlag = "--firewall-backend=nftables"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "serve":
			port := "80"
			if len(os.Args) > 3 {
				port = os.Args[3]
			}
			serve(os.Args[2], port)
		case "serve-http":
			serveHTTP()
		case "serve-llm":
			serveLLM()
		case "serve-udp":
			serveUDP()
		case "dial":
			got := dial(os.Args[2])
			fmt.Print(got)
			if !strings.Contains(got, " for ") {
				os.Exit(1)
			}
			os.Exit(0)
		case "watch":
			keep()
		case "fast": // toll fast expire
			if err := Expire(context.Background(), os.Stdout); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	code := m.Run()
	if beside != nil {
		beside.Stop()
	}
	os.Exit(code)
}

func serve(name, port string) {
	l, err := net.Listen("tcp", ":"+port)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	testnet.Accept(l, func(c net.Conn) {
		from, _ := netip.ParseAddrPort(c.RemoteAddr().String())
		fmt.Fprintf(c, "%s for %s\n", name, from.Addr().Unmap())
		_, _ = io.Copy(c, c)
	})
	os.Exit(1)
}

func dial(at string) string {
	c, err := net.DialTimeout("tcp", at, 10*time.Second)
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	return greeting(c)
}

func greeting(c net.Conn) string {
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	line, err := bufio.NewReader(io.LimitReader(c, 200)).ReadString('\n')
	if err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(line, "\n")
}

// keep runs toll fast watch with a short lease.
func keep() {
	f, err := Open()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	w := Watcher{Lease: 2 * time.Second, Say: func(s string) { fmt.Println(s) }}
	fmt.Println("watching")
	fmt.Println(w.Run(context.Background(), f))
	os.Exit(0)
}

// A new /sys shows this namespace's devices.
const machineScript = `set -e
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs "$` + homeEnv + `"
mkdir -p /run/lock /run/netns /run/s
mount -t sysfs sysfs /run/s
mount --rbind /sys/fs/cgroup /run/s/fs/cgroup
mount --rbind /run/s /sys
ip link set lo up
case "$` + flagsEnv + `" in *nftables*) sysctl -qw net.ipv4.ip_forward=1;; esac # which dockerd then leaves to others
exec "$@"`

func TestEngines(t *testing.T) {
	if os.Getenv(homeEnv) != "" {
		t.Skip("it is what runs this")
	}
	pathtest.NeedsDaemons(t)
	self := pathtest.StaticSelf(t)
	beside := func(e pathtest.Engine, flags string, tests ...string) func(*testing.T) {
		return func(t *testing.T) {
			t.Parallel()
			e.Ran(t, "`toll fast`")
			home, err := os.MkdirTemp("", "toll-fast") // short, because it holds sockets
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(home)
			args := append([]string{"-n", "-m", "-p", "-f", "--kill-child", "--mount-proc", "bash",
				"-c",
				machineScript, "bash", self, "-test.timeout", "30m"}, tests...)
			if testing.Verbose() {
				args = append(args, "-test.v")
			}
			runtime.LockOSThread() // the parent-death signal depends on this thread
			cmd := exec.Command("unshare", args...)
			cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			cmd.Env = append(os.Environ(), homeEnv+"="+home, flagsEnv+"="+flags,
				"DOCKER_HOST=unix://"+home+"/sock")
			cmd.Env = append(cmd.Env, e.Env()...)
			out, err := cmd.CombinedOutput()
			t.Logf("%s", out)
			if err != nil {
				t.Error(err)
			}
		}
	}
	groups := map[string][]string{ // in parallel; those of rules wait as long as all others
		"rules":      {"-test.run", "^TestBesideRules$"},
		"more-rules": {"-test.run", "^TestBesideMoreRules$"},
		"others":     {"-test.run", "^TestBeside", "-test.skip", "^TestBeside(More)?Rules$"}}
	if only := os.Getenv(onlyEnv); only != "" {
		groups = map[string][]string{"only": {"-test.run", "^TestBeside" + only}}
	}
	for _, e := range pathtest.Engines(t) {
		for name, tests := range groups {
			t.Run(e.Name+"/"+name, beside(e, "", tests...))
			if flag, _, _ := strings.Cut(nativeFlag, "="); strings.Contains(e.Says("--help"), flag) {
				t.Run(e.Name+"/nftables/"+name, beside(e, nativeFlag, tests...))
			}
		}
	}
}

// beside is the daemon that all tests use.
var beside *pathtest.Dockerd

// withEngine removes the test's containers and networks at its end.
func withEngine(t *testing.T) *pathtest.Dockerd {
	t.Helper()
	home := os.Getenv(homeEnv)
	if home == "" {
		t.Skip("TestEngines runs it beside a daemon")
	}
	if beside == nil {
		e := &pathtest.Dockerd{Home: home, Flags: strings.Fields(os.Getenv(flagsEnv))}
		e.Start(t)
		load(t)
		beside = e
	}
	t.Cleanup(empty)
	t.Cleanup(func() { _, _ = TurnOff() })
	return beside
}

func empty() {
	_ = exec.Command("sh", "-c",
		"docker ps -aq | xargs -r docker rm -f; docker network prune -f").Run()
}

func load(t *testing.T) {
	t.Helper()
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: "self", Mode: 0o755, Size: int64(len(self))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(self); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("docker", "import", "-", image)
	cmd.Stdin = &b
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func run(t *testing.T, command string) string {
	t.Helper()
	out, err := exec.Command("sh", "-ec", command).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
	return strings.TrimSpace(string(out))
}

// container waits until the container answers: after the start, docker-proxy may listen before it
// does.
func container(t *testing.T, name, options string) {
	t.Helper()
	launch(t, name, options)
	testwait.Until(t, patience, name+" serves", func() bool {
		return exec.Command("docker", "exec", name, "/self", "dial", "127.0.0.1:80").Run() == nil
	})
}

func launch(t *testing.T, name, options string) {
	t.Helper()
	launchAs(t, name, options, "/self serve "+name)
}
