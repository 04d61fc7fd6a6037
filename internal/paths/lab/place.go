package lab

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
)

const self = local.Self

type place struct {
	name  string
	ns    *space
	clone uintptr
	hosts string // lines to add to /etc/hosts, in a mount namespace
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

// runDir is a tmpfs in a private space. Its files vanish with the space.
const runDir = "/run"

// private returns a space with machine A's network namespace and mounts of its own, for programs
// that leave files. Only the space's thread sees the mounts.
func (s *site) private(name string) (*space, error) {
	tid, err := s.a.ns.TID()
	if err != nil {
		return nil, err
	}
	ns, err := netns.Join(fmt.Sprintf("/proc/self/task/%d/ns/net", tid))
	if err != nil {
		return nil, err
	}
	s.path.Undo.Push("close "+name, ns.Close)
	out := &space{NS: ns, before: s.lab.test.before}
	return out, out.Do(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("make a mount namespace: %w", err)
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return fmt.Errorf("make mounts private: %w", err)
		}
		const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
		if err := unix.Mount("toll", runDir, "tmpfs", flags, ""); err != nil {
			return fmt.Errorf("mount a tmpfs: %w", err)
		}
		return nil
	})
}

// share mounts the container's network namespace at file in the calling thread's mount namespace.
func (c *container) share(file string) error {
	tid, err := c.ns.TID()
	if err != nil {
		return err
	}
	fd, err := unix.Open(file, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("make %s: %w", file, err)
	}
	if err := unix.Close(fd); err != nil {
		return err
	}
	err = unix.Mount(fmt.Sprintf("/proc/self/task/%d/ns/net", tid), file, "", unix.MS_BIND, "")
	if err != nil {
		return fmt.Errorf("mount a network namespace at %s: %w", file, err)
	}
	return nil
}
