// Package local is shared by backends whose places are network namespaces of this machine. It
// starts this program in a namespace, reads the counters of devices and docker-proxy, and sweeps
// ended connections.
package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// Space is a network namespace.
type Space interface {
	Do(f func() error) error
	// Start starts cmd in the namespace. The process is killed when the namespace is closed.
	Start(cmd *exec.Cmd) error
}

// Self is this program's file, even if another file has replaced it.
const Self = "/proc/self/exe"

// StartSelf starts this program with other arguments in the namespace.
func StartSelf(ns Space, name string, c path.Command) (*path.Process, error) {
	cmd, said := Again(c)
	return Start(ns, name, cmd, said)
}

// ThisMachine is the place outside containers.
const ThisMachine = "this machine"

// Place starts child processes in a network namespace.
type Place struct {
	Space Space
	Named string
}

var _ path.Place = Place{}

func (p Place) Name() string { return p.Named }

func (p Place) Start(c path.Command) (*path.Process, error) {
	return StartSelf(p.Space, p.Named, c)
}

// Again returns a command that runs this program with other arguments, for Start, and a Tail of its
// standard error.
func Again(c path.Command) (*exec.Cmd, *Tail) {
	cmd := exec.Command(Self, c.Args...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), c.Env...)
	said := Keep(cmd)
	if c.Apart {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
	}
	return cmd, said
}

// Start starts cmd in the namespace, with its input and output on pipes. name is the place's name,
// for errors. said is the Tail of the command's standard error.
func Start(ns Space, name string, cmd *exec.Cmd, said *Tail) (*path.Process, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start in %s: %w", name, err)
	}
	// cmd.StdoutPipe is not used, because Wait would close it while it is read.
	out, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start in %s: %w", name, err)
	}
	cmd.Stdout = w
	err = ns.Start(cmd)
	w.Close()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start in %s: %w", name, err), out.Close()) // Start closed in
	}
	return &path.Process{
		PID: cmd.Process.Pid, In: in, Out: out,
		Wait: func() error { return said.Explain(cmd.Wait()) },
		Kill: func() error { return Kill(cmd) },
	}, nil
}

// Kill kills a process. It returns nil if the process has already ended.
func Kill(cmd *exec.Cmd) error {
	if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Tail keeps the last TailBytes bytes written to it.
type Tail struct{ b bytes.Buffer }

var _ io.Writer = (*Tail)(nil)

// TailBytes is the capacity of a Tail.
const TailBytes = 2 << 10

// Keep returns a Tail of the standard error of a command that is not started yet. If children keep
// the standard error open, the command's Wait waits for at most a second.
func Keep(cmd *exec.Cmd) *Tail {
	t := &Tail{}
	cmd.Stderr, cmd.WaitDelay = t, time.Second
	return t
}

func (t *Tail) Write(p []byte) (int, error) {
	t.b.Write(p)
	if over := t.b.Len() - TailBytes; over > 0 {
		t.b.Next(over)
	}
	return len(p), nil
}

// String returns the kept text on one line.
func (t *Tail) String() string { return printable.Words(t.b.String()) }

// Err returns the kept text, if any, as an error.
func (t *Tail) Err() error {
	if s := t.String(); s != "" {
		return errors.New(s)
	}
	return nil
}

// Explain appends the kept text, if any, to an error.
func (t *Tail) Explain(err error) error {
	if s := t.String(); err != nil && s != "" {
		return fmt.Errorf("%w: %s", err, s)
	}
	return err
}

// FreePort returns a port that is free now in the network namespace.
func FreePort(ns *netns.NS, at netip.Addr, udp bool) (port uint16, err error) {
	addr := netip.AddrPortFrom(at, 0).String()
	err = ns.Do(func() error {
		if udp {
			c, err := net.ListenPacket("udp", addr)
			if err != nil {
				return err
			}
			port = uint16(c.LocalAddr().(*net.UDPAddr).Port)
			return c.Close()
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return err
		}
		port = uint16(l.Addr().(*net.TCPAddr).Port)
		return l.Close()
	})
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	return port, nil
}

// Rerun runs cmd, which is this program in other namespaces, with this process's standard files,
// and returns its exit code. cmd dies with this process. When ctx ends, cmd receives the signal
// that stopped returns for the cause of ctx. Rerun returns an error if cmd does not start.
func Rerun(ctx context.Context, cmd *exec.Cmd, stopped func(cause error) os.Signal) (code int,
	err error) {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL // of main's thread, which lives as long as the process
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	forget := context.AfterFunc(ctx, func() {
		_ = cmd.Process.Signal(stopped(context.Cause(ctx)))
	})
	defer forget()
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case !errors.As(err, &exit):
		return 0, err
	}
	if st, ok := exit.Sys().(syscall.WaitStatus); ok && st.Signaled() {
		const signaled = 128
		return signaled + int(st.Signal()), nil
	}
	return exit.ExitCode(), nil
}
