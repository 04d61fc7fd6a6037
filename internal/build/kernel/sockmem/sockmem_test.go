package sockmem

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/build/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/build/path"
	"github.com/bridgetoll/bridgetoll/internal/build/path/pathtest"
)

// killedEnv makes the test binary a process that sets the limits and is killed.
const killedEnv = "TOLL_TEST_SOCKMEM"

func TestMain(m *testing.M) {
	if dir := os.Getenv(killedEnv); dir != "" {
		if _, err := Store(dir).Set(nearly()); err != nil {
			panic(err)
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	os.Exit(m.Run())
}

// nearly is a value that hardly differs from the machine's own.
func nearly() map[string]int {
	now, err := sysctl.Get(Receive)
	n, errNumber := strconv.Atoi(now)
	if err := errors.Join(err, errNumber); err != nil {
		panic(err)
	}
	return map[string]int{Receive: n + 1}
}

func value(t *testing.T) string {
	t.Helper()
	now, err := sysctl.Get(Receive)
	if err != nil {
		t.Fatal(err)
	}
	return now
}

func settable(t *testing.T) (store Store, before string) {
	t.Helper()
	if err := Settable(); err != nil {
		if !errors.As(err, new(*path.UnsupportedError)) {
			t.Errorf("%v has no remedy", err)
		}
		pathtest.SkipOrFail(t, "%v", err)
	}
	return Store(filepath.Join(t.TempDir(), "state")), value(t)
}

func empty(t *testing.T, s Store) {
	t.Helper()
	if files, err := filepath.Glob(filepath.Join(string(s), "*")); err != nil || len(files) > 0 {
		t.Errorf("left: %v, %v", files, err)
	}
}

func TestSet(t *testing.T) {
	s, before := settable(t)
	restore, err := s.Set(nearly())
	if err != nil {
		t.Fatal(err)
	}
	if value(t) == before {
		t.Error("nothing was set")
	}
	if _, err := s.Set(nearly()); !Busy(err) {
		t.Errorf("set twice: %v", err)
	}
	if _, err := s.Clean(); !Busy(err) {
		t.Errorf("taken from a process that runs: %v", err)
	}
	if err := restore(); err != nil || value(t) != before {
		t.Errorf("%v, %s instead of %s", err, value(t), before)
	}
	empty(t, s)
	if restored, err := s.Clean(); err != nil || restored != nil {
		t.Errorf("nothing to clean: %v, %v", restored, err)
	}
}

// What a killed process set is taken back, and what somebody else set since is not.
func TestKilled(t *testing.T) {
	for _, others := range []bool{false, true} {
		s, before := settable(t)
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), killedEnv+"="+string(s))
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("%v: %s", err, out)
		}
		t.Cleanup(func() { _ = sysctl.Set(Receive, before) })
		if value(t) == before {
			t.Fatal("nothing was set")
		}
		want := before
		if others {
			n, _ := strconv.Atoi(before)
			want = strconv.Itoa(n + 2)
			if err := sysctl.Set(Receive, want); err != nil {
				t.Fatal(err)
			}
		}
		restored, err := s.Clean()
		if err != nil || value(t) != want || (len(restored) == 1) == others {
			t.Errorf("others %t: %v, %v, %s instead of %s", others, restored, err, value(t), want)
		}
		empty(t, s)
	}
}

// A note that is not toll's is left alone.
func TestForeignNotes(t *testing.T) {
	for text, mode := range map[string]os.FileMode{"nonsense": 0o600, `{"owner":"x","limits":[{"key":"kernel.pid_max"}]}`: 0o600, `{}`: 0o666} {
		s := Store(t.TempDir())
		if err := os.WriteFile(s.file(), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(s.file(), mode); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Clean(); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
