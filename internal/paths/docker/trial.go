package docker

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

type trial struct {
	err   error // set if the daemon's networks are on another machine
	proxy bool  // a docker-proxy listens on the port
	taken bool  // a process of the machine listens on the port
	rules bool  // the engine writes rules about its networks
}

// try publishes a port once, because dockerd reports neither its network namespace nor whether it
// starts docker-proxy.
func (e *engine) try(ctx context.Context) (*trial, error) {
	if err := e.makeImage(ctx); err != nil {
		return nil, err
	}
	e.trying.Lock()
	defer e.trying.Unlock()
	if e.trial != nil {
		return e.trial, e.trial.err
	}
	p := &path.Path{Facts: map[string]string{}, Sysctls: map[string]string{}}
	t := &trial{}
	err := e.publishOne(ctx, p, t)
	var u *machine.UnsupportedError
	if errors.As(err, &u) {
		t.err = err
		err = nil
	}
	if err := errors.Join(err, p.Close()); err != nil {
		return nil, fmt.Errorf("try %s: %w", e.words().daemon, err)
	}
	e.trial = t
	return t, t.err
}

func (e *engine) tried(ctx context.Context, m mode.Name, try func(*site) error) error {
	e.trying.Lock()
	defer e.trying.Unlock()
	if err, ok := e.tries[m]; ok {
		return err
	}
	p := &path.Path{Facts: map[string]string{}, Sysctls: map[string]string{}}
	s, err := e.newSite(ctx, p)
	if err != nil {
		return err
	}
	err = errors.Join(try(s), p.Close())
	var u *machine.UnsupportedError
	if err != nil && !errors.As(err, &u) {
		return fmt.Errorf("try %s: %w", m, err) // the next attempt may succeed
	}
	if e.tries == nil {
		e.tries = map[mode.Name]error{}
	}
	e.tries[m] = err
	return err
}

func (e *engine) publishOne(ctx context.Context, p *path.Path, t *trial) error {
	s, err := e.newSite(ctx, p)
	if err != nil {
		return err
	}
	if err := s.ownNetwork(); err != nil {
		return err
	}
	if e.Podman != nil { // Podman makes a bridge with its first container
		if _, err := s.tryPort(loopback, new(bool)); err != nil {
			return err
		}
		return e.sameNetwork(s.network)
	}
	if err := e.sameNetwork(s.network); err != nil {
		return err
	}
	s.at, t.rules = e.machine, e.writes(s.network.bridge)
	t.proxy, err = s.tryPort(loopback, &t.taken)
	return err
}

func (s *site) tryPort(on netip.Addr, taken *bool) (bool, error) {
	port, err := s.freePort(on)
	if err != nil {
		return false, err
	}
	at := netip.AddrPortFrom(on, port)
	b, err := s.addBox(wanted{what: "trial container", role: "trial", network: s.network.name,
		publish: []bound{{at, serverPort}}})
	if err != nil {
		return false, err
	}
	if *taken, err = s.engine.taken(port); err != nil {
		return false, err
	}
	_, err = s.engine.findProxy("tcp",
		recipe.Port{Dial: at, Target: netip.AddrPortFrom(b.addr, serverPort)})
	if errors.Is(err, errNoProxy) {
		return false, nil
	}
	return err == nil, err
}

// writes reports whether the engine's rules mention a bridge of its networks: with "iptables":
// false it writes none. It returns true if the rules cannot be read.
func (e *engine) writes(bridge string) bool {
	if e.native() {
		var rules []nft.Counted
		err := e.ns.Do(func() (err error) {
			rules, err = nft.ReadTable(nft.IPv4, bridgesTable)
			return err
		})
		return err != nil || slices.ContainsFunc(rules, func(r nft.Counted) bool {
			return strings.HasSuffix(r.Chain, "__"+bridge)
		})
	}
	ran := false
	for _, p := range savers {
		if strings.Contains(p, "-legacy-") && !e.loaded("filter", false) {
			continue
		}
		var text string
		err := e.ns.Do(func() (err error) { text, err = saved(p, "filter"); return err })
		if err == nil && strings.Contains(text, bridge) {
			return true
		}
		ran = ran || err == nil
	}
	return !ran
}

// noRules refuses routes to published ports that toll counts at a rule.
func (t *trial) noRules() error {
	const on = `"iptables": true in daemon.json and a restart of docker`
	if !t.proxy {
		return &machine.UnsupportedError{
			Missing: `this Docker publishes no ports: it writes no rules ("iptables": false) and starts ` +
				"no docker-proxy", Remedy: on}
	}
	return &machine.UnsupportedError{
		Missing: `this Docker writes no rules ("iptables": false), at which toll would count the ` +
			"connections of this route",
		Remedy: "--to loopback, where docker-proxy counts; or " + on}
}

// sameNetwork returns an error if the network's bridge is not in this network namespace.
func (e *engine) sameNetwork(n *bridgeNet) error {
	var names []string
	err := e.ns.Do(func() (err error) { names, err = link.Names(); return err })
	if err != nil {
		return err
	}
	if slices.Contains(names, n.bridge) {
		return nil
	}
	u := &machine.UnsupportedError{
		Missing: e.words().daemon + " does not run in toll's network namespace: its bridge " +
			n.bridge + " is not here",
		Remedy: "run toll in the daemon's, for example " +
			remedy.AsRoot("nsenter --net=/proc/$(pidof dockerd)/ns/net toll …")}
	if e.Podman != nil {
		u.Remedy = "run toll where podman runs, outside containers"
	}
	return u
}

// hasProxy reports whether a docker-proxy listens on the dialled address. An engine may start one
// only where rules do not suffice, such as on ::1.
func (e *engine) hasProxy(ctx context.Context, s path.Spec, t *trial) (bool, error) {
	if t.proxy || s.To != mode.ToLoopback6 {
		return t.proxy, nil
	}
	err := e.tried(ctx, trialOfLoopback6, func(s *site) error {
		if err := s.ownNetwork(); err != nil {
			return err
		}
		proxy, err := s.tryPort(loopback6, new(bool))
		// engines without docker-proxy refuse the port (27 and later) or ignore it
		if err != nil || !proxy {
			return errNoProxy6
		}
		return nil
	})
	if errors.Is(err, machine.ErrUnsupported) {
		return false, nil
	}
	return err == nil, err
}

const trialOfLoopback6 mode.Name = "::1"

var errNoProxy6 error = &machine.UnsupportedError{
	Missing: "no docker-proxy listens on ::1", Remedy: "--to loopback"}
