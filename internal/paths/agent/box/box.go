// Package box makes containers for an agent on its machine's Docker Engine. In each container runs
// another agent, which is connected by the container's standard input and output.
//
// The hub does not make the containers itself, because it may be killed at any time. Everything has
// the mark of the agent's process, is first written to a journal, and is removed when the hub is
// gone. If the agent is killed, its containers end because their standard inputs are closed, and
// toll clean removes the rest. The same holds for routes.
package box

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/undo"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
)

// Engine is this machine's Docker Engine, as the docker command finds it. The zero value connects
// on its first use.
type Engine struct {
	// directory of the journal; "": the user's state directory
	StateDir string

	mu     sync.Mutex // also serializes making
	daemon *dockerapi.Daemon
	image  string
	made   int
	boxes  map[uint64]*undo.Stack
	absent []string // directories that were created for the journals
	closed bool
	routes *dockerapi.Journal // nil: no route was made
	laid   map[link.Laid]bool

	sharing sync.Mutex          // guards the fields that follow
	cards   map[agent.LAN]*card // keyed without Addr
}

var _ agent.Engine = (*Engine)(nil)

// Ready connects to the daemon, loads toll's image and returns the engine's version.
func (e *Engine) Ready(ctx context.Context) (version string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.ready(ctx); err != nil {
		return "", err
	}
	return e.daemon.Version(), nil
}

var errClosed = errors.New("the agent is exiting")

func (e *Engine) ready(ctx context.Context) error {
	if e.closed {
		return errClosed
	}
	if e.daemon == nil {
		if err := dockerapi.CheckProgram(); err != nil {
			return err
		}
		d, err := dockerapi.Connect(ctx, e.StateDir)
		if errors.Is(err, fs.ErrPermission) {
			return &machine.UnsupportedError{
				Missing: "the user there may not use the Docker daemon's socket",
				Remedy:  "--peer-sudo; or ssh as root, or as a user of group docker", Err: err}
		}
		if err != nil {
			return err
		}
		if dockerapi.Rootless(d.Info) {
			return errors.Join(&machine.UnsupportedError{
				Missing: "the Docker there is rootless: its networks are not in the machine's network namespace",
				Remedy:  "a Docker Engine there that is not rootless, or --from remote"}, d.Close())
		}
		e.daemon, e.boxes = d, map[uint64]*undo.Stack{}
		e.note(d.Journal)
		e.cards = map[agent.LAN]*card{}
	}
	if e.image == "" {
		tag, err := e.daemon.MakeImage(ctx, "")
		if err != nil {
			return err
		}
		e.image = tag
	}
	return nil
}

// Make makes a box.
func (e *Engine) Make(ctx context.Context, b agent.Box) (_ io.ReadWriteCloser, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.ready(ctx); err != nil {
		return nil, err
	}
	if e.boxes[b.Number] != nil {
		return nil, fmt.Errorf("box %d exists already", b.Number)
	}
	end := &undo.Stack{}
	defer func() {
		if err != nil {
			err = errors.Join(err, end.Undo())
			return
		}
		e.boxes[b.Number] = end
	}()
	on := b.Network
	switch {
	case on != "":
	case b.LAN != nil:
		on, err = e.onCard(end, *b.LAN)
	default:
		on, err = e.network(end, nil)
	}
	if err != nil {
		return nil, err
	}
	return e.start(end, on, b)
}

func (e *Engine) name(what string) string {
	e.made++
	return "toll-" + e.daemon.ID + "-" + what + strconv.Itoa(e.made)
}

func (e *Engine) network(end *undo.Stack, l *agent.LAN) (name string, err error) {
	o := client.NetworkCreateOptions{Driver: "bridge", Labels: e.daemon.Labels()}
	if l != nil {
		subnet, err := netip.ParsePrefix(l.Subnet)
		if err != nil {
			return "", err
		}
		o.Driver, o.Options = l.Driver, map[string]string{
			"parent": l.Parent, l.Driver + "_mode": l.Kind}
		o.IPAM = &network.IPAM{Config: []network.IPAMConfig{{Subnet: subnet}}}
	}
	d := e.daemon
	name = e.name("net")
	if err := d.Journal.Add(dockerapi.Network, name); err != nil {
		return "", err
	}
	end.Push("remove network "+name, func() error { return d.RemoveNetwork(name) })
	ctx, cancel := dockerapi.Uninterrupted()
	defer cancel()
	_, err = d.API.NetworkCreate(ctx, name, o)
	switch {
	case dockerapi.PoolsUsed(err):
		return "", &machine.UnsupportedError{
			Missing: "the address pools of the Docker there are used up by its networks",
			Remedy:  "docker network prune there removes unused ones; or --from remote", Err: err}
	case err != nil:
		return "", fmt.Errorf("make a %s network: %w", o.Driver, err)
	}
	return name, nil
}

