// Package peer builds paths to another machine that the user reaches by ssh. The system's ssh
// program starts toll there as an agent (see package agent). The agent's connections use ssh's
// standard input and output: no port is opened, and ssh's configuration, keys and known hosts
// decide who may log in.
//
// If the peer lacks this version of toll, it is copied, compressed, to the user's cache there,
// which is private to the user, and the next run finds it by its hash. Where there is no such
// cache, the copy goes to a directory that the agent removes when it starts. The agent exits when
// its standard input ends.
//
// The server is on this machine, as a process or in a container of its Docker Engine; the client is
// on the peer, also as a process or in a container. With the target outside, the server is a
// process on the peer and the client is on this machine. Package docker builds the parts of paths
// within this machine.
package peer

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/undo"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/paths/docker"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// Name is the backend's name.
const Name = sample.Peer

// Peer is the backend. Host and Version must be set.
type Peer struct {
	Host Host
	// Address is this machine's address that the peer dials; invalid: the source of the ssh
	// connection.
	Address netip.Addr
	// Binary is the file of a toll for a machine of another architecture, which is copied there;
	// "": none.
	Binary string
	// Version is toll's version.
	Version string
	// Sudo means that the agent runs as root, by sudo.
	Sudo bool
	// SSH is the program to run, with its first arguments; empty: ssh.
	SSH []string

	kept cluster.Once[*run]
}

var _ path.Builder = (*Peer)(nil)

// Name returns "peer".
func (p *Peer) Name() string { return Name }

// recipes build the modes that need only the two machines.
var recipes = map[mode.Name]func(*site) error{
	mode.Native: (*site).native,
}

// Modes returns the names of the modes without a Docker Engine.
func Modes() []string { return recipe.Names(recipes) }

// Check returns why the path cannot be built, or nil. It starts the agent, which runs until Close,
// and checks the routes between the machines.
func (p *Peer) Check(ctx context.Context, spec path.Spec) error {
	if err := refuse(spec); err != nil {
		return err
	}
	if contained(spec) {
		return p.checkContained(ctx, spec)
	}
	return cluster.Check(ctx, p, spec)
}

func refuse(s path.Spec) error {
	if s.To.Outside() && recipes[s.Mode] == nil && !slices.Contains(docker.Outward(),
		string(s.Mode)) {
		return &machine.UnsupportedError{Missing: "toll cannot measure from containers of " +
			string(s.Mode) + " to a process on the peer",
			Remedy: printable.List(docker.Outward()) + "; or --on lab"}
	}
	if recipes[s.Mode] == nil && !contained(s) {
		return &machine.UnsupportedError{
			Missing: "a client on a peer reaches native and, of this machine's Docker Engine, " +
				printable.List(docker.Remotely()),
			Remedy: "--on swarm, which has containers on both machines; or --on lab"}
	}
	if !docker.Apart(s) {
		return nil
	}
	if contained(s) {
		s.Tune = "" // the engine checks tunes itself
	}
	return cluster.Refuse(s)
}

// Build builds the path.
func (p *Peer) Build(ctx context.Context, spec path.Spec) (*path.Path, error) {
	if contained(spec) {
		return p.buildContained(ctx, spec)
	}
	return recipe.Build(ctx, spec, recipes[spec.Mode], func(built *path.Path) (*site, error) {
		r, err := p.start(ctx)
		if err != nil {
			return nil, err
		}
		built.Channel = r.hub
		s := &site{ctx: ctx, run: r, path: built}
		return s, s.begin()
	})
}

type run struct {
	peer  *Peer
	hub   *agent.Hub
	here  *netns.NS
	agent *agent.Agent
	seen  have
	end   undo.Stack

	boxed sync.Map // namespaces of containers on the peer, by *path.Path

	asking sync.Mutex // guards the fields that follow
	docker *docker.Docker
	tried  map[routeTrial]error
}

// start starts the agent once and keeps the result until Close.
func (p *Peer) start(ctx context.Context) (*run, error) {
	return p.kept.Start(ctx, p.begin)
}

func (p *Peer) begin(ctx context.Context) (_ *run, err error) {
	r := &run{peer: p}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.end.Undo())
		}
	}()
	key, err := agent.NewKey()
	if err != nil {
		return nil, err
	}
	if r.here, err = netns.Here(); err != nil {
		return nil, err
	}
	r.end.Push("leave this machine", r.here.Close)
	r.hub = agent.NewHub(key, p.Version)
	c, err := p.dial(ctx, r.here, key.Bundle())
	if err != nil {
		return nil, errors.Join(err, r.hub.Close())
	}
	r.end.Push("end ssh", c.close)
	r.end.Push("release the agent", r.hub.Close)
	r.end.Push("leave the Docker Engine", r.closeEngine)
	r.end.Push("leave the peer's Docker Engine", func() error {
		if r.agent == nil {
			return nil
		}
		return r.agent.ClearBoxes()
	})
	r.seen = c.seen
	if err := r.hub.Serve(c.carrier); err != nil {
		return nil, err
	}
	if r.agent, err = c.joined(ctx, r.hub); err != nil {
		return nil, err
	}
	return r, nil
}

// Agent returns the peer's agent, which runs until Close, and a description of the peer for
// reports.
func (p *Peer) Agent(ctx context.Context) (a *agent.Agent, about string, err error) {
	r, err := p.start(ctx)
	if err != nil {
		return nil, "", err
	}
	return r.agent, p.Host.Name + ", " + r.agent.Hello().Machine(), r.left()
}

// Close ends the agent and its connection.
func (p *Peer) Close() error {
	return p.kept.Close(func(r *run) error { return r.end.Undo() })
}

const thisMachine = local.ThisMachine

func (r *run) left() error {
	if err := r.agent.Err(); err != nil {
		return &path.LeftError{Node: r.agent.Name(), Err: err}
	}
	return nil
}

func (h Host) agentName() string {
	if h.here() {
		return thisMachine
	}
	return "peer " + h.Name
}

// notPermitted reports whether err means that the action needs root, here or on the peer.
func notPermitted(err error) bool {
	var u *machine.UnsupportedError
	return errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.As(err, &u)
}
