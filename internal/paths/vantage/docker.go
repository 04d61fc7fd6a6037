package vantage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/undo"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/rootless"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// Open opens all given places or, after an error, none. dir is the directory of the journal; "" is
// the user's state directory. The caller calls end, which removes what Open made, even after an
// interrupt.
func Open(ctx context.Context, dir string, all []*Vantage) (end func() error, err error) {
	o := &opener{dir: dir}
	for _, v := range all {
		if err := o.open(ctx, v); err != nil {
			return nil, errors.Join(err, o.made.Undo())
		}
	}
	return o.made.Undo, nil
}

type opener struct {
	dir      string
	engines  []*engine // nil until a place needs them
	unusable error     // why other engines cannot be used
	number   int       // of containers
	made     undo.Stack
}

type engine struct {
	*dockerapi.Daemon
	image string // "" until a place needs it
}

func (o *opener) open(ctx context.Context, v *Vantage) error {
	if !v.Contained() {
		return nil
	}
	if o.engines == nil {
		if err := o.connect(ctx); err != nil {
			return v.noDaemon(err)
		}
	}
	o.made.Push("leave "+v.name, v.leave)
	if name, ok := strings.CutPrefix(v.name, mode.InContainer); ok {
		return o.enter(ctx, v, name)
	}
	return o.build(ctx, v, strings.TrimPrefix(v.name, mode.OnNetwork))
}

func (o *opener) connect(ctx context.Context) (err error) {
	all, err := dockerapi.Engines(ctx, o.dir)
	for _, d := range all {
		o.engines = append(o.engines, &engine{Daemon: d})
		o.made.Push("leave "+d.Command(), func() error {
			return errors.Join(d.Journal.Left(), d.Close())
		})
	}
	if len(all) == 0 {
		return err
	}
	o.unusable = err
	return nil
}

// otherBackend is the part of a remedy that names a backend, which only comparisons of modes have.
var otherBackend = regexp.MustCompile(`[;,]? ?(?:or )?--on \w+(?: needs none)?`)

// noDaemon changes the hint of an error about a missing daemon: the alternative is to dial from
// this machine, not another backend.
func (v *Vantage) noDaemon(err error) error {
	out := &Error{msg: v.name, err: err}
	var u *machine.UnsupportedError
	if errors.As(err, &u) {
		out.hint = "--from host needs none"
		if remedy := otherBackend.ReplaceAllString(u.Remedy, ""); remedy != "" {
			out.hint = remedy + "; " + out.hint
		}
	}
	return out
}

// enter opens a running container of that name, of the first engine that has one.
func (o *opener) enter(ctx context.Context, v *Vantage, name string) error {
	for _, e := range o.engines {
		got, err := e.API.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
		switch {
		case errdefs.IsNotFound(err):
			continue
		case err != nil:
			return fmt.Errorf("read container %s: %w", name, err)
		case got.Container.State == nil || !got.Container.State.Running:
			return &Error{msg: "container " + name + " is not running",
				hint: e.Command() + " start " + name}
		}
		return v.at(got.Container.State.Pid)
	}
	return &Error{msg: "there is no container " + name, hint: o.containerHint(ctx, name),
		err: o.unusable}
}

func (v *Vantage) at(pid int) (err error) {
	v.pid, v.files = pid, "/proc/"+strconv.Itoa(pid)+"/root"
	if v.held, err = os.Open(netns.File(pid)); err == nil {
		v.space, err = v.held.Stat()
	}
	if err == nil {
		err = netns.Visit(pid, func() error { return nil })
	}
	if err != nil {
		return &Error{msg: "the network of " + v.name + " cannot be entered",
			hint: "run toll as root on the container's machine: sudo toll …",
			err:  err}
	}
	return nil
}

func (v *Vantage) leave() error {
	if v.held == nil {
		return nil
	}
	return v.held.Close()
}

// build makes a container, on the first engine that has the network. The container ends with this
// process, which holds its standard input.
func (o *opener) build(ctx context.Context, v *Vantage, network string) error {
	for _, e := range o.engines {
		_, err := e.API.NetworkInspect(ctx, network, client.NetworkInspectOptions{})
		switch {
		case errdefs.IsNotFound(err) && e.Podman != nil && network == rootless.Pasta: // a user's default
		case errdefs.IsNotFound(err):
			continue
		case err != nil:
			return fmt.Errorf("read network %s: %w", network, err)
		}
		return o.buildOn(ctx, e, v, network)
	}
	return &Error{msg: "there is no network " + network, hint: o.networkHint(ctx, network),
		err: o.unusable}
}

func (o *opener) buildOn(ctx context.Context, e *engine, v *Vantage, network string) (err error) {
	if e.image == "" {
		if err := dockerapi.CheckProgram(); err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
		o.made.Push("remove images", e.RemoveImages)
		if e.image, err = e.MakeImage(ctx, ""); err != nil {
			return err
		}
	}
	o.number++
	name := "bridgetoll-" + e.ID + "-from" + strconv.Itoa(o.number)
	if err := e.Journal.Add(dockerapi.Container, name); err != nil {
		return err
	}
	o.made.Push("remove container "+name, func() error { return e.RemoveContainer(name) })
	if err := o.start(e, name, network); err != nil {
		return err
	}
	return o.enter(ctx, v, name)
}

func (o *opener) start(e *engine, name, network string) error {
	ctx, cancel := dockerapi.Uninterrupted()
	defer cancel()
	c, err := e.API.ContainerCreate(ctx, client.ContainerCreateOptions{Name: name,
		Config: &container.Config{Image: e.image,
			Cmd: []string{dockerapi.InImage, dockerapi.PauseArg, name}, Labels: e.Labels(),
			OpenStdin: true, StdinOnce: true, AttachStdin: true},
		HostConfig: &container.HostConfig{NetworkMode: container.NetworkMode(network),
			UsernsMode: e.HostUsers(network), AutoRemove: true, LogConfig: container.LogConfig{Type: "none"}}})
	if err != nil {
		return fmt.Errorf("make a container on network %s: %w", network, err)
	}
	held, err := e.API.ContainerAttach(ctx, c.ID,
		client.ContainerAttachOptions{Stream: true, Stdin: true})
	if err != nil {
		return fmt.Errorf("attach to container %s: %w", name, err)
	}
	o.made.Push("let go of container "+name, func() error { held.Close(); return nil })
	if _, err := e.API.ContainerStart(ctx, c.ID, client.ContainerStartOptions{}); err != nil {
		return fmt.Errorf("start a container on network %s: %w", network, err)
	}
	return nil
}
