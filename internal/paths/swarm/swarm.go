// Package swarm builds network modes between the machines of the user's Docker Swarm. The swarm
// places the tasks. In each task, toll runs as an agent (see package agent) that dials the toll
// that measures. Nodes change only as they would for any service of the user's own.
//
// Everything that the package makes has the mark of its toll, is first written to a journal, and is
// removed when the backend is closed. If toll is killed, dockerapi.Clean with Leftovers cleans up
// on a manager. Tasks end with their toll.
package swarm

import (
	"context"
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Name is the backend's name.
const Name = sample.Swarm

// Swarm is the backend. Only Version must be set.
type Swarm struct {
	// Nodes lists the run's nodes by host name or ID. The first two are the default server and
	// client. Empty: all nodes that take tasks.
	Nodes []string
	// Most limits the number of nodes that are used, from the first on; 0: all.
	Most int
	// Image is toll's image in a registry; "": toll's own, which every node must have.
	Image string
	// Control is where this machine listens for its agents. An invalid address means the swarm's
	// address of this node, port 0 a free port.
	Control netip.AddrPort
	Version string
	// Program is the file of the static binary for the image; "": this program.
	Program string
	// StateDir is the directory of journals; "": the user's state directory.
	StateDir string

	kept cluster.Once[*run]
}

var _ path.Builder = (*Swarm)(nil)

// Name returns "swarm".
func (s *Swarm) Name() string { return Name }

// Check returns why the path cannot be built, or nil. It starts agents on the nodes, which run
// until Close, and reads the nodes' facts.
func (s *Swarm) Check(ctx context.Context, spec path.Spec) error {
	if err := refuse(spec); err != nil {
		return err
	}
	return cluster.Check(ctx, s, spec)
}

func refuse(s path.Spec) error {
	out := s.To.Outside()
	switch {
	case recipeOf(s) != nil:
	case out:
		return cluster.NoMode("a swarm has no way out", s.Mode, recipe.Names(outward))
	default:
		return cluster.NoMode("a swarm has no services", s.Mode, Modes())
	}
	switch {
	case out && s.From == mode.FromHost:
		return &machine.UnsupportedError{Missing: "on a swarm the client of the target outside is a task",
			Remedy: "--from container; in mode host, the task has its node's network",
			Lack:   machine.LackPlacement}
	case out:
	case s.From == mode.FromHost, s.From == mode.FromContainer, s.To == mode.ToLoopback,
		s.To == mode.ToLoopback6:
		return &machine.UnsupportedError{
			Missing: "a swarm is measured between machines; on one machine use --on docker",
			Remedy:  "--from remote,remote-container", Lack: machine.LackPlacement}
	}
	if err := refuse6(s); err != nil {
		return err
	}
	return cluster.Refuse(s)
}

func refuse6(s path.Spec) error {
	switch {
	case !s.To.Six(), s.Mode == mode.Host:
		return nil
	case s.To == mode.ToOutside6:
		return &machine.UnsupportedError{
			Missing: "toll measures a task's way out only over IPv4",
			Remedy:  "host; or --on lab, or -4", Lack: machine.LackIPv6}
	case s.To == mode.ToContainer6:
		return dockerapi.NoOverlay6
	case s.Mode == mode.PublishNAT:
		return &machine.UnsupportedError{
			Missing: "toll measures a task's published port only over IPv4, because it is on its node's default bridge, which has no IPv6 without \"ipv6\": true in the node's daemon.json",
			Remedy:  "--on lab or docker, or -4", Lack: machine.LackIPv6}
	}
	return &machine.UnsupportedError{
		Missing: "toll measures a swarm's routing mesh only over IPv4, because its network has no IPv6",
		Remedy:  "host; or --on lab or docker, or -4", Lack: machine.LackIPv6}
}

// Build builds the path.
func (s *Swarm) Build(ctx context.Context, spec path.Spec) (*path.Path, error) {
	return recipe.Build(ctx, spec, recipeOf(spec), func(p *path.Path) (*site, error) {
		r, err := s.start(ctx)
		if err != nil {
			return nil, err
		}
		p.Channel = r.hub
		at := &site{ctx: ctx, run: r, path: p}
		return at, at.begin()
	})
}

// Cluster starts an agent on each node of the run and returns the nodes' facts. without has the
// names of nodes without an agent, with the reason.
func (s *Swarm) Cluster(ctx context.Context) (all []sample.Node, without map[string]error,
	err error) {
	r, err := s.start(ctx)
	if err != nil {
		return nil, nil, err
	}
	hosts, err := r.service(ctx, onHost)
	if err != nil {
		return nil, nil, err
	}
	at := &site{ctx: ctx, run: r}
	return cluster.Nodes(ctx, r.nodes, func(n Node) (sample.Node, error) {
		about := sample.Node{Name: n.Name, ID: n.ID, Address: n.Addr.String()}
		e, err := at.end(hosts, n)
		if err == nil {
			e.AddFacts(ctx, &about)
		}
		return about, err
	})
}

func (s *Swarm) start(ctx context.Context) (*run, error) {
	return s.kept.Start(ctx, s.begin)
}

// Close ends the agents and removes everything that the backend made.
func (s *Swarm) Close() error {
	return s.kept.Close((*run).close)
}
