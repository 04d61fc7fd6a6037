package peer

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// shell is boot.sh in a shell of this machine.
type shell struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

func startShell(t *testing.T, env ...string) *shell {
	t.Helper()
	s := &shell{t: t, cmd: exec.Command("sh")}
	s.cmd.Env = append(os.Environ(), env...)
	s.cmd.Stderr = os.Stderr
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.lines = bufio.NewScanner(out)
	s.say(strings.NewReplacer("SUDO", "''").Replace(boot))
	s.hear("have")
	return s
}

func (s *shell) hear(words ...string) (word string) {
	s.t.Helper()
	for s.lines.Scan() {
		for _, w := range words {
			if strings.HasPrefix(s.lines.Text(), "MARK "+w) {
				return w
			}
		}
	}
	s.t.Fatalf("the shell never said %s: %v", words, s.lines.Err())
	return ""
}

func (s *shell) say(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.in, text); err != nil {
		s.t.Fatal(err)
	}
}

// copy brings a program, of which only the first bytes are sent if cut. It reports whether it was
// kept there.
func (s *shell) copy(program string, cut bool) (kept bool) {
	s.t.Helper()
	s.say(fmt.Sprintf("copy %x %d\n", sha256.Sum256([]byte(program)), len(program)))
	if s.hear("kept", "lacks") == "kept" {
		return true
	}
	packed := string(local.Pack([]byte(program)))
	s.say(fmt.Sprintf("%d\n", len(packed)))
	s.hear("send")
	if cut {
		packed = packed[:10]
	}
	s.say(packed)
	return false
}

func (s *shell) end() {
	_ = s.in.Close()
	_ = s.cmd.Wait()
}

const (
	once   = "#!/bin/sh\necho MARK agent; [ \"$4\" = --remove ] && rm \"$0\"\n"
	hidden = ".bridgetoll-copy-*"
)

// A killed copy leaves nothing. Copies that ended hours ago are removed, those in progress stay.
func TestCopy(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed-%t", killed), func(t *testing.T) {
			dir := t.TempDir()
			hours := time.Now().Add(-2 * time.Hour)
			for name, at := range map[string]time.Time{"old": hours, "others": time.Now()} {
				old := dir + "/.bridgetoll-copy-" + name
				if err := errors.Join(os.Mkdir(old, 0o700), os.WriteFile(old+"/toll", nil, 0o700),
					os.Chtimes(old+"/toll", at, at), os.Chtimes(old, hours, hours)); err != nil {
					t.Fatal(err)
				}
			}
			left := func() int {
				found, err := filepath.Glob(dir + "/" + hidden)
				if err != nil {
					t.Fatal(err)
				}
				return len(found) - 1 // others'
			}
			s := startShell(t, "TMPDIR="+dir, "HOME=", "XDG_CACHE_HOME=")
			s.copy(once, killed)
			if killed {
				if left() != 1 {
					t.Error("there is no copy to remove")
				}
				if err := s.cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			} else {
				s.hear("agent")
			}
			s.end()
			testwait.Until(t, time.Minute, "the copy is removed", func() bool {
				return left() == 0
			})
		})
	}
}

// The second time the program is there. A cache that others may write to, and a file that is not
// the program, are not used.
func TestCache(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(t *testing.T, cache, file string) error
		kept  bool // the second time
		now   bool // the program is there afterwards
	}{
		{"again", func(*testing.T, string, string) error { return nil }, true, true},
		{"changed", func(_ *testing.T, _, file string) error {
			return os.WriteFile(file, []byte("#!/bin/sh\necho hostile\n"), 0o700)
		}, false, true},
		{"others-write", func(_ *testing.T, cache, _ string) error {
			return os.Chmod(cache, 0o777)
		}, false, true},
		{"link", func(t *testing.T, cache, _ string) error {
			return errors.Join(os.Rename(cache, cache+"2"), os.Symlink(cache+"2", cache))
		}, false, true},
		{"full", func(t *testing.T, cache, file string) error {
			return errors.Join(os.RemoveAll(cache), os.WriteFile(cache, nil, 0o600))
		}, false, false},
		{"foreign", func(t *testing.T, cache, _ string) error {
			if os.Geteuid() != 0 {
				t.Skip("only root gives a directory away")
			}
			return os.Chown(cache, 12345, 12345)
		}, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home, temp := t.TempDir(), t.TempDir()
			env := []string{"HOME=" + home, "XDG_CACHE_HOME=", "TMPDIR=" + temp}
			cache := home + "/.cache/bridgetoll"
			file := fmt.Sprintf("%s/toll-%x", cache, sha256.Sum256([]byte(once)))
			s := startShell(t, env...)
			if s.copy(once, false) {
				t.Error("the first copy was there before")
			}
			s.hear("agent")
			s.end()
			if b, err := os.ReadFile(file); err != nil || string(b) != once {
				t.Fatalf("the cache has %q, %v", b, err)
			}
			if err := tt.spoil(t, cache, file); err != nil {
				t.Fatal(err)
			}
			s = startShell(t, env...)
			if got := s.copy(once, false); got != tt.kept {
				t.Errorf("the second time kept: %t", got)
			}
			s.hear("agent")
			s.end()
			if _, err := os.Stat(file); (err == nil) != tt.now {
				t.Errorf("afterwards: %v", err)
			}
			for _, dir := range []string{cache, temp} {
				if left, _ := filepath.Glob(dir + "/" + hidden); len(left) > 0 {
					t.Errorf("left: %s", left)
				}
			}
		})
	}
}

func TestForget(t *testing.T) {
	home := t.TempDir()
	cache := home + "/.cache/bridgetoll"
	for _, tt := range []struct {
		want string
		mode os.FileMode // of the cache; 0: there is none
	}{{"forgot nothing", 0}, {"forgot all " + cache, 0o700}, {"forgot not " + cache, 0o770}} {
		if tt.mode != 0 {
			if err := errors.Join(os.MkdirAll(cache, 0o700), os.Chmod(cache, tt.mode)); err != nil {
				t.Fatal(err)
			}
		}
		s := startShell(t, "HOME="+home, "XDG_CACHE_HOME=")
		s.say("forget\n")
		s.hear(tt.want)
		s.end()
		if _, err := os.Stat(cache); (err == nil) != (tt.mode == 0o770) {
			t.Errorf("%s: %v", tt.want, err)
		}
	}
}
