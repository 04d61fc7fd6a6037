package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// output is a command's standard output or error. It keeps the first error, so that a command whose
// output was lost fails, whether it checks what it writes or not.
type output struct {
	io.Writer

	gone context.CancelCauseFunc // ends a command whose output nobody reads

	sudos atomic.Bool // a command with sudo was written

	mu   sync.Mutex
	lost error
}

// Write returns a *failure if the write fails. For a pipe without a reader that is the failure of a
// command that SIGPIPE ended.
func (s *output) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("sudo ")) {
		s.sudos.Store(true)
	}
	n, err := s.Writer.Write(b)
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, unix.EPIPE):
		stop := signaled{unix.SIGPIPE}
		s.gone(stop)
		err = &failure{code: exitSignalled + int(stop.Signal), err: stop}
	default:
		hint := ""
		if outOfSpace(err) {
			hint = "free some space"
		}
		err = &failure{exitFailed, fmt.Errorf("write output: %w", err), hint}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost == nil {
		s.lost = err
	}
	return n, err
}

// result returns a command's error, joined with the loss of its output if it did not report it.
func (s *output) result(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost == nil || errors.Is(err, s.lost) || exitCode(err) > exitSignalled {
		return err
	}
	return errors.Join(s.lost, err)
}

// withoutSudo returns what to type instead of the commands with sudo that were printed on
// terminals, or "" if there were none or sudo is in the PATH.
func withoutSudo(outs ...*output) string {
	printed := slices.ContainsFunc(outs, func(s *output) bool { return s.sudos.Load() && isTerminal(s) })
	if !printed {
		return ""
	}
	if _, err := exec.LookPath("sudo"); err == nil {
		return ""
	}
	return "there is no sudo here: root leaves it out, others type su -c 'COMMAND'"
}

func outOfSpace(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

// fileOf returns the file that w writes to directly.
func fileOf(w io.Writer) (f *os.File, is bool) {
	if s, wraps := w.(*output); wraps {
		w = s.Writer
	}
	f, is = w.(*os.File)
	return f, is
}

func isTerminal(w io.Writer) bool {
	f, ok := fileOf(w)
	return ok && term.IsTerminal(int(f.Fd()))
}

// terminalWidth returns the columns of a terminal, or those of a pipe if w is not one.
func terminalWidth(w io.Writer) int {
	if f, ok := fileOf(w); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return pipeWidth()
}

// columnsEnv is the variable with the columns of output that is not printed on a terminal.
const columnsEnv = "COLUMNS"

// pipeWidth returns the columns of pipes and files.
func pipeWidth() int {
	const usual, least = 80, 60
	if n, err := strconv.Atoi(os.Getenv(columnsEnv)); err == nil && n > 0 {
		return max(least, n)
	}
	return usual
}

// colored reports whether w is a terminal and colours are not turned off
// (https://no-color.org).
func colored(w io.Writer) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(w)
}

type env struct {
	stdout, stderr io.Writer
	args           []string       // the command line, without the program's name
	root           *cobra.Command // nil in newRoot's argument
}

// say prints text, made printable. On a terminal it breaks long lines between words.
func say(w io.Writer, text string) { sayAfter(w, "", text) }

func sayAfter(w io.Writer, before, text string) {
	text = printable.Text(text)
	if isTerminal(w) {
		text = strings.Join(format.Wrap(text, terminalWidth(w)), "\n")
	}
	fmt.Fprintln(w, before+text)
}

func warn(e env, text string) { say(e.stderr, "toll: warning: "+text) }
