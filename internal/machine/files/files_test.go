package files

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestReplaceKeepsWhatAppeared(t *testing.T) {
	name := filepath.Join(t.TempDir(), "report")
	if err := Writable(name); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Dir(name) + "/.*"); len(left) > 0 {
		t.Errorf("trying leaves %v", left)
	}
	if err := os.WriteFile(name, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := Replace(name, []byte("ours"), false)
	var appeared *AppearedError
	if !errors.As(err, &appeared) {
		t.Fatalf("%v", err)
	}
	kept := appeared.Kept
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
		if err := Replace(name, []byte(c.data), c.force); err != nil {
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

// A file that cannot be emptied is closed, and so no longer locked.
func TestNotEmptied(t *testing.T) {
	reading, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if f, err := emptied(reading, nil); f != nil || err == nil {
		t.Errorf("%v, %v", f, err)
	}
	if err := reading.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("it was open: %v", err)
	}
}

// A second toll neither empties nor mixes what the first writes, whether that made the file or not.
func TestTaken(t *testing.T) {
	name := filepath.Join(t.TempDir(), "run.jsonl")
	for _, force := range []bool{false, true} {
		f, err := Create(name, force)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("first"); err != nil {
			t.Fatal(err)
		}
		if _, err := Create(name, true); !errors.Is(err, ErrTaken) {
			t.Errorf("%v", err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); string(got) != "first" {
			t.Errorf("it has %q, %v", got, err)
		}
	}
	f, err := Create(name, true)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(name); err != nil || info.Size() != 0 {
		t.Errorf("%v, %v", info, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
