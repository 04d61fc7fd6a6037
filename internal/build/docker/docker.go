// Package docker builds network modes with a real Docker Engine on this machine,
// for users who want to measure their own machine rather than the lab. The
// containers hold only toll itself, in an image that is made here: no registry is
// needed.
//
// All that it makes carries a label with the mark of the toll that made it, and
// is written to a journal before it is made. It is removed when the paths and the
// backend are closed; what a killed toll left is found by dockerapi.Clean with
// Leftovers. Containers, networks, images and rules that it did not make are
// never touched.
//
// Be aware: the counters of containers are read in their network namespaces,
// which takes root, and which must be on this machine.
package docker

import (
	"context"
	"sync"

	"github.com/bridgetoll/bridgetoll/internal/build/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/build/path"
	"github.com/bridgetoll/bridgetoll/internal/build/path/local"
	"github.com/bridgetoll/bridgetoll/internal/build/recipe"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Name is the backend's name.
const Name = sample.Docker

// Docker is the backend. The zero value is ready; Close ends it.
type Docker struct {
	// Program is the static binary to put into the image; "" is this program.
	Program string
	// Parent is the network card on which macvlan and ipvlan devices are made; ""
	// is none.
	Parent string
	// KeepImage leaves the image for the next run.
	KeepImage bool
	// Remote is another machine that all clients are on; nil: they are on this one.
	Remote *Remote
	// StateDir is where journals are kept; "" is the user's state directory.
	StateDir string

	mu     sync.Mutex // guards following
	engine *engine
	err    error // why there is none
}

var _ path.Builder = (*Docker)(nil)

// Name is "docker".
func (d *Docker) Name() string { return Name }

// Check asks the daemon, and tries what cannot be asked. The image stays for the
// paths that are built later, until Close.
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
	return recipe.Build(ctx, spec, recipes[spec.Mode].build, func(p *path.Path) (*site, error) {
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

// Finish completes the path after its recipe.
func (s *site) Finish() error {
	s.Connect()
	s.path.Drain = s.drain
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
	path.Share(s.path, func(h path.Hop) bool { return h.Where == thisMachine })
	return local.Guard(s.path, spots)
}

// Close removes the image and forgets the daemon. Paths are closed by those who
// built them.
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

// here enters the network namespace of this process, on a thread to which
// children can be tied.
func here() (*netns.NS, error) { return netns.Join("/proc/self/ns/net") }
