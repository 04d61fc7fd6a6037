package dockerapi

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/journal"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
	"github.com/bridgetoll/bridgetoll/internal/text/hint"
)

func aJournal(t *testing.T, dir, mark, host string, made ...Entry) (file string) {
	t.Helper()
	j, err := NewJournal(dir, NewID(), mark, host)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range made {
		if err := j.Add(e.Kind, e.Name); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return j.file
}

// Other files must not block or hide the journals.
func TestWhatIsNoJournal(t *testing.T) {
	dir := t.TempDir()
	gone := journal.Mark() + "9"
	good := aJournal(t, dir, gone, "unix:///x", Entry{Network, "toll-x"})
	text, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	write := func(mode os.FileMode, text string) func(string) error {
		return func(file string) error {
			return errors.Join(os.WriteFile(file, []byte(text), mode), os.Chmod(file, mode))
		}
	}
	want := map[string]string{}
	for name, c := range map[string]struct {
		make func(file string) error
		says string
	}{
		"link": {func(f string) error { return os.Symlink(good, f) },
			`read journal: "DIR/link.docker" is left alone: it is a symbolic link, not a ` +
				"regular file"},
		"writable": {write(0o622, string(text)),
			`read journal: "DIR/writable.docker" is left alone: others may write to it (mode ` +
				"622)"},
		"long": {func(f string) error {
			return errors.Join(write(0o600, string(text))(f), os.Truncate(f, 100<<20))
		}, `read journal: "DIR/long.docker" is left alone: it is longer than 16 MiB`},
		"long-line": {write(0o600, string(text)+"network "+strings.Repeat("x", 10_000)+"\n"),
			`read journal: "DIR/long-line.docker" is left alone: it is not a journal`},
		"binary": {write(0o600, strings.Repeat("\x00\n", 5000)),
			`read journal: "DIR/binary.docker" is left alone: it is not a journal`},
		"no-owner": {write(0o600, "network toll-x\n"),
			`read journal: "DIR/no-owner.docker" is left alone: its owner or its daemon is ` +
				"missing"},
	} {
		file := filepath.Join(dir, name+journalSuffix)
		if err := c.make(file); err != nil {
			t.Fatal(err)
		}
		want[file] = c.says
	}
	began := time.Now()
	js, err := openJournals(dir, false)
	defer js.close()
	if took := time.Since(began); took > patience {
		t.Errorf("it took %s", took)
	}
	if len(js.left) != 1 || js.left[0].File != good {
		t.Errorf("left are %+v", js.left)
	}
	if err == nil {
		t.Fatal("no error")
	}
	for file, says := range want {
		if got := testgolden.Stable(err.Error()); !testgolden.HasLine(got, says) {
			t.Errorf("no line %q in %q", says, got)
		}
		if _, err := os.Lstat(file); err != nil {
			t.Errorf("%s is gone", file)
		}
	}
	if hint.Of(err) == "" {
		t.Error("no hint")
	}
}

// Such lines are neither used nor forgotten.
func TestJournalWithOddLines(t *testing.T) {
	for _, odd := range []string{"network -f", "network ../x", "image a\x1b[31m", "network ",
		"network a\tb", "link toll\u202e", "volume v", "-volume v",
		"network " + strings.Repeat("x", 400), "container a  b"} {
		dir := t.TempDir()
		file := aJournal(t, dir, journal.Mark()+"9", "unix:///x", Entry{Link, "toll00000001"})
		f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(f, odd)
		f.Close()
		js, err := openJournals(dir, false)
		if err != nil || len(js.left) != 1 || len(js.left[0].Made) != 1 {
			t.Fatalf("%q: %+v, %v", odd, js.left, err)
		}
		err = js.remove(js.left[0])
		want := fmt.Sprintf("%q is left alone: it has 1 unknown line, so another version of "+
			"toll may "+
			"have made more things", file)
		if got := fmt.Sprint(err); got != want {
			t.Errorf("%s: the journal is removed: %q, want %q", odd, got, want)
		}
		js.close()
	}
}

func TestStateDirIsOurs(t *testing.T) {
	good := t.TempDir()
	aJournal(t, good, journal.Mark()+"9", "unix:///x", Entry{Network, "toll-x"})
	dir := filepath.Join(t.TempDir(), "bridgetoll")
	if err := os.Symlink(good, dir); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{dir, dir + "/"} {
		js, err := openJournals(dir, false)
		if err == nil || len(js.left) > 0 {
			t.Errorf("read %+v, %v", js.left, err)
		}
		js.close()
		j, err := NewJournal(dir, "id", "mark", "unix:///x")
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Add(Network, "toll-x"); err == nil {
			t.Error("written")
		}
	}
}

// One of them may find that a journal has vanished.
func TestCleanTwiceAtOnce(t *testing.T) {
	dir := t.TempDir()
	aJournal(t, dir, journal.Mark()+"9", "unix:///x", Entry{Network, "toll-x"})
	first, err := openJournals(dir, false)
	if err != nil || len(first.left) != 1 {
		t.Fatalf("%+v, %v", first.left, err)
	}
	second, err := openJournals(dir, false)
	if err != nil || len(second.left) != 0 {
		t.Errorf("the other has it, too: %+v, %v", second.left, err)
	}
	second.close()
	if err := first.remove(first.left[0]); err != nil {
		t.Error(err)
	}
	if err := first.remove(first.left[0]); err != nil {
		t.Errorf("again: %v", err)
	}
	first.close()
}

// A starting run must keep its journal.
func TestCleanWhileRunsStart(t *testing.T) {
	dir := t.TempDir()
	hidden := strings.Split(journal.Mark(), "/")
	hidden[2] = "pid:[1]"
	mark := strings.Join(hidden, "/")
	over := make(chan struct{})
	var cleaners sync.WaitGroup
	for range 2 {
		cleaners.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				js, err := openJournals(dir, true)
				if err != nil {
					t.Error(err)
				}
				for _, j := range js.left {
					if err := js.remove(j); err != nil {
						t.Error(err)
					}
				}
				js.close()
			}
		})
	}
	for i := range 200 {
		j, err := NewJournal(dir, fmt.Sprint(i), mark, "unix:///x")
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Add(Network, "toll-x"); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(j.file); err != nil {
			t.Fatalf("the journal of a live run was removed: %v", err)
		}
		j.Gone(Network, "toll-x")
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	close(over)
	cleaners.Wait()
}

