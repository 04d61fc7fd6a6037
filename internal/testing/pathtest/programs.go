package pathtest

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// TollEnv names an existing static toll: `make test` links one for all packages.
const TollEnv = "BRIDGETOLL_TEST_TOLL"

var linked struct {
	once sync.Once
	dir  string
	err  error
}

// Toll returns the file of a static toll in a directory that every user may enter: the one that the
// environment names, or one that is linked once per process and removed by RemoveToll. Its version
// is devel, the test program's, because agents and hub must have the same. It keeps no history,
// does not wait for free CPUs, and prints 100 columns.
func Toll(t testing.TB) string {
	t.Helper()
	err := errors.Join(os.Setenv("TOLL_HISTORY", "off"), os.Setenv("TOLL_BUSY", "yes"),
		os.Setenv("COLUMNS", "100"))
	if err != nil {
		t.Fatal(err)
	}
	if bin := os.Getenv(TollEnv); bin != "" {
		return bin
	}
	linked.once.Do(func() {
		if linked.dir, linked.err = os.MkdirTemp("", "toll-test-"); linked.err == nil {
			linked.err = errors.Join(os.Chmod(linked.dir, 0o755),
				goStatic("build", "-buildvcs=false", "-ldflags", "-s -w", "-o",
					filepath.Join(linked.dir, "toll"), "github.com/bridgetoll/bridgetoll/cmd/toll"))
		}
	})
	if linked.err != nil {
		t.Fatal(linked.err)
	}
	return filepath.Join(linked.dir, "toll")
}

// RemoveToll removes the linked program. TestMain calls it after the tests.
func RemoveToll() {
	if linked.dir != "" {
		_ = os.RemoveAll(linked.dir)
	}
}

// StaticSelf returns this test's program if it is static, as with CGO_ENABLED=0, or links a static
// one of the package.
func StaticSelf(t testing.TB) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if static(self) {
		return self
	}
	out := filepath.Join(t.TempDir(), "tests")
	BuildStatic(t, "test", "-c", "-o", out, ".")
	return out
}

func static(program string) bool {
	f, err := elf.Open(program)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return false
		}
	}
	return true
}

// BuildStatic builds a static program with the go command.
func BuildStatic(t testing.TB, args ...string) {
	t.Helper()
	if err := goStatic(args...); err != nil {
		t.Fatal(err)
	}
}

func goStatic(args ...string) error {
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %v: %w\n%s", args, err, out)
	}
	return nil
}
