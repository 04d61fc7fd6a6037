package vantage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/undo"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// Open opens places that New returned, all or none. dir is the directory of the journal; "" is the
// user's state directory. The caller calls end, which removes what was made, even after an
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
	dir    string
	daemon *dockerapi.Daemon // nil until a place needs it
	image  string            // "" until a place needs it
	number int               // of containers
	made   undo.Stack
}

func (o *opener) open(ctx context.Context, v *Vantage) error {
	if v.name == Here || v.Distant() {
		return nil
	}
	if o.daemon == nil {
		d, err := dockerapi.Connect(ctx, o.dir)
		if err != nil {
			return v.noDaemon(err)
		}
		o.daemon = d
		o.made.Push("leave Docker", func() error {
			return errors.Join(d.Journal.Left(), d.Close())
		})
	}
	o.made.Push("leave "+v.name, v.leave)
	if name, ok := strings.CutPrefix(v.name, mode.InContainer); ok {
		return v.enter(ctx, o.daemon, name)
	}
	return o.build(ctx, v, strings.TrimPrefix(v.name, mode.OnNetwork))
}

// noDaemon names this machine as the alternative, not another backend, as for modes.
func (v *Vantage) noDaemon(err error) error {
	out := &Error{msg: v.name, err: err}
	var u *path.UnsupportedError
	if errors.As(err, &u) {
		remedy, _, _ := strings.Cut(u.Remedy, "; --on lab")
		out.hint = remedy + "; --from host needs none"
	}
	return out
}

func (v *Vantage) enter(ctx context.Context, d *dockerapi.Daemon, name string) error {
	got, err := d.API.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
	switch {
	case errdefs.IsNotFound(err):
		return &Error{msg: "there is no container " + name, hint: containerHint(ctx, d, name)}
	case err != nil:
		return fmt.Errorf("read container %s: %w", name, err)
	case got.Container.State == nil || !got.Container.State.Running:
		return &Error{msg: "container " + name + " does not run", hint: "docker start " + name}
	}
	return v.at(got.Container.State.Pid)
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
			hint: "that takes root, on the machine that the container runs on: sudo toll …",
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

// build makes a container that ends with this process, the holder of its input.
func (o *opener) build(ctx context.Context, v *Vantage, network string) error {
	d := o.daemon
	_, err := d.API.NetworkInspect(ctx, network, client.NetworkInspectOptions{})
	switch {
	case errdefs.IsNotFound(err):
		return &Error{msg: "there is no network " + network, hint: networkHint(ctx, d, network)}
	case err != nil:
		return fmt.Errorf("read network %s: %w", network, err)
	}
	if o.image == "" {
		if err := dockerapi.CheckProgram(); err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
		o.made.Push("remove images", d.RemoveImages)
		if o.image, err = d.MakeImage(ctx, "", false); err != nil {
			return err
		}
	}
	o.number++
	name := "bridgetoll-" + d.ID + "-from" + strconv.Itoa(o.number)
	if err := d.Journal.Add(dockerapi.Container, name); err != nil {
		return err
	}
	o.made.Push("remove container "+name, func() error { return d.RemoveContainer(name) })
	return o.start(v, name, network)
}

func (o *opener) start(v *Vantage, name, network string) error {
	d := o.daemon
	ctx, cancel := dockerapi.Uninterrupted()
	defer cancel()
	c, err := d.API.ContainerCreate(ctx, client.ContainerCreateOptions{Name: name,
		Config: &container.Config{Image: o.image,
			Cmd: []string{dockerapi.InImage, dockerapi.PauseArg, name}, Labels: d.Labels(),
			OpenStdin: true, StdinOnce: true, AttachStdin: true},
		HostConfig: &container.HostConfig{NetworkMode: container.NetworkMode(network),
			AutoRemove: true, LogConfig: container.LogConfig{Type: "none"}}})
	if err != nil {
		return fmt.Errorf("make a container on network %s: %w", network, err)
	}
	held, err := d.API.ContainerAttach(ctx, c.ID,
		client.ContainerAttachOptions{Stream: true, Stdin: true})
	if err != nil {
		return fmt.Errorf("attach to container %s: %w", name, err)
	}
	o.made.Push("let go of container "+name, func() error { held.Close(); return nil })
	if _, err := d.API.ContainerStart(ctx, c.ID, client.ContainerStartOptions{}); err != nil {
		return fmt.Errorf("start a container on network %s: %w", network, err)
	}
	return v.enter(ctx, d, name)
}
