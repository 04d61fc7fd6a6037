// Package lab builds network modes from the kernel's own parts: two machines, A and B, joined by a
// wire, and containers on A. All are unnamed network namespaces, so the real machine stays
// unchanged.
//
// Each path has machines of its own. Except in mode native, the server's machine has what Docker
// Engine installs (docker.go).
//
// Without root the lab needs a user namespace, which Enter provides.
package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Lab is the backend that needs neither root nor Docker. The zero value is ready to use.
type Lab struct {
	// ProxyPath is the file of docker-proxy. "" means an installed one or, without one, toll's own;
	// "own" means toll's own; "off" means that Docker starts no docker-proxy.
	ProxyPath string
	// Congestion is the TCP congestion control of every namespace; "": the inherited one.
	Congestion string

	// Engine is the Docker Engine whose rules the machines have: one of mode.Engines; "":
	// mode.DefaultEngine.
	Engine string
	// Ports is the number of other published ports on the engine's machine.
	Ports int

	// Wire describes the link between the machines.
	Wire sample.Wire

	test hooks

	mu         sync.Mutex // guards the fields that follow
	trial      *netns.NS
	tried      map[need]error
	mostQueues int
}

var _ path.Builder = (*Lab)(nil)

// Name returns "lab".
func (l *Lab) Name() string { return sample.Lab }

type hooks struct {
	before func() error // called before each step; an error fails the step
	built  func(*site)
}

// Check returns why the path cannot be built, or nil. It tries each need of the path once, in a
// namespace of its own.
func (l *Lab) Check(_ context.Context, s path.Spec) error {
	m, _ := mode.Find(s.Mode)
	if _, ok := recipes[s.Mode]; !ok && m.Kubernetes {
		return &machine.UnsupportedError{Missing: "mode " + string(s.Mode) +
			" needs a Kubernetes cluster", Remedy: "--on kubernetes; or pod, which the lab also builds"}
	} else if !ok {
		return fmt.Errorf("the lab has no recipe for %s: %w", s.Mode, machine.ErrUnsupported)
	}
	servers, clients := s.Count()
	out := s.To.Outside()
	if m.WholeCard && (servers > 1 && !out ||
		clients > 1 && (out || s.From == mode.FromRemoteContainer)) {
		return &machine.UnsupportedError{Missing: "a container in mode " + string(s.Mode) +
			" has the network card for itself, so a machine can have only one such container",
			Remedy: string(mode.MacvlanBridge)}
	}
	if err := l.checkEngine(s); err != nil {
		return err
	}
	for _, n := range l.needsOf(s) {
		if err := l.need(n); err != nil {
			return err
		}
	}
	return l.checkTunes(s)
}

func (l *Lab) setCongestion() error {
	if l.Congestion == "" {
		return nil
	}
	err := local.SetCongestion(l.Congestion)
	var u *machine.UnsupportedError
	if errors.As(err, &u) {
		u.Remedy = "--congestion with " + u.Remedy
	}
	return err
}

func (l *Lab) tryCongestion(name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.trial.Do(func() error { return local.TryCongestion(name) })
}

// Build builds the path on new machines.
func (l *Lab) Build(ctx context.Context, spec path.Spec) (*path.Path, error) {
	return recipe.Build(ctx, spec, recipes[spec.Mode].build, func(p *path.Path) (*site, error) {
		return newSite(l, p)
	})
}

func (s *site) Finish() error {
	s.Connect()
	s.path.Drain, s.path.Arrived = s.drain, s.arrived
	s.path.Namespaces = s.namespaces
	for _, f := range []func() error{s.tune, s.checkWire, s.describe} {
		if err := f(); err != nil {
			return err
		}
	}
	s.guardWire()
	if built := s.lab.test.built; built != nil {
		built(s)
	}
	return local.Guard(s.path, s.inspected())
}

func explainNamespace(err error) error {
	switch {
	case errors.Is(err, unix.EPERM):
		return &machine.UnsupportedError{
			Missing: "making network namespaces needs root or a user namespace",
			Remedy:  "run toll as root",
			Err:     err,
		}
	case errors.Is(err, unix.ENOSPC):
		return &machine.UnsupportedError{
			Missing: "no more network namespaces are allowed (user.max_net_namespaces)",
			Remedy:  remedy.AsRoot("sysctl -w user.max_net_namespaces=15000"),
			Err:     err,
		}
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS):
		return &machine.UnsupportedError{
			Missing: "the kernel has no network namespaces (CONFIG_NET_NS)",
			Remedy:  "use a kernel that has them",
			Err:     err,
		}
	}
	return err
}

const entered = "BRIDGETOLL_USERNS"

// Entered reports whether Enter started this process.
func Entered() bool { return os.Getenv(entered) != "" }

// Enter runs this program again, with the same arguments and standard files, as root of a new user
// namespace, and returns the exit code. The new process dies with this one. When ctx ends, the new
// process receives the signal that stopped returns for the cause of ctx.
//
// If user namespaces are forbidden, Enter returns an error that wraps the errno of clone(2).
func Enter(ctx context.Context, stopped func(cause error) os.Signal) (code int, err error) {
	if Entered() {
		return 0, errors.New("network namespaces cannot be made even inside a user namespace")
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), entered+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	if code, err = local.Rerun(ctx, cmd, stopped); err != nil {
		return 0, fmt.Errorf("enter a user namespace: %w", err)
	}
	return code, nil
}
