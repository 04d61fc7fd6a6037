package local

import (
	"os"
	"path/filepath"
	"testing"
)

func TestProxyVersion(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ says, want string }{
		"28":       {"docker-proxy version 28.5.2 commit 1234567 build x", " 28.5.2"},
		"20":       {"", ""},
		"not-here": {"", ""},
	} {
		file := filepath.Join(dir, name)
		if name != "not-here" {
			err := os.WriteFile(file, []byte("#!/bin/sh\necho '"+c.says+"'\n"), 0o700)
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := ProxyVersion(file); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestProcessIO(t *testing.T) {
	before, err := processIO(os.Getpid())
	if err != nil {
		t.Skip(err) // CONFIG_TASK_IO_ACCOUNTING
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const n = 10_000
	if _, err := w.Write(make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if got, err := r.Read(make([]byte, n)); got != n {
		t.Fatal(got, err)
	}
	after, err := processIO(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if c := after.Sub(before); c.ForwardBytes < n || c.BackwardBytes < n {
		t.Errorf("%+v", c)
	}
	if _, err := processIO(1 << 30); err == nil {
		t.Error("no such process, and no error")
	}
}
