// Package docker builds network modes with a real Docker Engine on this machine, or with Podman,
// whose service speaks the same API. The containers contain only toll, in an image that this
// package makes.
//
// Everything that the package makes has the mark of its toll, is first written to a journal, and is
// removed when the paths and the backend are closed. Sysctls, network cards and rules stay
// unchanged, except for one rule in DOCKER-USER for a bridge of toll's own.
//
// The loopback device and the default bridge carry other programs' traffic, so they cannot be
// guards.
//
// Trials determine what dockerd does not report: its network namespace, whether it starts
// docker-proxy, and what Open vSwitch and the card's switch can do. Reading counters needs root.
package docker

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Name is the backend's name.
const Name = sample.Docker

// Docker is the backend. The zero value is ready to use.
type Docker struct {
	// Podman selects the backend podman, with the Podman service of this environment. If it is
	// false and a Podman service answers at the Docker daemon's address, modes are built as Podman
	// builds them.
	Podman bool
	// Program is the file of a static toll binary for the image; "": this program.
	Program string
	// Parent is the network card for macvlan and ipvlan devices; "": none.
	Parent string
	// Remote is another machine, with one end of each path between the two; nil: none.
	Remote *Remote
	// StateDir is the directory of journals; "": the user's state directory.
	StateDir string

	mu     sync.Mutex // guards the fields that follow
	engine *engine
	err    error
}

var _ path.Builder = (*Docker)(nil)

// Name returns "docker" or "podman".
func (d *Docker) Name() string {
	if d.Podman {
		return sample.Podman
	}
	return Name
}

// Check returns why the path cannot be built, or nil. It makes trial networks and containers to
// learn what the daemon does not report. The image for them stays until Close.
func (d *Docker) Check(ctx context.Context, s path.Spec) error {
	if err := d.refuse(s); err != nil {
		return err
	}
	e, err := d.connect(ctx)
	if err != nil {
		return err
	}
	return e.check(ctx, s)
}

// Build builds the path.
func (d *Docker) Build(ctx context.Context, spec path.Spec) (*path.Path, error) {
	if d.recipes()[spec.Mode].build == nil && podmanRecipes[spec.Mode].build == nil {
		return nil, fmt.Errorf("build %s: %w", spec, machine.ErrUnsupported)
	}
	build := func(s *site) error {
		if own := s.engine.recipe(spec.Mode).build; own != nil {
			return own(s)
		}
		return machine.ErrUnsupported
	}
	return recipe.Build(ctx, spec, build, func(p *path.Path) (*site, error) {
		e, err := d.connect(ctx)
		if err != nil {
			return nil, err
		}
		if err := e.makeImage(ctx); err != nil {
			return nil, err
		}
		return e.newSite(ctx, p)
	})
}

func (s *site) Finish() error {
	s.Connect()
	s.path.Drain, s.path.Namespaces = s.drain, s.namespaces
	if err := s.tune(); err != nil {
		return err
	}
	if err := s.settled(); err != nil {
		return err
	}
	if err := s.describe(); err != nil {
		return err
	}
	spots, err := s.inspected()
	if err != nil {
		return err
	}
	path.Share(s.path, func(h path.Hop) bool {
		return h.Where == s.engine.name || h.Where == thisMachine || local.OfProcess(h)
	})
	return local.Guard(s.path, spots)
}

// Close removes the image and disconnects from the daemon. It does not close paths: that must be
// done before.
func (d *Docker) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.engine
	d.engine, d.err = nil, nil
	if e == nil {
		return nil
	}
	return e.close()
}

// turns limits the number of parallel requests: more are not faster, and an interrupt would wait
// for all of them. The zero value is ready to use.
type turns struct {
	once sync.Once // sets free
	free chan struct{}
}

func (t *turns) take(ctx context.Context) (done func(), err error) {
	t.once.Do(func() { t.free = make(chan struct{}, 2*runtime.NumCPU()) })
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case t.free <- struct{}{}:
		return func() { <-t.free }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
