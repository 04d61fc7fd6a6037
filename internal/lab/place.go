package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/path"
)

// self is this program, also after its file was replaced.
const self = "/proc/self/exe"

// place starts processes in a network namespace.
type place struct {
	name    string
	ns      *space
	machine *machine // that it is on
	clone   uintptr  // further namespaces
	hosts   string   // lines of /etc/hosts besides the machine's; needs a mount namespace
}

var _ path.Place = (*place)(nil)

func (p *place) Name() string { return p.name }

// Start starts toll itself in the place.
func (p *place) Start(c path.Command) (*path.Process, error) {
	args := c.Args
	if p.hosts != "" {
		args = append([]string{hostsArg, p.hosts}, args...)
	}
	cmd, stderr := marked(self, args...)
	cmd.Env = append(cmd.Env, c.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: p.clone}
	if c.Apart {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWPID | unix.CLONE_NEWNS
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start in %s: %w", p.name, err)
	}
	// Not StdoutPipe: Wait would close it under the reader.
	out, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start in %s: %w", p.name, err)
	}
	cmd.Stdout = w
	err = p.ns.Start(cmd)
	w.Close()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start in %s: %w", p.name, err), in.Close(), out.Close())
	}
	return &path.Process{
		PID: cmd.Process.Pid, In: in, Out: out,
		Wait: func() error { return ended(cmd.Wait(), stderr) },
		Kill: func() error { return kill(cmd) },
	}, nil
}

// marked is a program to start with the lab's mark, and the end of what it says
// on its standard error. This program itself goes by its own name.
func marked(file string, args ...string) (*exec.Cmd, *tail) {
	cmd := exec.Command(file, args...)
	if file == self {
		cmd.Args[0] = os.Args[0]
	}
	cmd.Env = append(os.Environ(), mark())
	stderr := &tail{}
	cmd.Stderr = stderr
	return cmd, stderr
}

func ended(err error, stderr *tail) error {
	if err == nil {
		return nil
	}
	if s := stderr.String(); s != "" {
		return fmt.Errorf("%w: %s", err, s)
	}
	return err
}

func kill(cmd *exec.Cmd) error {
	if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// tail keeps the last bytes that were written to it.
type tail struct{ b bytes.Buffer }

var _ io.Writer = (*tail)(nil)

const tailBytes = 2 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.b.Write(p)
	if over := t.b.Len() - tailBytes; over > 0 {
		t.b.Next(over)
	}
	return len(p), nil
}

// String is the kept text on one line.
func (t *tail) String() string { return strings.Join(strings.Fields(t.b.String()), " ") }
