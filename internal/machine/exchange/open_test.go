package exchange

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOpenIn(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"etc", "run"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "run", "x"), []byte("own"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"absolute": "/run/x", "relative": "../run/x",
		"above": "../../../run/x"} {
		if err := os.Symlink(to, filepath.Join(root, "etc", name)); err != nil {
			t.Fatal(err)
		}
		f, err := OpenIn(root, "etc/"+name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if b, err := io.ReadAll(f); err != nil || string(b) != "own" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
		f.Close()
	}
	if _, err := OpenIn(root, "etc"); err == nil {
		t.Error("a directory is opened as a file")
	}
}

// As with openat2 while the machine mounts and renames.
func TestRetried(t *testing.T) {
	for _, tt := range []struct {
		failures int
		fails    bool
	}{{0, false}, {3, false}, {1 << 20, true}} {
		asked := 0
		fd, err := retried(func() (int, error) {
			if asked++; asked <= tt.failures {
				return -1, unix.EAGAIN
			}
			return 7, nil
		})
		if errors.Is(err, unix.EAGAIN) != tt.fails || !tt.fails && fd != 7 {
			t.Errorf("%d failures: %d, %v", tt.failures, fd, err)
		}
	}
}