// card is a network card's network, which boxes share until the last one ends: Docker allows one
// network for each card.
type card struct {
	name  string
	boxes int
	end   undo.Stack
}

func (e *Engine) onCard(end *undo.Stack, l agent.LAN) (name string, err error) {
	e.sharing.Lock()
	defer e.sharing.Unlock()
	l.Addr = ""
	c := e.cards[l]
	if c == nil {
		c = &card{}
		if c.name, err = e.network(&c.end, &l); err != nil {
			return "", errors.Join(err, c.end.Undo())
		}
		e.cards[l] = c
	}
	c.boxes++
	end.Push("leave network "+c.name, func() error {
		e.sharing.Lock()
		defer e.sharing.Unlock()
		if c.boxes--; c.boxes > 0 {
			return nil
		}
		delete(e.cards, l)
		return c.end.Undo()
	})
	return c.name, nil
}

// start starts a container, with CAP_NET_ADMIN for reading its own settings.
func (e *Engine) start(end *undo.Stack, on string, b agent.Box) (io.ReadWriteCloser, error) {
	d, name := e.daemon, e.name("client")
	c := &container.Config{Image: e.image, Cmd: []string{
		dockerapi.InImage, agent.Arg, "--stdio", b.ID}, Labels: d.Labels(),
		OpenStdin: true, StdinOnce: true, AttachStdin: true, AttachStdout: true, AttachStderr: true}
	h := &container.HostConfig{NetworkMode: container.NetworkMode(on), AutoRemove: true,
		UsernsMode: d.HostUsers(on), LogConfig: container.LogConfig{Type: "none"},
		CapAdd: []string{"CAP_NET_ADMIN"}, ReadonlyRootfs: true,
		SecurityOpt: []string{"no-new-privileges"}}
	o := client.ContainerCreateOptions{Name: name, Config: c, HostConfig: h}
	if b.LAN != nil {
		addr, err := netip.ParseAddr(b.LAN.Addr)
		if err != nil {
			return nil, err
		}
		o.NetworkingConfig = &network.NetworkingConfig{
			EndpointsConfig: map[string]*network.EndpointSettings{
				on: {IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: addr}}}}
	}
	if err := d.Journal.Add(dockerapi.Container, name); err != nil {
		return nil, err
	}
	end.Push("remove container "+name, func() error { return d.RemoveContainer(name) })
	ctx, cancel := dockerapi.Uninterrupted()
	defer cancel()
	made, err := d.API.ContainerCreate(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("make %s: %w", b.Name, err)
	}
	held, err := d.API.ContainerAttach(ctx, made.ID,
		client.ContainerAttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		return nil, fmt.Errorf("attach to %s: %w", b.Name, err)
	}
	end.Push("let go of container "+name, func() error { held.Close(); return nil })
	if _, err := d.API.ContainerStart(ctx, made.ID, client.ContainerStartOptions{}); err != nil {
		return nil, fmt.Errorf("start %s: %w", b.Name, err)
	}
	return newAttached(held.HijackedResponse), nil
}

type attached struct {
	io.Reader
	held client.HijackedResponse
}

func newAttached(held client.HijackedResponse) *attached {
	out, w := io.Pipe()
	go func() {
		said := &local.Tail{}
		_, err := stdcopy.StdCopy(w, said, held.Reader)
		if err == nil {
			err = io.EOF
		}
		_ = w.CloseWithError(said.Explain(err))
	}()
	return &attached{out, held}
}

func (a *attached) Write(b []byte) (int, error) { return a.held.Conn.Write(b) }
func (a *attached) Close() error                { a.held.Close(); return nil }

// Remove removes a box.
func (e *Engine) Remove(number uint64) error {
	e.mu.Lock()
	end := e.boxes[number]
	delete(e.boxes, number)
	e.mu.Unlock()
	if end == nil {
		return nil
	}
	return end.Undo()
}

// Close removes everything that was made. The error lists what could not be removed.
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	errs := []error{e.liftAll()}
	if d := e.daemon; d != nil {
		e.daemon = nil
		for _, end := range e.boxes {
			errs = append(errs, end.Undo())
		}
		e.boxes = nil
		errs = append(errs, d.RemoveImages(), d.Journal.Left(), d.Close())
	}
	for _, dir := range e.absent {
		if os.Remove(dir) != nil { // the directory has other files
			break
		}
	}
	e.absent = nil
	return errors.Join(errs...)
}

// absent returns the ancestors of dir that do not exist, innermost first.
func absent(dir string) (out []string) {
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			return out
		}
		out = append(out, dir)
	}
}
