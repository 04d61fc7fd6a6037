package replica_test

import (
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
	_ "github.com/bridgetoll/bridgetoll/internal/reach/replica/start" // holds copies
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
	"github.com/bridgetoll/bridgetoll/internal/text/hint"
)

var lo = link.Saved{Name: "lo", Index: 1, MTU: 65536, Up: true, Lower: true,
	ParentSpace: link.Here}

func started(t *testing.T, m *replica.Machine, sockets ...replica.Socket) *replica.Session {
	t.Helper()
	s, err := replica.Start(t.Context(), m, sockets)
	if errors.Is(err, syscall.EPERM) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestStart(t *testing.T) {
	m := &replica.Machine{Spaces: []replica.Space{{Links: []link.Saved{lo},
		Unknown: []replica.Unknown{{What: "a program"}, {What: "another", Device: "eth0"},
			{What: "a service", At: netip.MustParseAddrPort("127.0.0.1:81")},
			{What: "a service of all ports", At: netip.MustParseAddrPort("127.0.0.2:0")}}}}}
	web := replica.Socket{Proto: "tcp", Addr: netip.MustParseAddrPort("127.0.0.1:80")}
	other := replica.Socket{Proto: "tcp", Addr: netip.MustParseAddrPort("127.0.0.2:82")}
	s := started(t, m, web, other)
	got, err := s.Dial(t.Context(), []replica.Dial{{Proto: "tcp", To: web.Addr},
		{Proto: "tcp", To: netip.MustParseAddrPort("127.0.0.1:81")},
		{Proto: "tcp", To: other.Addr}})
	if err != nil || len(got) != 3 || len(got[0].Outcomes) != 1 ||
		got[0].Outcomes[0].Got != replica.Connected ||
		!slices.Equal(got[0].Unsure, []string{"a program"}) ||
		!slices.Equal(got[1].Unsure, []string{"a program", "a service"}) ||
		!slices.Equal(got[2].Unsure, []string{"a program", "a service of all ports"}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, wrong := range []replica.Client{{Space: 1}, {Space: -1}} {
		if _, err := s.Dial(t.Context(), []replica.Dial{{Client: wrong}}); err == nil {
			t.Errorf("%+v dialled", wrong)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.Dial(t.Context(), []replica.Dial{{Proto: "tcp", To: web.Addr}}); err == nil {
		t.Error("a closed copy answers")
	}
}

func TestStartEnds(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(os.ErrDeadlineExceeded)
	_, err := replica.Start(ctx, &replica.Machine{Spaces: []replica.Space{{}}}, nil)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}

func TestStartRefuses(t *testing.T) {
	at := netip.MustParseAddrPort("127.0.0.1:80")
	for name, tt := range map[string]struct {
		spaces  []replica.Space
		sockets []replica.Socket
	}{
		"no-namespace":        {},
		"too-many-namespaces": {spaces: make([]replica.Space, 1<<12)},
		"too-many-devices":    {spaces: []replica.Space{{Links: make([]link.Saved, 1<<17)}}},
		"too-many-sockets":    {spaces: make([]replica.Space, 1), sockets: make([]replica.Socket, 1<<17)},
		"socket-elsewhere":    {spaces: make([]replica.Space, 1), sockets: []replica.Socket{{Space: 1, Addr: at}}},
		"no-address":          {spaces: make([]replica.Space, 1), sockets: make([]replica.Socket, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := replica.Start(t.Context(), &replica.Machine{Spaces: tt.spaces}, tt.sockets)
			if err == nil {
				s.Close()
				t.Error("it started")
			}
		})
	}
}

const forbidden = "REPLICA_TEST_FORBIDDEN"

// Where user namespaces are off, root copies its own machine without one, and no other.
func TestWithoutUserNamespaces(t *testing.T) {
	if os.Getenv(forbidden) == "" {
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestWithoutUserNamespaces$", "-test.v")
		cmd.Env = append(os.Environ(), forbidden+"=yes")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}
		out, err := cmd.CombinedOutput()
		if errors.Is(err, syscall.EPERM) && os.Getenv("CI") != "true" {
			t.Skip(err)
		}
		if err != nil || !testgolden.HasLine(string(out), "PASS") {
			t.Errorf("%v:\n%s", err, out)
		}
		return
	}
	// of this user namespace only
	const limit = "/proc/sys/user/max_user_namespaces"
	if err := os.WriteFile(limit, []byte("0"), 0); err != nil {
		t.Fatal(err)
	}
	m := &replica.Machine{Spaces: []replica.Space{{Links: []link.Saved{lo}}}}
	_, err := replica.Start(t.Context(), m, nil)
	if hint.Of(err) != remedy.AsRoot("sysctl -w user.max_user_namespaces=15000") {
		t.Errorf("without a user namespace: %v", err)
	}
	replica.SetHere(m)
	s, err := replica.Start(t.Context(), m, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Run(t.Context(), replica.Command{Script: []byte("echo ran")})
	no, ok := errors.AsType[*replica.NoJailError](err)
	hint, hinted := errors.AsType[interface {
		error
		Hint() string
	}](err)
	if !ok || !hinted || hint.Hint() != remedy.AsRoot("sysctl -w user.max_user_namespaces=15000") {
		t.Errorf("a command in a copy without a user namespace: %v, %v", err, no)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// stop stops a copy's process. It reports false if the process has ended.
func stop(t *testing.T, pid int) bool {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return false
	}
	ended := false
	testwait.Until(t, time.Minute, "the copy stops", func() bool {
		all, err := procfs.AllThreads(pid)
		if ended = errors.Is(err, fs.ErrNotExist); ended {
			return true
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, thread := range all {
			if s, err := thread.Stat(); err == nil && s.State != "T" {
				return false
			}
		}
		return true
	})
	return !ended
}

// A hung copy is killed at the context's end, whatever it was asked for. Nothing else would end
// the call.
func TestHung(t *testing.T) {
	to := netip.MustParseAddrPort("127.0.0.1:80")
	for name, ask := range map[string]func(context.Context, *replica.Session) error{
		"dial": func(ctx context.Context, s *replica.Session) error {
			_, err := s.Dial(ctx, []replica.Dial{{Proto: "tcp", To: to}})
			return err
		},
		"many dials": func(ctx context.Context, s *replica.Session) error { // more than a pipe holds
			_, err := s.Dial(ctx, slices.Repeat([]replica.Dial{{Proto: "tcp", To: to}}, 4000))
			return err
		},
		"scan": func(ctx context.Context, s *replica.Session) error {
			_, err := s.Scan(ctx, replica.Scan{To: to.Addr()})
			return err
		},
		"route": func(ctx context.Context, s *replica.Session) error {
			_, err := s.Towards(ctx, to.Addr())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := started(t, &replica.Machine{Spaces: []replica.Space{{Links: []link.Saved{lo}}}})
			for _, pid := range replica.Processes(s) {
				if !stop(t, pid) {
					t.Fatal("the copy has ended")
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if err := ask(ctx, s); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A copy that hangs while it is built is killed at the context's end.
func TestHungAtStart(t *testing.T) {
	m := &replica.Machine{Spaces: []replica.Space{{Links: []link.Saved{lo}}}}
	testwait.Until(t, time.Minute, "a copy is stopped before it is built", func() bool {
		before := children(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		failed := make(chan error, 1)
		go func() {
			s, err := replica.Start(ctx, m, nil)
			if err == nil {
				err = s.Close()
			}
			failed <- err
		}()
		for {
			select {
			case err := <-failed: // it was faster, or cannot be started here
				if errors.Is(err, syscall.EPERM) && os.Getenv("CI") != "true" {
					t.Skip(err)
				}
				return false
			default:
			}
			for _, pid := range children(t) {
				if !slices.Contains(before, pid) && stop(t, pid) {
					cancel()
					return errors.Is(<-failed, context.Canceled)
				}
			}
		}
	})
}

// children returns the process numbers of this process's children.
func children(t *testing.T) (out []int) {
	t.Helper()
	all, err := procfs.AllProcs()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if s, err := p.Stat(); err == nil && s.PPID == os.Getpid() && s.State != "Z" {
			out = append(out, p.PID)
		}
	}
	return out
}
