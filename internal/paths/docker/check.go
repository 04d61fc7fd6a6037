package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/bigtcp"
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/shortcut"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func (d *Docker) refuse(s path.Spec) error {
	err := lacks(d.Name(), d.recipes(), s)
	if d.Remote != nil && podmanRecipes[s.Mode].build != nil {
		err = nil // the engine may be Podman
	}
	if err != nil {
		return err
	}
	if d.Remote != nil {
		if err := d.Remote.refuse(s); err != nil {
			return err
		}
	} else if s.To.Outside() {
		return path.ErrOutside
	} else if fromAfar(s) {
		return &machine.UnsupportedError{
			Missing: d.Name() + " has only this machine: there is no remote client",
			Remedy:  "--from host,container, or --on lab"}
	}
	return refuseTunes(s)
}

func lacks(on string, recipes map[mode.Name]modeRecipe, s path.Spec) error {
	r, ok := recipes[s.Mode]
	if !ok {
		u := &machine.UnsupportedError{Missing: on + " has no recipe for " + string(s.Mode),
			Remedy: "--on lab"}
		if known, _ := mode.Find(s.Mode); known.Kubernetes {
			u.Remedy = "--on kubernetes"
		}
		return u
	}
	if r.lacks != nil && (r.build == nil || !s.To.Outside()) {
		return r.lacks
	}
	return nil
}

func (e *engine) check(ctx context.Context, s path.Spec) error {
	name, recipes := e.docker.Name(), e.docker.recipes()
	if e.Podman != nil {
		name, recipes = sample.Podman, podmanRecipes
	}
	if err := lacks(name, recipes, s); err != nil {
		return err
	}
	if e.docker.Program == "" {
		if err := dockerapi.CheckProgram(); err != nil {
			return err
		}
	}
	if err := e.checkTunes(s); err != nil {
		return err
	}
	r := e.recipe(s.Mode)
	if err := e.checkIPv6(s); err != nil {
		return err
	}
	switch {
	case r.alone:
		return nil
	case e.lost != nil && e.Podman == nil:
		return e.lost
	}
	if err := e.checkRootless(ctx, s); err != nil || e.Podman != nil && e.rootless {
		return err
	}
	switch {
	case r.first != nil:
		if err := r.first(e); err != nil {
			return err
		}
	}
	t, err := e.try(ctx)
	if err == nil {
		err = e.checkRules6(s)
	}
	if err != nil || r.check == nil || e.kit != nil && s.To.Outside() {
		return err
	}
	return r.check(e, ctx, s, t)
}

func (e *engine) checkNAT(_ context.Context, s path.Spec, t *trial) error {
	switch {
	case !t.rules && (!t.proxy || !recipe.Proxied(s)):
		return t.noRules()
	case fromAfar(s):
		return nil
	}
	if t.proxy && recipe.Proxied(s) {
		return &machine.UnsupportedError{
			Missing: "on this route, docker-proxy gets the connections to this Docker's ports",
			Remedy:  `publish, which measures what this Docker does; or "userland-proxy": false in /etc/docker/daemon.json and a restart of docker`}
	}
	return e.checkRules(s)
}

func (e *engine) checkRules(s path.Spec) error {
	if s.From == mode.FromContainer {
		if err := e.bridgedRules(s); err != nil {
			return err
		}
	}
	return e.checkAddress(s)
}

