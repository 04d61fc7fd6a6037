package vantage

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/text/suggest"
)

// Docker Compose's labels
const (
	composeService = "com.docker.compose.service"
	composeNetwork = "com.docker.compose.network"
)

type called struct{ name, compose string }

func (o *opener) containerHint(ctx context.Context, name string) string {
	var known []called
	var lists []string
	for _, e := range o.engines {
		lists = append(lists, e.Command()+" ps")
		all, err := dockerapi.Containers(ctx, e.API, client.ContainerListOptions{})
		if err != nil {
			continue
		}
		for _, c := range all {
			if len(c.Names) > 0 {
				known = append(known, called{strings.TrimPrefix(c.Names[0], "/"),
					c.Labels[composeService]})
			}
		}
	}
	return hint(mode.InContainer, name, known, "see "+strings.Join(lists, " and "))
}

func (o *opener) networkHint(ctx context.Context, name string) string {
	var known []called
	var lists []string
	for _, e := range o.engines {
		lists = append(lists, e.Command()+" network ls")
		all, err := e.API.NetworkList(ctx, client.NetworkListOptions{})
		if err != nil {
			continue
		}
		for _, n := range all.Items {
			known = append(known, called{n.Name, n.Labels[composeNetwork]})
		}
	}
	return hint(mode.OnNetwork, name, known, "see "+strings.Join(lists, " and "))
}

// hint suggests similar names, or returns list if there are none.
func hint(kind, name string, known []called, list string) string {
	found := meant(name, known)
	if len(found) == 0 {
		return list
	}
	return "did you mean " + kind + strings.Join(found, " or "+kind) + "?"
}

const mostMeant = 3

// meant returns the names of those that have the given name in a Compose file or, if there are
// none, a similar name.
func meant(name string, known []called) (out []string) {
	var names []string
	for _, c := range known {
		if names = append(names, c.name); c.compose == name {
			out = append(out, c.name)
		}
	}
	if slices.Sort(out); len(out) > 0 {
		return out[:min(len(out), mostMeant)]
	}
	return suggest.Words(name, names)
}

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
