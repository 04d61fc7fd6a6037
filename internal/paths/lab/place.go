package lab

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
)

const self = local.Self

type place struct {
	name    string
	ns      *space
	machine *hostMachine
	clone   uintptr
	hosts   string // lines to add to /etc/hosts, in a mount namespace
}

var _ path.Place = (*place)(nil)

func (p *place) Name() string { return p.name }

// Start starts this program in the place.
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
	return local.Start(p.ns, p.name, cmd, stderr)
}

func marked(file string, args ...string) (*exec.Cmd, *local.Tail) {
	cmd := exec.Command(file, args...)
	if file == self {
		cmd.Args[0] = os.Args[0]
	}
	cmd.Env = append(os.Environ(), mark())
	return cmd, local.Keep(cmd)
}
