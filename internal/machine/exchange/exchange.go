// Package exchange limits exchanges with programs and servers: how long an answer may take, how
// large it may be, and how long toll waits before it tells the user what it waits for.
package exchange

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// maxAnswer is the default limit of an answer, in bytes. The list of a thousand containers takes 4
// MB.
const maxAnswer = 16 << 20

const silence = 2 * time.Second

// ErrTooLong means that an answer exceeds its limit.
var ErrTooLong = errors.New("the answer is too long")

// SlowError means that an answer did not arrive in time.
type SlowError struct {
	What  string // the program or server
	After time.Duration
}

func (e *SlowError) Error() string {
	return fmt.Sprintf("%s did not answer within %s", e.What, e.After)
}

func (e *SlowError) Unwrap() error { return context.DeadlineExceeded }

func (e *SlowError) Timeout() bool { return true }

var (
	mu   sync.Mutex
	tell = func(string) {}
)

// Tell sets the function that shows the user what toll waits for, and returns one that restores the
// previous function. f is called with one printable line, by one goroutine at a time.
func Tell(f func(line string)) (restore func()) {
	mu.Lock()
	defer mu.Unlock()
	before := tell
	tell = f
	return func() {
		mu.Lock()
		defer mu.Unlock()
		tell = before
	}
}

// Waiting shows the user that toll waits for what, unless done is called within two seconds. done
// may be called more than once.
func Waiting(what string) (done func()) {
	t := time.AfterFunc(silence, func() {
		mu.Lock()
		defer mu.Unlock()
		tell("waiting for " + printable.Line(what))
	})
	return func() { t.Stop() }
}

// errNoFile means that there is a pipe, a device or a directory in place of a file.
var errNoFile = errors.New("it is not a regular file")

// Open opens a regular file for reading. It neither waits for the writer of a pipe nor opens a
// device.
func Open(name string) (*os.File, error) {
	fd, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
	return reopen(name, fd, err)
}

// OpenIn is Open for a file below a root directory, such as a container's: links, also absolute
// ones, lead to files below it. "" is this machine's root. (Before Linux 5.6 and where a seccomp
// profile forbids openat2, absolute links lead to this machine's files.)
func OpenIn(root, name string) (*os.File, error) {
	all := filepath.Join("/", root, name)
	at, err := unix.Open(cmp.Or(root, "/"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: all, Err: err}
	}
	defer func() { _ = unix.Close(at) }()
	fd, err := retried(func() (int, error) {
		return unix.Openat2(at, name, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS})
	})
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return Open(all)
	}
	return reopen(all, fd, err)
}

// retried calls open again while it returns EAGAIN, as openat2 does if a rename or a mount anywhere
// on the machine comes between a step to a parent directory and its check.
func retried(open func() (int, error)) (fd int, err error) {
	const most = 100
	for range most {
		if fd, err = open(); !errors.Is(err, unix.EAGAIN) {
			break
		}
	}
	return fd, err
}

// reopen opens for reading what fd, an O_PATH descriptor, names, and closes fd.
func reopen(name string, fd int, err error) (*os.File, error) {
	failed := func(err error) error { return &fs.PathError{Op: "open", Path: name, Err: err} }
	if err != nil {
		return nil, failed(err)
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, failed(err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, failed(errNoFile)
	}
	opened, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, failed(err)
	}
	return os.NewFile(uintptr(opened), name), nil
}

// ReadFile opens a file by Open and returns its content. It returns ErrTooLong if the file has more
// than most bytes.
func ReadFile(name string, most int64) ([]byte, error) {
	f, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = &fs.PathError{Op: "read", Path: name, Err: ErrTooLong}
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// Limits are the limits of a program's run.
type Limits struct {
	Time   time.Duration
	Output int64 // on its standard output, in bytes; 0: maxAnswer
}

// killDelay is the time in which the children of a killed program may close its output.
const killDelay = time.Second

// Output runs a program and returns its standard output. It kills a program that prints too much or
// takes too long; if SysProcAttr has Setpgid, also the program's children. If cmd.Stderr is nil,
// errors include the end of the standard error.
func Output(ctx context.Context, cmd *exec.Cmd, l Limits) ([]byte, error) {
	out := &bounded{most: cmp.Or(l.Output, maxAnswer)}
	out.full = func() { _ = kill(cmd) }
	said := &tail{}
	if cmd.Stderr == nil {
		cmd.Stderr = said
	}
	cmd.Stdout, cmd.WaitDelay = out, killDelay
	name := filepath.Base(cmd.Path)
	defer Waiting(name)()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, l.Time, &SlowError{name, l.Time})
	defer cancel()
	ended := make(chan struct{})
	var err error
	go func() { err = cmd.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
		_ = kill(cmd)
		<-ended
		return nil, context.Cause(ctx)
	}
	switch words := printable.Words(string(said.b)); {
	case out.over:
		return nil, fmt.Errorf("%s: %w", name, ErrTooLong)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay) && words != "":
		return nil, fmt.Errorf("%w: %s", err, words)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return nil, err
	}
	return out.b, nil
}

func kill(cmd *exec.Cmd) error {
	if cmd.SysProcAttr != nil && cmd.SysProcAttr.Setpgid {
		return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	return cmd.Process.Kill()
}

// bounded calls full when more than most bytes arrive.
type bounded struct {
	b    []byte
	most int64
	over bool
	full func()
}

func (w *bounded) Write(p []byte) (int, error) {
	if int64(len(w.b)+len(p)) > w.most {
		w.over = true
		w.full()
		return 0, io.ErrShortWrite
	}
	w.b = append(w.b, p...)
	return len(p), nil
}

type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	const most = 2 << 10
	t.b = append(t.b, p[max(0, len(p)-most):]...)
	t.b = t.b[max(0, len(t.b)-most):]
	return len(p), nil
}
