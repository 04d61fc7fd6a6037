// Package docker builds network modes with a real Docker Engine on this machine,
// for those who want their machine's truth rather than the lab's. The containers
// hold nothing but toll itself, in an image that is made here: no registry is
// asked.
//
// All that it makes carries a label with the mark of the toll that made it, and
// is written to a journal before it is made. It is gone when the paths and the
// backend are closed; what a killed toll left is found by Clean. Containers,
// networks, images and rules that it did not make are never touched.
//
// Be aware: the counters of containers are read in their network namespaces,
// which takes root, and which must be on this machine.
package docker

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/path"
	"github.com/bridgetoll/bridgetoll/internal/path/local"
)

// Name is the backend's name.
const Name = "docker"

// Docker is the backend. The zero value is ready; Close ends it.
type Docker struct {
	// Program is the static binary to put into the image; "" is this program.
	Program string
	// Parent is the network card on which macvlan and ipvlan devices are made; ""
	// is none.
	Parent string
	// KeepImage leaves the image for the next run.
	KeepImage bool
	// StateDir is where journals are kept; "" is the user's state directory.
	StateDir string

	answer time.Duration // how long the daemon may take to say who it is; 0 is the usual

	mu     sync.Mutex // guards following
	engine *engine
	err    error // why there is none
}

var _ path.Builder = (*Docker)(nil)

// Name is "docker".
func (d *Docker) Name() string { return Name }

// recipes build the parts of a mode on a site: each fills in the site's path.
var recipes = map[mode.Name]func(*site) error{
	mode.Native:        (*site).native,
	mode.Host:          (*site).host,
	mode.Shared:        (*site).shared,
	mode.Bridge:        (*site).bridge,
	mode.BridgeDefault: (*site).bridgeDefault,
	mode.PublishNAT:    (*site).publishNAT,
	mode.PublishProxy:  (*site).publishProxy,
	mode.Routed:        (*site).routed,
	mode.Link:          (*site).linked,
	mode.Pipework:      (*site).pipework,
	mode.OVS:           (*site).vswitch,
	mode.Overlay:       (*site).overlay,
	mode.MacvlanBridge: (*site).subInterfaces,
	mode.MacvlanVEPA:   (*site).subInterfaces,
	mode.IPvlanL2:      (*site).subInterfaces,
	mode.IPvlanL3:      (*site).subInterfaces,
	mode.IPvlanL3S:     (*site).subInterfaces,
}

// Check asks the daemon, and tries what cannot be asked. The image stays for the
// paths that are built later, until Close.
func (d *Docker) Check(ctx context.Context, s path.Spec) error {
	if err := refuse(s); err != nil {
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
	m, _ := mode.Find(spec.Mode)
	route, ok := m.Route(spec.From, spec.To)
	build := recipes[spec.Mode]
	if build == nil || !ok {
		return nil, fmt.Errorf("build %s: %w", spec, path.ErrUnsupported)
	}
	e, err := d.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", spec, err)
	}
	p := &path.Path{Spec: spec, Sysctls: map[string]string{}, Facts: map[string]string{}}
	if err := e.build(ctx, build, p); err != nil {
		return nil, errors.Join(fmt.Errorf("build %s: %w", spec, err), p.Close())
	}
	for i := range p.Clients {
		if got := p.Route(i); !slices.Equal(got.Hops, route.Hops) {
			return nil, errors.Join(fmt.Errorf("built %s, the catalogue says %s", got, route), p.Close())
		}
	}
	return p, nil
}

func (e *engine) build(ctx context.Context, build func(*site) error, p *path.Path) error {
	if err := e.makeImage(ctx); err != nil {
		return err
	}
	s, err := e.newSite(ctx, p)
	if err != nil {
		return err
	}
	if err := build(s); err != nil {
		return err
	}
	s.connect()
	p.Drain = s.drain
	if err := s.describe(); err != nil {
		return err
	}
	spots, err := s.inspected()
	if err != nil {
		return err
	}
	if err := local.Guard(p, spots); err != nil {
		return err
	}
	return ctx.Err()
}

// How long it may take to remove one thing, and to make one.
const (
	removal = 20 * time.Second
	making  = time.Minute
)

// Uninterrupted is a context for making one thing, which goes on after an
// interrupt: the daemon would go on too, and make it after it was removed.
func Uninterrupted() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), making)
}

// cleanUp is a context for removals, which must happen also after an interrupt.
func cleanUp() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), removal)
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

// random is a short name that nobody else has.
func random() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// here enters the network namespace of this process, on a thread to which
// children can be tied.
func here() (*netns.NS, error) { return netns.Join("/proc/self/ns/net") }
