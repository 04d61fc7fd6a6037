package history

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var began = time.Date(2026, 11, 23, 5, 0, 0, 0, time.UTC)

func kept(t *testing.T, s *Store) []string {
	t.Helper()
	runs, err := s.Runs()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range runs {
		f, err := s.Open(r)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(b))
	}
	return out
}

func TestKeep(t *testing.T) {
	s := &Store{Dir: filepath.Join(t.TempDir(), "state", "runs")}
	if got := kept(t, s); len(got) != 0 {
		t.Fatalf("a new store has %q", got)
	}
	for k := range 3 {
		if _, err := s.Keep(began.Add(time.Duration(k)*time.Millisecond), fmt.Append(nil, "run ", k), []byte("summary")); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(kept(t, s), ", "); got != "run 2, run 1, run 0" {
		t.Errorf("it has %s", got)
	}
	runs, _ := s.Runs()
	if want := began.Add(2 * time.Millisecond); !runs[0].Began.Equal(want) {
		t.Errorf("it began %v, not %v", runs[0].Began, want)
	}
	if b, err := s.Summary(runs[0]); err != nil || string(b) != "summary" {
		t.Errorf("%s, %v", b, err)
	}
	if err := s.Summarize(runs[0], []byte("anew")); err != nil {
		t.Fatal(err)
	}
	if b, _ := s.Summary(runs[0]); string(b) != "anew" {
		t.Errorf("%s", b)
	}
	for _, name := range []string{s.Dir, filepath.Join(s.Dir, runs[0].Name)} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("others may use %s: %v %v", name, info.Mode(), err)
		}
	}
	if n, err := s.Clear(); n != 3 || err != nil {
		t.Errorf("cleared %d, %v", n, err)
	}
	if left, _ := os.ReadDir(s.Dir); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
	if n, err := s.Clear(); n != 0 || err != nil {
		t.Errorf("cleared %d again, %v", n, err)
	}
}

// A run's number is that of its start, not of its end.
func TestNumber(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	for k, c := range []struct{ began, want int }{{0, 1}, {2, 1}, {1, 2}, {-1, 4}, {3, 1}} {
		n, err := s.Keep(began.Add(time.Duration(c.began)*time.Second), nil, nil)
		if n != c.want || err != nil {
			t.Errorf("run %d has the number %d, want %d: %v", k, n, c.want, err)
		}
	}
}

func TestBounds(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	other := filepath.Join(s.Dir, "notes.jsonl")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for k := range MostRuns + 5 {
		name := began.Add(time.Duration(k)*time.Second).Format(timeFormat) + "-00000000.jsonl"
		if err := os.WriteFile(filepath.Join(s.Dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Keep(began.Add(time.Hour), []byte("last"), nil); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Keep(began, []byte("first"), nil); n != 0 || !errors.Is(err, errOld) {
		t.Errorf("an old run: %d, %v", n, err)
	}
	if got := kept(t, s); len(got) != MostRuns || got[0] != "last" {
		t.Errorf("%d runs, the newest is %q", len(got), got[0])
	}
	for k := range 5 {
		name := filepath.Join(s.Dir, began.Add(time.Hour+time.Duration(k+1)*time.Second).Format(
			timeFormat)+"-00000000.jsonl")
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(name, mostOfOne); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Keep(began.Add(2*time.Hour), []byte("last"), nil); err != nil {
		t.Fatal(err)
	}
	runs, err := s.Runs()
	if want := 1 + MostBytes/mostOfOne - 1; err != nil || len(runs) != want {
		t.Errorf("%d runs, %v; want %d", len(runs), err, want)
	}
	if _, err := s.Keep(began, make([]byte, mostOfOne+1), nil); !errors.Is(err, errTooLarge) {
		t.Errorf("a large run: %v", err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
}

func TestAge(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	const day = 24 * time.Hour
	keep := func(when time.Time, text string) {
		t.Helper()
		if _, err := s.Keep(when, []byte(text), nil); err != nil {
			t.Fatal(err)
		}
	}
	for k := range Ageless + 2 {
		keep(began.Add(time.Duration(k)*time.Second), "old")
	}
	keep(began.Add(MostDays*day), "same season")
	if got := len(kept(t, s)); got != Ageless+3 {
		t.Errorf("%d runs, none of them too old", got)
	}
	keep(began.Add((MostDays+1)*day), "last")
	if got := kept(t, s); len(got) != Ageless || got[0] != "last" || got[1] != "same season" {
		t.Errorf("%d runs: %q", len(got), got)
	}
}

func TestSweep(t *testing.T) {
	s := &Store{Dir: filepath.Join(t.TempDir(), "no[pattern")}
	if err := os.Mkdir(s.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	old, young := filepath.Join(s.Dir, temporary+"1"), filepath.Join(s.Dir, temporary+"2")
	for _, name := range []string{old, young} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(old, before, before); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Keep(began, []byte("run"), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old one: %v", err)
	}
	if _, err := os.Stat(young); err != nil {
		t.Errorf("the young one: %v", err)
	}
}

func TestKeptAtOnce(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := s.Keep(began, []byte("run"), []byte("summary")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(kept(t, s)); n != 8 {
		t.Errorf("%d runs", n)
	}
}

func TestFind(t *testing.T) {
	home := t.TempDir()
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{"HOME": home}, home + "/.local/state/bridgetoll-history"},
		{map[string]string{"HOME": home, "XDG_STATE_HOME": "/state"}, "/state/bridgetoll-history"},
		{map[string]string{"HOME": home, "XDG_STATE_HOME": "state"},
			home + "/.local/state/bridgetoll-history"},
		{map[string]string{"HOME": home, "SUDO_UID": "-1"},
			home + "/.local/state/bridgetoll-history"},
		{map[string]string{"HOME": home + "/none"}, ""},
		{map[string]string{}, ""},
	} {
		s, err := Find(func(name string) string { return c.env[name] })
		switch {
		case c.want == "" && !errors.Is(err, ErrNowhere):
			t.Errorf("%v: %+v, %v", c.env, s, err)
		case c.want != "" && (err != nil || s.Dir != c.want):
			t.Errorf("%v: %+v, %v; want %s", c.env, s, err, c.want)
		}
	}
}

// With sudo, files are the user's, the user's links do not redirect root, and this process keeps
// its rights.
func TestAsUser(t *testing.T) {
	if os.Geteuid() != 0 || !initialNamespace() {
		t.Skip("this takes the machine's root")
	}
	const nobody = 65534
	home := t.TempDir()
	for dir := home; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(home, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	s := &Store{Dir: filepath.Join(home, "a", "runs"), user: &user{nobody, nobody}}
	if _, err := s.Keep(began, []byte("run"), []byte("summary")); err != nil {
		t.Fatal(err)
	}
	err := filepath.Walk(home, func(name string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		if st := info.Sys().(*syscall.Stat_t); st.Uid != nobody || st.Gid != nobody {
			t.Errorf("%s is of %d:%d", name, st.Uid, st.Gid)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "root")
	if err := os.Mkdir(secret, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(home, "link")); err != nil {
		t.Fatal(err)
	}
	s.Dir = filepath.Join(home, "link")
	if _, err := s.Keep(began, []byte("run"), nil); !errors.Is(err, os.ErrPermission) {
		t.Errorf("through a link: %v", err)
	}
	if left, err := os.ReadDir(secret); len(left) != 0 || err != nil {
		t.Errorf("root's directory has %v, %v", left, err)
	}
}
