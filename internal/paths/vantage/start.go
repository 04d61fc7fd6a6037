package vantage

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
)

var _ path.Place = (*Vantage)(nil)

// Start starts toll itself with other arguments in the place's network. Its files, users and CPU
// limit are those of this machine. On this machine it needs no root: a process with namespaces of
// its own then also gets a user namespace, in which its user is the same.
func (v *Vantage) Start(c path.Command) (*path.Process, error) {
	ns, err := v.join()
	if err != nil {
		return nil, err
	}
	cmd, said := local.Again(c)
	alone := c.Apart && v.pid == 0 && os.Geteuid() != 0
	if alone {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{
			{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{
			{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		// The process must mount, but a user other than root would lose that capability.
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
	}
	p, err := local.Start(ns, v.name, cmd, said)
	if err != nil {
		if alone {
			err = machine.Machine{}.ExplainUserNamespace(err)
		}
		return nil, errors.Join(err, ns.Close())
	}
	wait := p.Wait
	// The process dies with the thread that started it, so the namespace must stay open.
	p.Wait = func() error { return errors.Join(wait(), ns.Close()) }
	return p, nil
}

func (v *Vantage) join() (*netns.NS, error) {
	if v.pid == 0 {
		return netns.Here()
	}
	if err := v.lives(); err != nil {
		return nil, err
	}
	return netns.Join(netns.File(v.pid))
}
