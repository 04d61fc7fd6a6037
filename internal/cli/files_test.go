package cli

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestReplaceKeepsWhatAppeared(t *testing.T) {
	name := filepath.Join(t.TempDir(), "report")
	if err := writable(name); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Dir(name) + "/.*"); len(left) > 0 {
		t.Errorf("trying leaves %v", left)
	}
	if err := os.WriteFile(name, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := replace(name, []byte("ours"), false)
	var f *failure
	if !errors.As(err, &f) || exitCode(err) != exitFailed {
		t.Fatalf("%v", err)
	}
	kept := strings.TrimPrefix(f.hint, "the output is in ")
	for file, want := range map[string]string{name: "other", kept: "ours"} {
		if got, err := os.ReadFile(file); string(got) != want {
			t.Errorf("%s has %q, %v", file, got, err)
		}
	}
}

// A reader that has the old file open keeps its content.
func TestReplace(t *testing.T) {
	name := filepath.Join(t.TempDir(), "toll.prom")
	for _, c := range []struct {
		force      bool
		data, mode string
	}{{false, "first", ""}, {true, "second", "-rw-r-----"}} {
		var old *os.File
		if c.mode != "" {
			if err := os.Chmod(name, 0o640); err != nil {
				t.Fatal(err)
			}
			var err error
			if old, err = os.Open(name); err != nil {
				t.Fatal(err)
			}
			defer old.Close()
		}
		if err := replace(name, []byte(c.data), c.force); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(name)
		info, _ := os.Stat(name)
		if string(got) != c.data || c.mode != "" && info.Mode().String() != c.mode {
			t.Errorf("%q, %s, %v", got, info.Mode(), err)
		}
		if old != nil {
			b := make([]byte, 10)
			if n, _ := old.Read(b); string(b[:n]) != "first" {
				t.Errorf("the reader has %q", b[:n])
			}
		}
	}
	if left, _ := filepath.Glob(filepath.Dir(name) + "/.*"); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
}

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
	if err != nil || !strings.Contains(text, "waiting for a program that writes to "+name) {
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

// A second toll neither empties nor mixes what the first writes, whether that made the file or not.
func TestTaken(t *testing.T) {
	name := filepath.Join(t.TempDir(), "run.jsonl")
	for _, force := range []bool{false, true} {
		w, closeFile, err := create(name, io.Discard, force)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, "first"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := create(name, io.Discard, true); !errors.Is(err, errTaken) {
			t.Errorf("%v", err)
		}
		if err := closeFile(); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); string(got) != "first" {
			t.Errorf("it has %q, %v", got, err)
		}
	}
	_, closeFile, err := create(name, io.Discard, true)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(name); err != nil || info.Size() != 0 {
		t.Errorf("%v, %v", info, err)
	}
	if err := closeFile(); err != nil {
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
