// Package terminal draws a screen on a terminal and reads its keys. bubbletea only decodes keys and
// runs the model: its renderer wakes sixty times a second, which would disturb a measurement on the
// same machine.
package terminal

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/sys/unix"
)

// Terminal is a terminal whose screen and keys belong to this process until it is closed.
type Terminal struct {
	out   *os.File
	keys  *os.File
	owned bool // release closes keys
	saved *unix.Termios
	drawn []string // on the screen; nil: not known
}

var errNone = errors.New("there is no terminal")

// Open switches out to its alternate screen. Keys come from in if it is a terminal, else from
// /dev/tty. It returns an error if either is missing. The caller must call Close.
func Open(in, out *os.File) (*Terminal, error) {
	if !is(out) {
		return nil, errNone
	}
	t := &Terminal{out: out, keys: in}
	if !is(in) {
		f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
		if err != nil {
			return nil, fmt.Errorf("%w to read keys from: %w", errNone, err)
		}
		t.keys, t.owned = f, true
	}
	saved, err := unix.IoctlGetTermios(int(t.keys.Fd()), unix.TCGETS)
	if err == nil {
		t.saved = saved
		err = unix.IoctlSetTermios(int(t.keys.Fd()), unix.TCSETS, raw(*saved))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("set up the terminal: %w", err), t.release())
	}
	_, err = t.out.WriteString(ansi.SetModeAltScreenSaveCursor + ansi.HideCursor +
		ansi.EraseEntireScreen)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("draw on the terminal: %w", err), t.Close())
	}
	return t, nil
}

// raw returns settings in which keys are read one by one. Ctrl-C still raises a signal. Ctrl-Z does
// not, because a stopped toll would leave its screen to the shell.
func raw(t unix.Termios) *unix.Termios {
	t.Iflag &^= unix.IXON | unix.ICRNL | unix.INLCR | unix.IGNCR | unix.ISTRIP | unix.BRKINT |
		unix.INPCK
	t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.IEXTEN
	t.Cc[unix.VMIN], t.Cc[unix.VTIME], t.Cc[unix.VSUSP] = 1, 0, 0
	return &t
}

func is(f *os.File) bool {
	if f == nil {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// size returns the terminal's size, or 80 and 24 if it is not known.
func (t *Terminal) size() (columns, lines int) {
	const usualColumns, usualLines = 80, 24
	s, err := unix.IoctlGetWinsize(int(t.out.Fd()), unix.TIOCGWINSZ)
	if err != nil || s.Col == 0 || s.Row == 0 {
		return usualColumns, usualLines
	}
	return int(s.Col), int(s.Row)
}

// draw draws the lines that differ from those on the screen.
func (t *Terminal) draw(lines []string) error {
	var b strings.Builder
	b.WriteString(ansi.SetModeSynchronizedOutput)
	if t.drawn == nil {
		b.WriteString(ansi.EraseEntireScreen)
	}
	changed := t.drawn == nil
	for i, l := range lines {
		if i < len(t.drawn) && t.drawn[i] == l {
			continue
		}
		changed = true
		b.WriteString(ansi.CursorPosition(1, i+1) + l + ansi.ResetStyle + ansi.EraseLineRight)
	}
	if len(lines) < len(t.drawn) {
		changed = true
		b.WriteString(ansi.CursorPosition(1, len(lines)+1) + ansi.EraseScreenBelow)
	}
	if !changed {
		return nil
	}
	b.WriteString(ansi.ResetModeSynchronizedOutput)
	t.drawn = append([]string{}, lines...)
	_, err := t.out.WriteString(b.String())
	return err
}

// forget makes the next draw draw all lines, for example after a change of size.
func (t *Terminal) forget() { t.drawn = nil }

// Close restores the terminal's screen and settings, and discards unread keys.
func (t *Terminal) Close() error {
	_, err := t.out.WriteString(ansi.ResetModeSynchronizedOutput + ansi.ResetStyle +
		ansi.ShowCursor + ansi.ResetModeAltScreenSaveCursor)
	return errors.Join(err, t.release())
}

func (t *Terminal) release() (err error) {
	if t.saved != nil { // TCSETSF discards what was typed: the shell does not get it
		err = unix.IoctlSetTermios(int(t.keys.Fd()), unix.TCSETSF, t.saved)
	}
	if t.owned {
		err = errors.Join(err, t.keys.Close())
	}
	return err
}
