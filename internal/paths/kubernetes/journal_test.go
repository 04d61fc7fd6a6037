package kubernetes

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/journal"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
)

func TestJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	j := Journal{Owner: "mark", Run: "abc", Context: "c", Server: "https://192.0.2.1",
		Namespace: "perf"}
	open, err := j.write(dir)
	if err != nil {
		t.Fatal(err)
	}
	const name = "abc" + cluster.JournalSuffix
	file := filepath.Join(dir, name)
	d, err := journal.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, _, err := readJournal(d, name); !errors.Is(err, journal.ErrLocked) {
		t.Errorf("of a living run: %v", err)
	}
	if err := open.close(false); err != nil {
		t.Fatal(err)
	}
	got, done, err := readJournal(d, name)
	if err != nil || got != j {
		t.Fatalf("got %+v, %v", got, err)
	}
	if err := done(true); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	for what, text := range map[string]string{"nonsense": "x", "no-run": `{"namespace":"a"}`,
		"a-selector": `{"run":"a,b=c","namespace":"a"}`} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if j, _, err := readJournal(d, name); err == nil {
			t.Errorf("%s: %+v", what, j)
		}
	}
}
