package cli

import (
	"bufio"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
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

func TestHintWhereTheDiskIsFull(t *testing.T) {
	err := unsaved("the machine", &fs.PathError{Op: "write", Path: "m.json", Err: syscall.ENOSPC})
	if hint := hintOf(err, err); hint != "free some space, or give --save another path" {
		t.Errorf("%v: hint %q", err, hint)
	}
}
