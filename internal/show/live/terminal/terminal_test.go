package terminal

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/show/live"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

const patience = time.Minute

type screen struct {
	keyboard *os.File
	tty      *os.File
	mu       sync.Mutex
	drawn    bytes.Buffer
}

func newScreen(t *testing.T) *screen {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	master := os.NewFile(uintptr(fd), "ptmx")
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { tty.Close() })
	s := &screen{keyboard: master, tty: tty}
	s.resize(t, 80, 24)
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := master.Read(b)
			s.mu.Lock()
			s.drawn.Write(b[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return s
}

func (s *screen) resize(t *testing.T, columns, lines uint16) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(s.tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: lines}); err != nil {
		t.Fatal(err)
	}
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drawn.String()
}

func (s *screen) waits(t *testing.T, text string) {
	t.Helper()
	testwait.Until(t, patience, text+" is on the screen", func() bool {
		return strings.Contains(s.text(), text)
	})
}

func (s *screen) modes(t *testing.T) unix.Termios {
	t.Helper()
	m, err := unix.IoctlGetTermios(int(s.tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *m
}

func TestTerminalIsRestored(t *testing.T) {
	s := newScreen(t)
	before := s.modes(t)
	term, err := Open(s.tty, s.tty)
	if err != nil {
		t.Fatal(err)
	}
	if now := s.modes(t); now.Lflag&unix.ICANON != 0 || now.Lflag&unix.ISIG == 0 {
		t.Errorf("lines are waited for, or Ctrl-C is no signal: %#x", now.Lflag)
	}
	if c, l := term.size(); c != 80 || l != 24 {
		t.Errorf("%d columns, %d lines", c, l)
	}
	if err := term.Close(); err != nil {
		t.Fatal(err)
	}
	if after := s.modes(t); after != before {
		t.Errorf("the terminal's modes are %+v, they were %+v", after, before)
	}
	s.waits(t, "\x1b[?1049l")
	const want = "\x1b[?1049h\x1b[?25l\x1b[2J\x1b[?2026l\x1b[m\x1b[?25h\x1b[?1049l"
	if got := s.text(); got != want {
		t.Errorf("drawn: %q, want %q", got, want)
	}
}

func TestDrawsWhatDiffers(t *testing.T) {
	s := newScreen(t)
	term, err := Open(s.tty, s.tty)
	if err != nil {
		t.Fatal(err)
	}
	defer term.Close()
	draw := func(lines ...string) {
		if err := term.draw(lines); err != nil {
			t.Fatal(err)
		}
	}
	draw("first", "second", "third")
	s.waits(t, "third")
	before := len(s.text())
	draw("first", "second", "third")
	draw("first", "other", "third")
	const end = "\x1b[?2026l"
	s.waits(t, "other\x1b[m\x1b[K"+end)
	if got, want := s.text()[before:], "\x1b[?2026h\x1b[2;1Hother\x1b[m\x1b[K"+end; got != want {
		t.Errorf("drawn again: %q, want %q", got, want)
	}
}

func TestNoTerminal(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if _, err := Open(r, w); err == nil {
		t.Error("a pipe is taken for a terminal")
	}
}

func TestStill(t *testing.T) {
	s := newScreen(t)
	term, err := Open(s.tty, s.tty)
	if err != nil {
		t.Fatal(err)
	}
	d := Show(term, func(columns, lines int) live.Model {
		return live.New("a run", true, false, columns, lines)
	})
	defer d.Close()
	s.waits(t, "Nothing has been measured yet")
	d.Send(live.State{Step: &live.Progress{Next: "first epoch", Total: 60}})
	s.waits(t, "first epoch")
	d.Still(true)
	before := s.text()
	s.keyboard.WriteString("?")
	s.keyboard.WriteString("q")
	s.waits(t, "Stop the run?")
	if strings.Contains(s.text()[len(before):], "How to read it") {
		t.Error("help is drawn while the screen stands still")
	}
	s.keyboard.WriteString("q")
	d.Send(live.State{Step: &live.Progress{Next: "second epoch", Total: 60}})
	s.waits(t, "How to read it")
	s.keyboard.WriteString("qs")
	select {
	case <-d.Ended():
	case <-time.After(patience):
		t.Fatal("the screen goes on")
	}
	if d.Outcome() != live.Stopped {
		t.Errorf("outcome %v", d.Outcome())
	}
	d.Send(live.State{}) // must return
}
