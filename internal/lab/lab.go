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

	mu    sync.Mutex // guards following
	trial *netns.NS  // where needs are tried; nil before the first
	tried map[need]error
}

var _ path.Builder = (*Lab)(nil)

// Name is "lab".
func (l *Lab) Name() string { return "lab" }

// recipe builds the parts of one mode into p on the machines of s.
type recipe func(l *Lab, s *site, p *path.Path) error

var recipes = map[mode.Name]recipe{
	mode.Native:       (*Lab).native,
	mode.Host:         (*Lab).host,
	mode.Shared:       (*Lab).shared,
	mode.Bridge:       (*Lab).bridge,
	mode.PublishNAT:   (*Lab).publishNAT,
	mode.PublishProxy: (*Lab).publishProxy,
}

// Check finds out whether the path can be built, by trying its needs in a
// namespace of its own. Each need is tried once.
func (l *Lab) Check(_ context.Context, s path.Spec) error {
	if recipes[s.Mode] == nil {
		return fmt.Errorf("the lab has no recipe for %s: %w", s.Mode, path.ErrUnsupported)
	}
	for _, n := range needsOf(s) {
		if err := l.need(n); err != nil {
			return err
		}
	}
	return nil
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
	if got := (mode.Route{Hops: kinds(p.Hops)}).String(); got != route.String() {
		return nil, errors.Join(fmt.Errorf("built %s, the catalogue says %s", got, route), p.Close())
	}
	return p, nil
}

func (l *Lab) build(ctx context.Context, build recipe, p *path.Path) error {
	s, err := newSite(l, &p.Undo)
	if err != nil {
		return err
	}
	if err := build(l, s, p); err != nil {
		return err
	}
	if err := s.describe(p); err != nil {
		return err
	}
	return ctx.Err()
}

func kinds(hops []path.Hop) []mode.HopKind {
	out := make([]mode.HopKind, len(hops))
	for i, h := range hops {
		out[i] = h.Kind
	}
	return out
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
