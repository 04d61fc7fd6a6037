// Package netns holds network namespaces without names: a namespace is an operating system thread.
// When the thread ends, or the process is killed, the kernel removes the namespace and everything
// in it, so there is nothing to clean up.
//
// A child process gets its parent-death signal from the thread that started it. File descriptors
// and setns would tie that signal to a thread that moves on to other namespaces.
//
// A goroutine started inside Do runs on another thread and is not in the namespace. Child processes
// started inside Do are.
package netns

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// The process's first thread remains main's, because /proc/self shows its namespace.
func init() { runtime.LockOSThread() }

var errClosed = errors.New("network namespace is closed")

// NS is a network namespace. Its methods may be called from any goroutine; calls run one after
// another.
type NS struct {
	calls chan func()
	done  chan struct{}

	mu     sync.Mutex // guards following
	closed bool
}

// New makes a network namespace with only a loopback device, which is down. The caller closes it.
// Without CAP_SYS_ADMIN in the user namespace it returns an error that wraps EPERM.
func New() (*NS, error) {
	n, err := start(func() error { return unix.Unshare(unix.CLONE_NEWNET) })
	if err != nil {
		return nil, fmt.Errorf("make network namespace: %w", err)
	}
	return n, nil
}

// Join enters the network namespace of a file such as /proc/PID/ns/net, which may outlive the NS.
// The caller closes the NS. Without CAP_SYS_ADMIN over the namespace it returns an error that wraps
// EPERM.
func Join(file string) (*NS, error) {
	n, err := start(func() error {
		fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return errors.Join(unix.Setns(fd, unix.CLONE_NEWNET), unix.Close(fd))
	})
	if err != nil {
		return nil, fmt.Errorf("enter network namespace %s: %w", file, err)
	}
	return n, nil
}

// Here returns the network namespace of the process, without privilege. The caller closes it.
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

// live never unlocks its thread, which therefore ends with the goroutine and never runs another.
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

// Start starts cmd in the namespace. The kernel kills the process when the namespace is closed or
// this process dies. It has a process group of its own, so a terminal's Ctrl-C reaches only toll.
func (n *NS) Start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	cmd.SysProcAttr.Setpgid = true
	return n.Do(cmd.Start)
}

// TID returns the thread's id, by which `ip link set … netns` and /proc/TID/ns/net name the
// namespace.
func (n *NS) TID() (tid int, err error) {
	err = n.Do(func() error { tid = unix.Gettid(); return nil })
	return tid, err
}

// Close ends the thread and kills processes started in the namespace, which the kernel removes
// after the last of them. A second Close does nothing.
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