func (e *engine) checkPublish(ctx context.Context, s path.Spec, t *trial) error {
	apart := false
	if s.Mode == mode.PublishDefault {
		var err error
		if apart, err = e.keepsApart(ctx); err != nil {
			return err
		}
		if recipe.Dual(s) {
			if err := e.defaultIPv6(ctx); err != nil {
				return err
			}
		}
	}
	if fromAfar(s) && s.Mode == mode.PublishDefault && s.To.Six() && e.defaultIPv6(ctx) == nil {
		return &machine.UnsupportedError{
			Missing: "this Docker's default network has IPv6, so rules handle the connections that docker-proxy handles otherwise", Remedy: "publish-nat, whose network has IPv6, too"}
	}
	if fromAfar(s) && !s.To.Six() {
		return e.checkNAT(ctx, s, t)
	}
	proxy, err := e.hasProxy(ctx, s, t)
	switch {
	case err != nil:
		return err
	case proxy && recipe.Proxied(s):
		return e.checkRelay(s)
	case !t.rules:
		return t.noRules()
	case s.To == mode.ToLoopback6:
		return &machine.UnsupportedError{
			Missing: "nothing listens on ::1: this Docker publishes no port there without docker-proxy", Remedy: "--to loopback,address"}
	case s.To == mode.ToAddress6 && (s.Mode != mode.PublishDefault || e.defaultIPv6(ctx) != nil):
		return &machine.UnsupportedError{
			Missing: "without docker-proxy, this Docker publishes ports over IPv6 only on networks with IPv6",
			Remedy:  "publish-nat, whose network has IPv6"}
	case s.From == mode.FromContainer && apart:
		return &machine.UnsupportedError{
			Missing: `this Docker isolates the containers of its default network ("icc": false) and publishes ports without docker-proxy`,
			Remedy:  "publish, which uses a network of its own"}
	}
	return e.checkRules(s)
}

func (e *engine) checkProxy(ctx context.Context, s path.Spec, t *trial) error {
	proxy, err := e.hasProxy(ctx, s, t)
	if err != nil {
		return err
	}
	if !proxy {
		return &machine.UnsupportedError{Missing: "this Docker publishes ports without docker-proxy",
			Remedy: `"userland-proxy": true in ` + e.settings() + ` and a restart of docker`}
	}
	return e.checkRelay(s)
}

// settings returns the file with the daemon's settings.
func (e *engine) settings() string {
	if e.kit != nil {
		return "~/.config/docker/daemon.json"
	}
	return "/etc/docker/daemon.json"
}

func (e *engine) checkRelay(s path.Spec) error {
	// firstPktinfo is the Docker Engine whose docker-proxy first answers UDP from the dialled
	// address (moby/moby#48571). Earlier ones answer a container on the bridge from the bridge's
	// address, which the client's socket does not accept.
	const firstPktinfo = 28
	if s.UDP && s.From == mode.FromContainer && e.Major() < firstPktinfo {
		return &machine.UnsupportedError{Missing: fmt.Sprintf(
			"the docker-proxy of %s does not answer UDP from the address that a container dialled", e.Version()),
			Remedy: "Docker Engine 28"}
	}
	if err := e.ns.Do(sock.Supported); err != nil && !s.UDP {
		return &machine.UnsupportedError{
			Missing: "the proxy's bytes cannot be read without sock_diag (CONFIG_INET_TCP_DIAG)",
			Remedy:  remedy.Modprobe("tcp_diag"), Err: err}
	}
	return e.checkAddress(s)
}

func (e *engine) checkFast(ctx context.Context, s path.Spec, t *trial) error {
	if s.UDP {
		return shortcut.ErrUDP
	}
	if err := e.checkProxy(ctx, s, t); err != nil {
		return err
	}
	return e.ns.Do(func() error {
		t, err := shortcut.Load()
		if err != nil {
			return err
		}
		return t.Close()
	})
}

func (e *engine) checkFastLinks(ctx context.Context, s path.Spec, t *trial) error {
	if err := e.checkFast(ctx, s, t); err != nil {
		return err
	}
	return e.ns.Do(bigtcp.Supported)
}

func (e *engine) checkAddress(s path.Spec) error {
	if s.To.Over4() != mode.ToAddress || fromAfar(s) { // Remote has the address
		return nil
	}
	_, err := ownAddress(e.machine.ns, s.To.Six())
	return err
}

// bridgedRules returns an error if rules do not see frames between containers of one network.
func (e *engine) bridgedRules(s path.Spec) error {
	var v string
	key := bridgeNF
	if recipe.Dual(s) {
		key = bridgeNF6
	}
	err := e.ns.Do(func() (err error) { v, err = sysctl.Get(key); return err })
	if err == nil && (v == "1" || e.exempting()) {
		return nil
	}
	return &machine.UnsupportedError{
		Missing: "rules only see frames between containers of one network with " + key +
			"=1 (CONFIG_BRIDGE_NETFILTER)",
		Remedy: remedy.Modprobe("br_netfilter") + ", and a restart of docker", Err: err}
}

