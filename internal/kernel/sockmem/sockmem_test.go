package sockmem

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

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
		if !errors.As(err, new(*machine.UnsupportedError)) {
			t.Errorf("%v has no remedy", err)
		}
		pathtest.SkipOrFail(t, "%v", err)
	}
	return Store(filepath.Join(t.TempDir(), "state")), value(t)
}

func gone(t *testing.T, s Store) {
	t.Helper()
	if _, err := os.Stat(string(s)); !errors.Is(err, fs.ErrNotExist) {
		files, _ := filepath.Glob(filepath.Join(string(s), "*"))
		t.Errorf("left: %s with %v, %v", s, files, err)
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
	_, err = s.Clean()
	if file, _ := Unclear(err); !Busy(err) || file != "" {
		t.Errorf("taken from a process that runs, %s: %v", file, err)
	}
	if err := restore(); err != nil || value(t) != before {
		t.Errorf("%v, %s instead of %s", err, value(t), before)
	}
	gone(t, s)
	if restored, err := s.Clean(); err != nil || restored != nil {
		t.Errorf("nothing to clean: %v, %v", restored, err)
	}
}

func TestKilled(t *testing.T) {
	for _, others := range []bool{false, true} {
		s, before := settable(t)
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), killedEnv+"="+string(s))
		if out, err := cmd.CombinedOutput(); err == nil ||
			err.Error() != "signal: killed" {
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
		gone(t, s)
	}
}

func TestUnclear(t *testing.T) {
	s := Store(t.TempDir())
	if err := s.save(&note{Owner: "x"}); err != nil {
		t.Fatal(err)
	}
	_, err := s.Clean()
	file, hint := Unclear(err)
	if !Busy(err) || file != s.file() {
		t.Errorf("%q, %v", file, err)
	}
	if got, want := strings.ReplaceAll(hint, file, "FILE"),
		`if that toll has ended, set the limits to the values "before" in FILE, and remove `+
			"the file"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestForeignNotes(t *testing.T) {
	for _, text := range []string{"nonsense", `{"owner":"x","limits":[{"key":"kernel.pid_max"}]}`} {
		s := Store(t.TempDir())
		if err := os.WriteFile(s.file(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Clean(); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
