package peer

import (
	"context"
	"errors"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/build/docker"
	"github.com/bridgetoll/bridgetoll/internal/build/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// contained reports whether the Docker Engine of this machine builds the mode's server.
func contained(m mode.Name) bool { return slices.Contains(docker.Remotely(), string(m)) }

// engine is the Docker Engine of this machine, with all clients on the peer.
func (r *run) engine(ctx context.Context) (*docker.Docker, error) {
	r.asking.Lock()
	defer r.asking.Unlock()
	if r.docker != nil {
		return r.docker, nil
	}
	s := &site{ctx: ctx, run: r, path: &path.Path{}}
	if err := s.begin(); err != nil {
		return nil, err
	}
	r.docker = &docker.Docker{Remote: &docker.Remote{Place: r.agent, Machine: r.agent, Addr: s.server, Wire: s.wireHop()}}
	return r.docker, nil
}

// closeEngine removes what the engine's paths shared.
func (r *run) closeEngine() error {
	r.asking.Lock()
	defer r.asking.Unlock()
	if r.docker == nil {
		return nil
	}
	return r.docker.Close()
}

// checkContained finds out whether the engine can have the path, and what a path without
// containers needs, too.
func (p *Peer) checkContained(ctx context.Context, spec path.Spec) error {
	r, err := p.start(ctx)
	if err != nil {
		return err
	}
	d, err := r.engine(ctx)
	if err != nil {
		return err
	}
	return d.Check(ctx, spec)
}

// buildContained builds a path whose server is in a container.
func (p *Peer) buildContained(ctx context.Context, spec path.Spec) (_ *path.Path, err error) {
	r, err := p.start(ctx)
	if err != nil {
		return nil, err
	}
	d, err := r.engine(ctx)
	if err != nil {
		return nil, err
	}
	built, err := d.Build(ctx, spec)
	if err != nil {
		return nil, err
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
	if s.server != d.Remote.Addr {
		return nil, errors.New("the way between the two machines has changed")
	}
	inner := built.Inspect
	if err := s.Finish(); err != nil {
		return nil, err
	}
	cards := built.Inspect
	built.Inspect = func() (all []path.Setting, err error) {
		for _, read := range []func() ([]path.Setting, error){inner, cards} {
			if read == nil {
				continue
			}
			more, err := read()
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		}
		return all, nil
	}
	return built, nil
}
