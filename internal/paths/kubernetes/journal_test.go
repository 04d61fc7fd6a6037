package kubernetes

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A journal is there before anything else is, belongs to its run while that lives, and is removed with what
// it tells of.
func TestJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	j := Journal{Owner: "mark", Run: "abc", Context: "c", Server: "https://192.0.2.1", Namespace: "perf"}
	open, err := j.write(dir)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "abc"+journalSuffix)
	if _, _, err := readJournal(file); !errors.Is(err, fs.ErrExist) {
		t.Errorf("of a living run: %v", err)
	}
	if err := open.close(false); err != nil {
		t.Fatal(err)
	}
	got, done, err := readJournal(file)
	if err != nil || got != j {
		t.Fatalf("got %+v, %v", got, err)
	}
	if err := done(true); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	for name, text := range map[string]string{"nonsense": "x", "no-run": `{"namespace":"a"}`, "a-selector": `{"run":"a,b=c","namespace":"a"}`} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if j, _, err := readJournal(file); err == nil {
			t.Errorf("%s: %+v", name, j)
		}
	}
	if err := os.Chmod(file, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, _, err := readJournal(file); err == nil {
		t.Error("one that anybody may write is read")
	}
}