// A run may be about to write the file.
func TestEmptyJournal(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "x"+journalSuffix)
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, age := range []time.Duration{0, time.Hour} {
		at := time.Now().Add(-age)
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
		js, err := openJournals(dir, false)
		if err != nil || len(js.left) > 0 {
			t.Errorf("%+v, %v", js.left, err)
		}
		js.close()
		if _, err := os.Stat(file); (err == nil) != (age == 0) {
			t.Errorf("after %s: %v", age, err)
		}
	}
}

// After a reboot a setting is not the run's any more.
func TestSettingsOfAnotherBoot(t *testing.T) {
	setting := Entry{Setting, "net.bridge.bridge-nf-call-iptables"}
	for _, boot := range []string{"", "2f6e5d1c-0000-4000-8000-000000000000"} {
		dir := t.TempDir()
		file := aJournal(t, dir, journal.Mark()+"9", "unix:///x", Entry{Link, "toll00000001"}, setting)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if boot != "" {
			here, err := journal.BootID()
			if err != nil || !strings.Contains(string(text), "namespace "+here) {
				t.Fatalf("%s, %v", text, err)
			}
			text = []byte(strings.ReplaceAll(string(text), "namespace "+here, "namespace "+boot))
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		js, err := openJournals(dir, false)
		if err != nil || len(js.left) != 1 {
			t.Fatalf("%+v, %v", js.left, err)
		}
		got, err := js.left[0].Settings()
		if want := boot == ""; err != nil || slices.Equal(got, []Entry{setting}) != want ||
			len(got) > 0 != want {
			t.Errorf("boot %q: %v, %v", boot, got, err)
		}
		js.close()
	}
}

// What other machines can reach may be of one with the same ID; what only this one can is over.
func TestOverOfAnotherBoot(t *testing.T) {
	p := strings.Split(journal.Mark(), "/")
	p[1] = "2f6e5d1c-0000-4000-8000-000000000000"
	mark := strings.Join(p, "/")
	dir := t.TempDir()
	for _, tt := range []struct{ listed, others, over bool }{
		{false, false, false}, {false, true, true}, {true, false, true}} {
		if tt.listed {
			aJournal(t, dir, mark, "unix:///x", Entry{Service, "toll-x"})
		}
		js, err := openJournals(dir, tt.others)
		if err != nil {
			t.Fatal(err)
		}
		s := &Sweep{judge: js.judge}
		labels := map[string]string{RunLabel: mark}
		if got := s.OverInCluster(Service, "toll-x", labels); got != tt.over ||
			len(s.spared) == 0 != tt.over {
			t.Errorf("%+v: %t, spared %+v", tt, got, s.spared)
		}
		if !s.Over(Container, "toll-x", labels) {
			t.Errorf("%+v: a container of another boot stays", tt)
		}
		js.close()
	}
}
