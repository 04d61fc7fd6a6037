package peer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/paths/docker"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// contained reports whether this machine's Docker Engine builds the path.
func contained(s path.Spec) bool {
	switch {
	case !docker.Apart(s):
		return true
	case s.To.Outside():
		return recipes[s.Mode] == nil
	}
	return slices.Contains(docker.Remotely(), string(s.Mode))
}

// engine returns the backend of this machine's Docker Engine, with the peer as the other machine.
func (r *run) engine(ctx context.Context, spec path.Spec) (*docker.Docker, error) {
	if !docker.Apart(spec) { // any address shows which cards connect the machines
		spec.To = mode.ToAddress
		if a := cmp.Or(r.peer.Address, r.seen.Here.Addr()); a.Is6() && !a.IsLinkLocalUnicast() {
			spec.To = mode.ToAddress6
		}
	}
	s := &site{ctx: ctx, run: r, path: &path.Path{Spec: spec}}
	if err := s.begin(); err != nil {
		return nil, err
	}
	r.asking.Lock()
	defer r.asking.Unlock()
	if r.docker != nil {
		return r.docker, nil
	}
	four, six := s.server, s.server
	other, err := s.dialled(s.server.Is4())
	if err != nil { // reported when a path of that family is built
		other = netip.Addr{}
	}
	if s.server.Is4() {
		six = other
	} else {
		four = other
	}
	r.docker = &docker.Docker{Podman: dockerapi.PodmanFirst(os.Getenv), Parent: s.here.Device,
		Remote: &docker.Remote{Addr: four, Addr6: six, Client: r.client, Server: r.server,
			Machine: r.agent, Route: r.route}}
	return r.docker, nil
}

func (r *run) closeEngine() error {
	r.asking.Lock()
	defer r.asking.Unlock()
	if r.docker == nil {
		return nil
	}
	return r.docker.Close()
}

func (p *Peer) checkContained(ctx context.Context, spec path.Spec) error {
	r, err := p.start(ctx)
	if err != nil {
		return err
	}
	d, err := r.engine(ctx, spec)
	if err != nil {
		return err
	}
	if spec.From == mode.FromRemoteContainer { // the faster check first
		if err := r.boxes(ctx, spec.Mode); err != nil {
			return err
		}
	}
	needed, direct := docker.ByRoute(spec)
	if err := d.Check(ctx, spec); err != nil || !needed {
		return err
	}
	return r.tryRoute(ctx, spec, direct)
}

// boxes returns an error if the peer's Docker Engine cannot make containers, or if the agent may
// not count the connections that the engine's rules rewrite.
func (r *run) boxes(ctx context.Context, m mode.Name) error {
	if err := r.left(); err != nil {
		return err
	}
	if _, err := r.agent.Boxes(ctx); err != nil ||
		m != mode.Publish && m != mode.PublishDefault && m != mode.PublishNAT {
		return err
	}
	nobody := netip.AddrPortFrom(netip.IPv4Unspecified(), 1)
	_, err := r.agent.Counters(ctx, []agent.Counter{
		{NAT: &agent.NAT{Proto: "tcp", To: nobody, Now: nobody}}})
	if errors.Is(err, machine.ErrUnsupported) {
		return &machine.UnsupportedError{
			Missing: "only root can count what the peer's rules rewrite",
			Remedy:  "--peer-sudo, or ssh as root; host and macvlan-bridge need neither", Err: err}
	}
	return err
}

func (p *Peer) buildContained(ctx context.Context, spec path.Spec) (_ *path.Path, err error) {
	r, err := p.start(ctx)
	if err != nil {
		return nil, err
	}
	d, err := r.engine(ctx, spec)
	if err != nil {
		return nil, err
	}
	built, err := d.Build(ctx, spec)
	if err != nil || !docker.Apart(spec) {
		return built, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, built.Close())
		}
	}()
	built.Channel = r.hub
	s := &site{ctx: ctx, run: r, path: built}
	if err := s.begin(); err != nil {
		return nil, err
	}
	if s.server != d.Remote.Addr && s.server != d.Remote.Addr6 {
		return nil, errors.New("the route between the two machines has changed")
	}
	inner := built.Inspect
	s.spots = r.spotsOf(built)
	if err := s.Finish(); err != nil {
		return nil, err
	}
	both := []func() ([]path.Setting, error){inner, built.Inspect}
	built.Inspect = func() ([]path.Setting, error) { return cluster.AtOnce(both) }
	if len(s.spots) == 0 {
		return built, nil
	}
	all, err := built.Inspect()
	if err == nil {
		err = path.Undiverted(all)
	}
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", spec, err)
	}
	return built, nil
}
