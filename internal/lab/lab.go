// Package lab builds network modes from the kernel's own parts: two machines,
// A and B, joined by a wire, and containers on A. Machines and containers are
// network namespaces without names, so nothing of the real machine is touched
// and nothing outlives the process: when it dies, even by SIGKILL, the kernel
// removes everything.
//
// Every path has machines of its own, so that one mode's rules never cost
// another mode anything. The server's machine carries what Docker Engine puts
// on a machine (docker.go), except in the native mode.
//
// Without root the lab lives in a user namespace, which Enter provides.
package lab

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/path"
	"github.com/bridgetoll/bridgetoll/internal/path/local"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// Lab is the backend that needs neither root nor Docker. The zero value is
// ready; Close ends it.
type Lab struct {
	// ProxyPath is the docker-proxy to use; "" looks for an installed one
	// and falls back to our own, "own" always uses our own.
	ProxyPath string
	// Congestion is the TCP congestion control of every namespace; "" keeps
	// what new namespaces inherit from the machine, as containers do.
	Congestion string

	// Wire is what the link between the machines is like.
	Wire sample.Wire

	test hooks

	mu    sync.Mutex // guards following
	trial *netns.NS  // where needs are tried; nil before the first
	tried map[need]error
}

var _ path.Builder = (*Lab)(nil)

// Name is "lab".
func (l *Lab) Name() string { return "lab" }

// hooks are what tests hang into builds; all may be nil.
type hooks struct {
	before func() error // called before each step; its error fails the step
	built  func(*site)  // called with what was built
}

// recipes build the parts of a mode on the machines of a site: each fills in
// the site's path.
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

	mode.PublishIngress: (*site).publishIngress,

	mode.MacvlanBridge:   (*site).macvlan,
	mode.MacvlanPrivate:  (*site).macvlan,
	mode.MacvlanVEPA:     (*site).macvlan,
	mode.MacvlanPassthru: (*site).macvlan,

	mode.IPvlanL2:  (*site).ipvlan,
	mode.IPvlanL3:  (*site).ipvlan,
	mode.IPvlanL3S: (*site).ipvlan,

	mode.OVS:              (*site).vswitch,
	mode.Overlay:          (*site).overlay,
	mode.OverlayEncrypted: (*site).overlay,
	mode.Netkit:           (*site).netkitPairs,
}

// Check finds out whether the path can be built, by trying its needs in a
// namespace of its own. Each need is tried once.
func (l *Lab) Check(_ context.Context, s path.Spec) error {
	if recipes[s.Mode] == nil {
		return fmt.Errorf("the lab has no recipe for %s: %w", s.Mode, path.ErrUnsupported)
	}
	if n, m := s.Count(); s.Mode == mode.MacvlanPassthru && (n > 1 || m > 1 && s.From == mode.FromRemoteContainer) {
		return &path.UnsupportedError{Missing: "passthru gives the network card to one container: a machine cannot have two",
			Remedy: string(mode.MacvlanBridge)}
	}
	for _, n := range l.needsOf(s) {
		if err := l.need(n); err != nil {
			return err
		}
	}
	return l.checkTunes(s)
}

// setCongestion sets the congestion control of the calling thread's
// namespace, if one was chosen.
func (l *Lab) setCongestion() error {
	const key = "net.ipv4.tcp_congestion_control"
	if l.Congestion == "" {
		return nil
	}
	if err := sysctl.Set(key, l.Congestion); err != nil {
		allowed, _ := sysctl.Get("net.ipv4.tcp_allowed_congestion_control")
		return &path.UnsupportedError{
			Missing: "congestion control " + l.Congestion + " cannot be chosen in a network namespace",
			Remedy:  "--congestion with one of those that can: " + allowed + ", or add it to net.ipv4.tcp_allowed_congestion_control",
			Err:     err,
		}
	}
	return nil
}

// Build builds the path on machines of its own.
func (l *Lab) Build(ctx context.Context, spec path.Spec) (*path.Path, error) {
	build := recipes[spec.Mode]
	m, known := mode.Find(spec.Mode)
	route, ok := m.Route(spec.From, spec.To)
	if build == nil || !known || !ok {
		return nil, fmt.Errorf("build %s: %w", spec, path.ErrUnsupported)
	}
	p := &path.Path{Spec: spec, Sysctls: map[string]string{}, Facts: map[string]string{}}
	if err := l.build(ctx, build, p); err != nil {
		return nil, errors.Join(fmt.Errorf("build %s: %w", spec, err), p.Close())
	}
	for i := range p.Clients {
		if got := p.Route(i).String(); got != route.String() {
			return nil, errors.Join(fmt.Errorf("built %s, the catalogue says %s", got, route), p.Close())
		}
	}
	return p, nil
}

func (l *Lab) build(ctx context.Context, build func(*site) error, p *path.Path) error {
	s, err := newSite(l, p)
	if err != nil {
		return err
	}
	if err := build(s); err != nil {
		return err
	}
	s.connect()
	if p.Spec.Second {
		p.Second = secondPort
	}
	p.Drain, p.Arrived = s.drain, s.arrived
	if err := s.tune(); err != nil {
		return err
	}
	if err := s.checkWire(); err != nil {
		return err
	}
	if err := s.describe(); err != nil {
		return err
	}
	s.guardWire()
	if l.test.built != nil {
		l.test.built(s)
	}
	if err := local.Guard(p, s.inspected()); err != nil {
		return err
	}
	return ctx.Err()
}

// explainNamespace turns a refused namespace into what is missing.
func explainNamespace(err error) error {
	switch {
	case errors.Is(err, unix.EPERM):
		return &path.UnsupportedError{
			Missing: "making network namespaces needs root or a user namespace",
			Remedy:  "run toll as root",
			Err:     err,
		}
	case errors.Is(err, unix.ENOSPC):
		return &path.UnsupportedError{
			Missing: "no more network namespaces are allowed (user.max_net_namespaces)",
			Remedy:  "sudo sysctl -w user.max_net_namespaces=15000",
			Err:     err,
		}
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS):
		return &path.UnsupportedError{
			Missing: "the kernel has no network namespaces (CONFIG_NET_NS)",
			Remedy:  "use a kernel that has them",
			Err:     err,
		}
	}
	return err
}
