// Package llm measures a real language model with toll, by `make test-llm`.
package llm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
	"github.com/bridgetoll/bridgetoll/internal/testing/testversions"
)

func TestMain(m *testing.M) {
	code := m.Run()
	pathtest.RemoveToll()
	os.Exit(code)
}

// The directory of a set is readable for every user.
type set struct {
	ctx                context.Context // canceled by Ctrl-C, which must leave nothing behind
	toll, serve, cache string
}

func unpack(t *testing.T) set {
	t.Helper()
	if os.Getenv("TOLL_LLM") == "" {
		t.Skip("it takes three minutes, and fetches over 530 MB once: make test-llm")
	}
	const cannot = 77
	var failed *exec.ExitError
	if out, err := exec.Command("./serve", "fetch").CombinedOutput(); errors.As(err, &failed) &&
		failed.ExitCode() == cannot {
		t.Skip(strings.TrimSpace(string(out)))
	} else if err != nil {
		t.Fatalf("fetch: %v\n%s", err, out)
	}
	dir, err := os.MkdirTemp("", "toll-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	t.Cleanup(stop)
	s := set{ctx, pathtest.Toll(t), filepath.Join(dir, "serve"), filepath.Join(dir, "cache")}
	from, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	const ours = "bridgetoll"
	if err := os.MkdirAll(filepath.Join(s.cache, ours), 0o755); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"serve": dir,
		filepath.Join(from, ours, "llm"): filepath.Join(s.cache, ours)} {
		if out, err := exec.Command("cp", "-r", "--reflink=auto", from, to).CombinedOutput(); err != nil {
			t.Fatalf("copy: %v\n%s", err, out)
		}
	}
	return s
}

// If the test is killed, the kernel ends the command when the thread that started it exits; so the
// caller must lock itself to its thread.
func (s set) command(user *syscall.Credential, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(s.ctx, name, args...)
	c.Env = append(os.Environ(), "XDG_CACHE_HOME="+s.cache)
	c.Dir = "/"
	c.SysProcAttr = &syscall.SysProcAttr{Credential: user, Pdeathsig: syscall.SIGTERM}
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	const patience = 10 * time.Second
	c.WaitDelay = patience
	return c
}

func (s set) start(t *testing.T) string {
	t.Helper()
	const wheel = "xllamacpp-"
	have, _ := filepath.Glob(filepath.Join(s.cache, "bridgetoll", "llm", wheel+"*"))
	for _, dir := range have { // fetch leaves one
		version, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), wheel), "+")
		testversions.Ran(t, "xllamacpp (llama.cpp)", version, "`toll stream`, `toll run`")
	}
	addr := testnet.TCP(t).String()
	host, port, _ := net.SplitHostPort(addr)
	c := s.command(nil, s.serve, "run", host, port)
	out, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Cancel()
		_ = c.Wait()
	})
	said := ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if said += lines.Text() + "\n"; strings.Contains(said, "listening on") {
			return addr
		}
	}
	t.Fatalf("the server ended: %s", said)
	return ""
}

// relay delays each tenth piece that the server sends.
func relay(t *testing.T, server string, late time.Duration) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", server)
			if err != nil {
				near.Close()
				continue
			}
			context.AfterFunc(ctx, func() { near.Close(); far.Close() })
			pass := func(to, from net.Conn, late time.Duration) {
				defer to.Close()
				buf := make([]byte, 64<<10)
				for i := 1; ; i++ {
					n, err := from.Read(buf)
					if i%10 == 0 {
						time.Sleep(late)
					}
					if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
						return
					}
				}
			}
			all.Go(func() { pass(far, near, 0) })
			all.Go(func() { pass(near, far, late) })
		}
	})
	t.Cleanup(func() { l.Close(); cancel(); all.Wait() })
	return l.Addr().String()
}

type report struct {
	Cells []struct {
		Mode      string
		Witnessed bool
		Facts     map[string]string
		Metrics   map[string]struct{ Median float64 }
	}
	Failed   []struct{ Mode, Reason, Evidence string }
	Findings []string
}

func (s set) run(t *testing.T, user *syscall.Credential, cells int, args ...string) report {
	t.Helper()
	c := s.command(user, s.toll, append(args, "--format", "json", "--quiet")...)
	var said strings.Builder
	c.Stderr = &said
	out, failed := c.Output()
	var r report
	err := json.Unmarshal(out, &r)
	if failed != nil || err != nil || len(r.Cells) != cells || len(r.Failed) > 0 {
		t.Fatalf("toll %s: %v, %v, %d cells of %d, failed: %+v\n%s", args[0], failed, err,
			len(r.Cells), cells, r.Failed, said.String())
	}
	for _, f := range r.Findings {
		t.Log(f)
	}
	return r
}

func (r report) about(words string) string {
	for _, f := range r.Findings {
		if strings.HasPrefix(f, words) {
			return f
		}
	}
	return ""
}

// Every response should exceed this number of tokens.
const few = 10

func TestRealModel(t *testing.T) {
	s := unpack(t)
	t.Run("ways", func(t *testing.T) {
		runtime.LockOSThread() // see command
		const late = 100 * time.Millisecond
		server := s.start(t)
		r := s.run(t, nil, 3, "stream", "--tokens", "24", "--rounds", "6",
			"direct=http://"+server, "relayed=http://"+relay(t, server, 0),
			"late=http://"+relay(t, server, late))
		for _, c := range r.Cells {
			if n := c.Metrics["tokens_per_response"].Median; n <= few ||
				c.Facts["model"] != "smollm2-135m" {
				t.Errorf("%s: %v tokens from %q", c.Mode, n, c.Facts["model"])
			}
		}
		if r.about("Is it the network or the model?") == "" {
			t.Errorf("no answer in %q", r.Findings)
		}
		// On an otherwise busy machine the finding may be unclear.
		if f := r.about("late: "); f == "" || strings.HasPrefix(f, "late: the model") ||
			strings.HasPrefix(f, "late: neither") {
			t.Errorf("of the late relay it says %q", f)
		}
		for _, c := range r.Cells {
			// Half of the delay allows for a reader that is late itself.
			if longest := c.Metrics["gap_max"].Median; c.Mode == "late" &&
				longest < late.Seconds()/2 {
				t.Errorf("a relay is %s late, and its longest gap %v s", late, longest)
			}
		}
	})
	modes := func(t *testing.T, user *syscall.Credential) {
		runtime.LockOSThread()
		const number = `":\s*\{[^}]*?"median":\s*([\d.e-]+)`
		r := s.run(t, user, 3, "run", "host", "bridge", "publish-proxy", "--to", "loopback",
			"--rounds", "1", "--timeout", "60s",
			// the port opens before the model is loaded
			"--server", s.serve+" run {host} {port}", "--ready", "listening on",
			"--client", s.toll+" stream http://{addr} --tokens 24 --rounds 1 --format json",
			"--metric", `first_token:s="first_token_p50`+number, "--metric",
			`gap:s="gap_p50`+number, "--metric", `tokens="tokens_per_response`+number)
		for _, c := range r.Cells {
			if !c.Witnessed || c.Metrics["tokens"].Median <= few ||
				c.Metrics["first_token"].Median <= 0 || c.Metrics["gap"].Median <= 0 {
				t.Errorf("%+v", c)
			}
		}
	}
	t.Run("modes", func(t *testing.T) { modes(t, nil) })
	t.Run("modes-as-a-user", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("this user is an ordinary one")
		}
		const nobody = 65534
		modes(t, &syscall.Credential{Uid: nobody, Gid: nobody})
	})
}
