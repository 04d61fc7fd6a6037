package exchange

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	file, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	if err := os.WriteFile(file, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("file", link); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		most int64
		want error
	}{
		file:                       {5, nil},
		link:                       {5, nil},
		pipe:                       {5, errNoFile}, // nobody writes into it
		dir:                        {5, errNoFile},
		"/dev/zero":                {5, errNoFile},
		filepath.Join(dir, "none"): {5, os.ErrNotExist},
		"/proc/self/mountinfo":     {1, ErrTooLong}, // its size is told as 0
	} {
		b, err := ReadFile(name, c.most)
		if !errors.Is(err, c.want) || c.want == nil && string(b) != "12345" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	if _, err := ReadFile(file, 4); !errors.Is(err, ErrTooLong) {
		t.Errorf("5 bytes where 4 are allowed: %v", err)
	}
}
