// Package netns makes network namespaces without names. Each has a thread of this process; when the
// thread ends, the kernel removes the namespace.
//
// Child processes are started on that thread, because a child's parent-death signal is bound to the
// thread that started it. With file descriptors and setns, this would be a thread that goes on to
// other work.
//
// Child processes started inside Do are in the namespace, goroutines are not.
package netns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine/exchange"
)

// The first thread stays main's and never enters another namespace, because /proc/self shows the
// first thread's namespace.
func init() { runtime.LockOSThread() }

var errClosed = errors.New("network namespace is closed")

// NS is a network namespace. Any goroutine may call its methods; calls run one after another.
type NS struct {
	calls chan func()
	done  chan struct{}

	mu     sync.Mutex
	closed bool
}

// New makes a network namespace with only a loopback device, which is down. The caller closes it.
// The error wraps EPERM without CAP_SYS_ADMIN in the user namespace.
func New() (*NS, error) {
	n, err := start(func() error { return unix.Unshare(unix.CLONE_NEWNET) })
	if err != nil {
		return nil, fmt.Errorf("make network namespace: %w", err)
	}
	return n, nil
}

// Join enters the network namespace of a file such as /proc/PID/ns/net. The caller closes the NS.
// The error wraps EPERM without CAP_SYS_ADMIN over the namespace. The file may be another user's:
// see exchange.Open.
func Join(file string) (*NS, error) {
	n, err := start(func() error {
		f, err := exchange.Open(file)
		if err != nil {
			return err
		}
		return errors.Join(unix.Setns(int(f.Fd()), unix.CLONE_NEWNET), f.Close())
	})
	if err != nil {
		return nil, fmt.Errorf("enter network namespace %s: %w", file, err)
	}
	return n, nil
}

// Here returns the process's network namespace, without privilege. The caller closes it.
func Here() (*NS, error) { return start(func() error { return nil }) }

func start(enter func() error) (*NS, error) {
	n := &NS{calls: make(chan func()), done: make(chan struct{})}
	started := make(chan error)
	go n.live(enter, started)
	if err := <-started; err != nil {
		return nil, err
	}
	return n, nil
}

// live is the goroutine of a namespace. It never unlocks its thread, so the thread ends with it.
func (n *NS) live(enter func() error, started chan<- error) {
	defer close(n.done)
	runtime.LockOSThread()
	err := enter()
	started <- err
	if err != nil {
		return
	}
	for f := range n.calls {
		f()
	}
}

// Do runs f on the namespace's thread and returns its error.
func (n *NS) Do(f func() error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return errClosed
	}
	var err error
	ran := make(chan struct{})
	n.calls <- func() {
		defer close(ran)
		err = f()
	}
	<-ran
	return err
}

// Start starts cmd in the namespace. The kernel kills it when the namespace is closed or this
// process dies. A terminal's Ctrl-C does not reach it.
func (n *NS) Start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	cmd.SysProcAttr.Setpgid = true
	return n.Do(cmd.Start)
}

// TID returns the thread's id for `ip link set … netns` and /proc/TID/ns/net.
func (n *NS) TID() (tid int, err error) {
	err = n.Do(func() error { tid = unix.Gettid(); return nil })
	return tid, err
}

// Close ends the thread, its processes and the namespace. A second Close does nothing.
func (n *NS) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		n.closed = true
		close(n.calls)
		<-n.done
	}
	return nil
}

// File returns the file of the network namespace of process pid.
func File(pid int) string { return "/proc/" + strconv.Itoa(pid) + "/ns/net" }

// ID returns the identity of the network namespace of process pid as /proc shows it, such as
// "net:[4026531840]". Only root may read that of other users' processes.
func ID(pid int) (string, error) {
	return os.Readlink(File(pid))
}

// Visit runs f in the network namespace of process pid, on a thread of its own. It needs
// CAP_SYS_ADMIN.
func Visit(pid int, f func() error) error {
	ns, err := os.Open(File(pid))
	if err != nil {
		return fmt.Errorf("enter network namespace: %w", err)
	}
	defer ns.Close()
	return VisitFile(int(ns.Fd()), f)
}

// VisitFile is like Visit for the namespace of an open file.
func VisitFile(fd int, f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("enter network namespace: %w", err)
			return
		}
		done <- f()
	}()
	return <-done
}