func (e *engine) checkRouted(_ context.Context, s path.Spec, _ *trial) error {
	const first = 27 // 26 ignores the option
	if e.Major() >= first {
		return nil
	}
	option := "gateway_mode_ipv4"
	if s.To.Six() {
		option = "gateway_mode_ipv6"
	}
	return &machine.UnsupportedError{Missing: e.Version() + " has no routed networks (" + option +
		"=routed)", Remedy: "Docker Engine 27 or later, or --on lab"}
}

// keepsApart reports whether the default network isolates its containers ("icc": false).
func (e *engine) keepsApart(ctx context.Context) (bool, error) {
	n, err := e.network(ctx, defaultNetwork)
	if err != nil {
		return false, &machine.UnsupportedError{
			Missing: `this Docker has no default network ("bridge": "none")`, Remedy: "--on lab",
			Err: err}
	}
	return n.options["com.docker.network.bridge.enable_icc"] == "false", nil
}

func (e *engine) checkDefault(ctx context.Context, s path.Spec, t *trial) error {
	apart, err := e.keepsApart(ctx)
	if err == nil && apart && t.rules && s.From == mode.FromContainer && !s.To.Outside() {
		return &machine.UnsupportedError{
			Missing: `this Docker isolates the containers of its default network ("icc": false)`,
			Remedy:  "link, which connects two of them; or bridge"}
	}
	if err == nil && recipe.Dual(s) {
		return e.defaultIPv6(ctx)
	}
	return err
}

func (e *engine) checkLink(ctx context.Context, s path.Spec, t *trial) error {
	apart, err := e.keepsApart(ctx)
	if err != nil {
		return err
	}
	if !apart || !t.rules {
		return &machine.UnsupportedError{
			Missing: "containers on this Docker's default network reach each other without a link",
			Remedy:  `"icc": false in /etc/docker/daemon.json and a restart of docker`}
	}
	return e.bridgedRules(s)
}

func (e *engine) checkBridge(_ context.Context, s path.Spec, _ *trial) error {
	if s.From != mode.FromContainer {
		return nil
	}
	_, err := e.userRules()
	return err
}

func (e *engine) checkSwitch(ctx context.Context, s path.Spec, _ *trial) error {
	return e.tried(ctx, s.Mode, (*site).tryOVS)
}

func (e *engine) checkVEPA(ctx context.Context, s path.Spec, t *trial) error {
	if err := e.checkParent(ctx, s, t); err != nil || s.To.Outside() {
		return err
	}
	return e.tried(ctx, s.Mode, (*site).tryReflection)
}

func (e *engine) checkParent(_ context.Context, s path.Spec, _ *trial) error {
	driver, _ := driverOf(s.Mode)
	parent := e.docker.Parent
	e.ask6(s)
	if parent == "" {
		return &machine.UnsupportedError{Missing: driver +
			" devices are made on a network card, and none was chosen",
			Remedy: "--parent eth0, or --on lab"}
	}
	if err := e.ns.Do(func() error { _, err := link.Stats(parent); return err }); err != nil {
		return &machine.UnsupportedError{Missing: "this machine has no network card " + parent,
			Remedy: "ip link lists them", Err: err}
	}
	ns, err := netns.New()
	if err != nil {
		return err
	}
	err = ns.Do(func() error {
		if err := link.AddVeth("try", "try-peer", unix.Gettid()); err != nil {
			return err
		}
		sub := link.SubInterface{Name: "try-sub", Parent: "try", TID: unix.Gettid()}
		if driver == "ipvlan" {
			return link.AddIPvlan(sub, "l2")
		}
		return link.AddMacvlan(sub, "bridge")
	})
	if errors.Is(err, unix.EOPNOTSUPP) {
		err = &machine.UnsupportedError{Missing: "the kernel has no " + driver + " devices (CONFIG_" +
			strings.ToUpper(driver) + ")",
			Remedy: remedy.ModprobeOr(driver), Err: err}
	}
	return errors.Join(err, ns.Close())
}
