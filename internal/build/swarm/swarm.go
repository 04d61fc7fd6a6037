// Package swarm builds network modes across machines, on the Docker Swarm that its
// user has: the cluster's own engine places the tasks, and toll runs in each of
// them as an agent (see package agent), which dials the toll that measures. It
// changes nothing on a node that a user's own service could not change.
//
// All that it makes, one secret, services and networks, carries a label with the
// mark of the toll that made it, and is written to a journal before it is made. It
// is gone when the backend is closed; what a killed toll left is found by
// dockerapi.Clean, with Leftovers, on a manager. Tasks end by themselves when their toll is gone.
package swarm

import (
	"context"
	"errors"
	"net/netip"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/build/cluster"
	"github.com/bridgetoll/bridgetoll/internal/build/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/build/path"
	"github.com/bridgetoll/bridgetoll/internal/build/recipe"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Name is the backend's name.
const Name = sample.Swarm

// Swarm is the backend. The zero value is ready, but for Version; Close ends it.
type Swarm struct {
	// Nodes are those of the run, by host name or ID: first the server's, then the
	// client's, for paths that name none. Empty: all nodes that take tasks.
	Nodes []string
	// Most is how many nodes are used at most, the first ones; 0: all.
	Most int
	// Image is toll's image in a registry; "" is its own, which every node must have.
	Image string
	// Control is where this machine listens for its agents; an invalid address is the
	// one by which the swarm knows this node, and port 0 any free one.
	Control netip.AddrPort
	// Version is toll's.
	Version string
	// Program is the static binary to put into the image; "" is this program.
	Program string
	// StateDir is where journals are kept; "" is the user's state directory.
	StateDir string

	kept cluster.Once[*run]
}

var _ path.Distant = (*Swarm)(nil)

// Name is "swarm".
func (s *Swarm) Name() string { return Name }

// Distant is true: client and server have clocks of their own.
func (s *Swarm) Distant() bool { return true }

// Check brings agents to the nodes and asks them what is there. They stay until
// Close.
func (s *Swarm) Check(ctx context.Context, spec path.Spec) error {
	if err := refuse(spec); err != nil {
		return err
	}
	p, err := s.Build(ctx, spec)
	var u *path.UnsupportedError
	if errors.As(err, &u) {
		return u // the caller knows for what
	}
	if err != nil {
		return err
	}
	return p.Close()
}

// refuse refuses what no swarm can change.
func refuse(s path.Spec) error {
	if recipes[s.Mode] == nil {
		all := Modes()
		last := len(all) - 1
		return &path.UnsupportedError{Missing: "a swarm has no services in mode " + string(s.Mode),
			Remedy: strings.Join(all[:last], ", ") + " or " + all[last] + "; or --on lab"}
	}
	if s.From == mode.FromHost || s.From == mode.FromContainer || s.To == mode.ToLoopback || s.To == mode.ToLoopback6 {
		return &path.UnsupportedError{Missing: "a swarm is measured between machines: on one, --on docker sees more",
			Remedy: "--from remote,remote-container"}
	}
	if n, m := s.Count(); n > 1 || m > 1 {
		return &path.UnsupportedError{Missing: "crowds are not measured across a swarm's machines", Remedy: "--on lab or docker"}
	}
	if s.Second {
		return &path.UnsupportedError{Missing: "programs are not in the image of a swarm's tasks", Remedy: "toll run --on lab or docker"}
	}
	if err := refuse6(s); err != nil {
		return err
	}
	return recipe.RefuseTunes(s)
}

// refuse6 refuses paths over IPv6.
func refuse6(s path.Spec) error {
	switch {
	case !s.To.Six(), s.Mode == mode.Host:
		return nil
	case s.To == mode.ToContainer6:
		return dockerapi.NoOverlay6
	case s.Mode == mode.PublishNAT:
		return &path.UnsupportedError{Missing: "a task's published port is on its node's default bridge, where toll measures IPv4 only: without \"ipv6\": true in the node's daemon.json it has no IPv6",
			Remedy: "--on lab or docker, or -4"}
	}
	return &path.UnsupportedError{Missing: "a swarm's routing mesh is measured over IPv4 only: its network has no IPv6", Remedy: "host; or --on lab or docker, or -4"}
}

// Build builds the path.
func (s *Swarm) Build(ctx context.Context, spec path.Spec) (*path.Path, error) {
	return recipe.Build(ctx, spec, recipes[spec.Mode], func(p *path.Path) (*site, error) {
		r, err := s.start(ctx)
		if err != nil {
			return nil, err
		}
		p.Channel = r.hub
		at := &site{ctx: ctx, run: r, path: p}
		return at, at.begin()
	})
}

// Cluster brings an agent to each node of the run and says what they are. Of those
// that get none it says why, by name.
func (s *Swarm) Cluster(ctx context.Context) (all []sample.Node, without map[string]error, err error) {
	r, err := s.start(ctx)
	if err != nil {
		return nil, nil, err
	}
	hosts, err := r.service(ctx, onHost)
	if err != nil {
		return nil, nil, err
	}
	without = map[string]error{}
	at := &site{ctx: ctx, run: r}
	for _, n := range r.nodes {
		about := sample.Node{Name: n.Name, ID: n.ID, Address: n.Addr.String()}
		if e, err := at.end(hosts, n); err != nil {
			without[n.Name] = err
		} else {
			hello := e.agent.Hello()
			about.Kernel, about.CPUs, about.Boot, about.MTU = hello.Kernel, hello.CPUs, hello.Boot, e.card.MTU
			about.Cards, _, _ = e.agent.Cards(ctx, e.card.Name) // what is not known of them fails no mesh
			for i := range about.Cards {
				about.Cards[i].Where = "node " + n.Name
			}
		}
		all = append(all, about)
	}
	return all, without, nil
}

// start finds the swarm once; what came of it is remembered until Close.
func (s *Swarm) start(ctx context.Context) (*run, error) {
	return s.kept.Start(ctx, s.begin)
}

// Close ends the agents and removes all that was made.
func (s *Swarm) Close() error {
	return s.kept.Close((*run).close)
}
