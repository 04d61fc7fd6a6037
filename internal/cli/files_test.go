package cli

import (
	"bufio"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/machine/files"
)

func TestWaitingForAWriter(t *testing.T) {
	name := filepath.Join(t.TempDir(), "run.jsonl")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	said, stderr := io.Pipe()
	opened := make(chan error, 1)
	go func() {
		f, err := openInput(env{stderr: stderr}, name)
		if err == nil {
			err = f.Close()
		}
		opened <- err
	}()
	text, err := bufio.NewReader(said).ReadString('\n')
	if err != nil || text != "toll: waiting for a program that writes to "+name+", a named pipe\n" {
		t.Errorf("%q, %v", text, err)
	}
	w, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

func TestUnopened(t *testing.T) {
	err := unopened("run.jsonl",
		&os.PathError{Op: "open", Path: "run.jsonl", Err: fs.ErrPermission})
	if hint := hintOf(err, err); hint != mayRead {
		t.Error(hint)
	}
}

func TestHintOfUnwritten(t *testing.T) {
	for _, tt := range []struct {
		err  error
		hint string
	}{
		{&fs.PathError{Op: "write", Path: "m.json", Err: syscall.ENOSPC},
			"free some space, or give --%s another path"},
		{&fs.PathError{Op: "open", Path: "m.json", Err: files.ErrTaken}, "give --%s another path"},
		{&fs.PathError{Op: "open", Path: "m.json", Err: syscall.EROFS}, "give --%s a writable path"},
		{&files.AppearedError{Name: "m.json", Kept: ".toll-1-0"}, "the output is in .toll-1-0"},
	} {
		for flag, err := range map[string]error{saveFlag: unsaved("the machine", tt.err),
			outputFlag: unprinted(tt.err)} {
			want := strings.Replace(tt.hint, "%s", flag, 1)
			if hint := hintOf(err, err); hint != want {
				t.Errorf("%v: hint %q, want %q", err, hint, want)
			}
		}
	}
}
