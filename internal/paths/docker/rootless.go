package docker

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
	"github.com/bridgetoll/bridgetoll/internal/paths/rootless"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// engineName names the network namespace that RootlessKit made. It contains a rootless engine's
// bridges, rules and docker-proxies. Unless the engine is detached, it is also the network of
// containers with --network host.
const engineName = "the rootless engine's network"

type spot struct {
	ns   *netns.NS
	name string
}

func (s spot) netns() (id string, err error) {
	err = s.ns.Do(func() (err error) { id, err = os.Readlink("/proc/thread-self/ns/net"); return err })
	return id, err
}

func (e *engine) enter() error {
	kit, err := engineAt(e.Host)
	if err != nil {
		return err
	}
	if mayRead(e.words().product) != nil && !rootless.Inside(kit.Daemon) {
		u := &machine.UnsupportedError{
			Missing: "this Docker is rootless, and toll is not in its user namespace",
			Remedy:  "run toll as the engine's user, with --on docker alone; or as root"}
		if e.docker.Remote != nil {
			u.Remedy = remedy.AsRoot("DOCKER_HOST=" + e.Host + " toll …")
		}
		return u
	}
	e.spot = spot{name: engineName}
	if e.ns, err = netns.Join(kit.NetNS); err != nil {
		return err
	}
	e.machine = spot{name: thisMachine}
	if e.machine.ns, err = netns.Here(); err != nil {
		return err
	}
	if e.kit, e.hosts = kit, e.spot; kit.Detached {
		e.hosts = e.machine
	}
	return nil
}

func (e *engine) described() string {
	out := rootless.RootlessKit
	if e.kit.Version != "" {
		out += " " + e.kit.Version
	}
	if e.kit.Net != "" {
		out += ", network by " + e.kit.Net
	}
	if e.kit.Driver != "" {
		out += ", ports by " + e.kit.Driver
	}
	return out
}

var publishedModes = []mode.Name{mode.Publish, mode.PublishDefault, mode.PublishProxy,
	mode.PublishNAT}

// rootlessPublished returns a remedy: the mode that measures this engine's published ports, or what
// the user must change to measure them.
func (e *engine) rootlessPublished(ctx context.Context, s path.Spec) (remedy string) {
	for _, m := range []mode.Name{mode.RootlessPublishNAT, mode.RootlessPublishTap,
		mode.RootlessPublish} {
		known, _ := mode.Find(m)
		o := path.Spec{Mode: m, From: mode.FromHost, To: s.To, UDP: s.UDP}
		if _, ok := known.Route(o.From, o.To); !ok {
			o.To = mode.ToLoopback
		}
		err := e.check(ctx, o)
		var u *machine.UnsupportedError
		switch {
		case err == nil && s.From != mode.FromHost:
			return string(m) + " --from host"
		case err == nil:
			return string(m)
		case errors.As(err, &u):
			remedy = u.Remedy
		}
	}
	return cmp.Or(remedy, string(mode.RootlessPublish))
}

func (e *engine) checkRootless(ctx context.Context, s path.Spec) error {
	if e.Podman != nil {
		return e.checkRootlessPodman(ctx, s)
	}
	m, _ := mode.Find(s.Mode)
	switch out := s.To.Outside(); {
	case m.Rootless && e.kit == nil:
		u := &machine.UnsupportedError{Missing: "this Docker is not rootless",
			Remedy: "publish, which measures what this Docker does; or DOCKER_HOST of a rootless engine"}
		if out {
			u.Remedy = "bridge; or DOCKER_HOST of a rootless engine"
		}
		return u
	case e.kit == nil:
		return nil
	case out:
		return e.checkWayOut(s)
	case m.Rootless:
		return nil
	case slices.Contains(publishedModes, s.Mode):
		return &machine.UnsupportedError{
			Missing: "this Docker is rootless: RootlessKit listens on its published ports",
			Remedy:  e.rootlessPublished(ctx, s)}
	case fromAfar(s):
		return &machine.UnsupportedError{
			Missing: "toll does not measure a rootless engine from another machine",
			Remedy:  "an engine that is not rootless, or --from host,container"}
	}
	switch s.Mode {
	case mode.Host, mode.Bridge, mode.BridgeDefault, mode.Routed, mode.Link:
		return nil
	}
	return &machine.UnsupportedError{
		Missing: "the network of a rootless engine has neither the machine's cards nor root's programs",
		Remedy:  "an engine that is not rootless, or --on lab"}
}

func (e *engine) checkRootlessPublish(ctx context.Context, s path.Spec, t *trial) error {
	if err := e.checkDriver(s); err != nil {
		return err
	}
	if err := e.checkProxy(ctx, s, t); err != nil {
		return err
	}
	return e.checkTaken(t)
}

func (e *engine) checkRootlessNAT(_ context.Context, s path.Spec, t *trial) error {
	if err := e.checkDriver(s); err != nil {
		return err
	}
	if t.proxy {
		return &machine.UnsupportedError{
			Missing: "this Docker starts docker-proxy, which accepts RootlessKit's connections",
			Remedy:  `rootless-publish, which measures what this Docker does; or "userland-proxy": false in ` + e.settings() + ` and a restart of docker`}
	}
	return e.checkTaken(t)
}

func (e *engine) checkRootlessTap(_ context.Context, s path.Spec, t *trial) error {
	if err := e.checkDriver(s); err != nil {
		return err
	}
	if e.Major() < firstChildAddress {
		return &machine.UnsupportedError{
			Missing: "the rules of " + e.Version() + " match only the machine's address, not the one of packets that come over the tap device",
			Remedy:  "Docker Engine 28; or " + driverVariable + "=builtin"}
	}
	return e.checkTaken(t)
}

// firstChildAddress is the first Docker Engine whose rules have the address that RootlessKit dials.
// From then on RootlessKit publishes ports without docker-proxy.
const firstChildAddress = 28

const driverVariable = "DOCKERD_ROOTLESS_ROOTLESSKIT_PORT_DRIVER"

// byTap reports whether the port driver's connections arrive at the engine's tap device.
func byTap(driver string) bool { return driver == rootless.Slirp4netns || driver == rootless.Gvisor }

func (e *engine) checkDriver(s path.Spec) error {
	const builtin = "builtin"
	driver := cmp.Or(e.kit.Driver, builtin)
	missing := "RootlessKit's port driver " + driver + " relays this Docker's ports"
	instead := driverVariable + "=" + builtin
	if byTap(driver) && e.Major() >= firstChildAddress {
		instead = string(mode.RootlessPublishTap)
	}
	switch tap := s.Mode == mode.RootlessPublishTap; {
	case tap && !byTap(driver):
		return &machine.UnsupportedError{Missing: missing + ", not over a tap device",
			Remedy: driverVariable + "=slirp4netns; rootless-publish measures the default"}
	case !tap && byTap(driver):
		return &machine.UnsupportedError{Missing: missing + ", over its tap device", Remedy: instead}
	case !tap && driver != builtin:
		return &machine.UnsupportedError{Missing: missing + ", and toll does not know its path",
			Remedy: instead + "; pasta's own relaying is measured on lab and podman"}
	case s.UDP && driver == rootless.Slirp4netns && s.To == mode.ToLoopback:
		return rootless.ErrHostLoopback
	case s.UDP:
		relay, err := e.relay()
		if err == nil {
			err = e.checkIO(relay)
		}
		if err != nil {
			return err
		}
	}
	return e.checkAddress(s)
}

// relay returns the process that listens on the engine's published ports.
func (e *engine) relay() (pid int, err error) {
	if e.kit.Driver == rootless.Slirp4netns {
		return local.Child(e.kit.Kit, e.kit.Driver)
	}
	return e.kit.Kit, nil
}

func (e *engine) checkIO(pid int) error {
	variable := "DOCKER_HOST="
	if e.Podman != nil {
		variable = "CONTAINER_HOST="
	}
	return local.CheckIO(pid, remedy.AsRoot(variable+e.Host+" toll …"))
}

func (e *engine) checkTaken(t *trial) error {
	switch {
	case t.taken:
		return nil
	case e.Major() < firstChildAddress:
		return &machine.UnsupportedError{
			Missing: e.Version() + ` is rootless, and with "userland-proxy": false it publishes no port on the machine`,
			Remedy:  "Docker Engine 28"}
	}
	return &machine.UnsupportedError{Missing: "RootlessKit does not listen on the published port",
		Remedy: driverVariable + "=builtin"}
}

// rootlessPorts returns the recipe of a mode with published ports. It calls build, unless the path
// is to the outside.
func rootlessPorts(build func(*site) error) func(*site) error {
	return func(s *site) error {
		s.at = s.engine.machine
		if s.path.Spec.To.Outside() {
			return s.outOfEngine()
		}
		return onPorts(build)(s)
	}
}

// taps gives the path the hops from the machine's sockets to the engine's tap device. One process
// listens on all ports: RootlessKit, or a program that RootlessKit started.
func (s *site) taps() error {
	e := s.engine
	pid, err := e.relay()
	if err != nil {
		return err
	}
	tap := path.Hop{Kind: mode.HopTap, Name: rootless.Tap, Where: e.name,
		Read: local.Device(e.ns, rootless.Tap, true)}
	relay := local.Proxy{Space: e.machine.ns, PID: pid, Others: true, Second: s.path.Second,
		Frames: tap.Read}
	kind := driverHops[e.kit.Driver]
	s.Give(mode.HopTap, tap)
	s.Give(kind, local.PortHops(s.path, kind, relay, e.kit.Driver, e.machine.name,
		func(r *local.Proxy, i int) {
			r.Tap, r.Listens = s.Servers[i].ns, s.Dial[i].Port()
		})...)
	return nil
}

// kits gives the path the hops of RootlessKit, which listens on all ports, unless the engine is not
// rootless. With proxy, RootlessKit dials docker-proxy.
func (s *site) kits(proxy bool) {
	e := s.engine
	if e.kit == nil {
		return
	}
	name := rootless.RootlessKit
	if e.kit.Version != "" {
		name += " " + e.kit.Version
	}
	relay := local.Proxy{Space: e.machine.ns, Dials: e.ns, PID: e.kit.Kit, Others: true,
		Beside: proxy, Second: s.path.Second}
	s.Give(mode.HopRootlessKit, local.PortHops(s.path, mode.HopRootlessKit, relay, name,
		e.machine.name,
		func(r *local.Proxy, i int) { r.Listens, r.Target = s.Dial[i].Port(), s.Dial[i] })...)
}

// firstClient connects to the machine's own address and reports whether the server sees the
// client's address. RootlessKit 3 installs rules and routes when the first such client connects.
// RootlessKit sends datagrams from an address of its own.
func (s *site) firstClient() (preserved bool, err error) {
	if s.engine.kit == nil || s.path.Spec.To != mode.ToAddress || s.path.Spec.UDP {
		return false, nil
	}
	const limit = 10 * time.Second
	b := s.Servers[0]
	ends, err := local.ConnectOnce(s.at.ns, b.ns, s.Dial[0], s.Ports(0)[0].Target, limit)
	if err != nil {
		return false, err
	}
	s.path.Facts["source address"] = ends.String()
	return ends.Preserved(), nil
}

// taken reports whether a process of the machine listens on the port.
func (e *engine) taken(port uint16) (is bool, err error) {
	err = e.machine.ns.Do(func() (err error) { is, err = sock.Bound("tcp", port); return err })
	return is, err
}

// FindRootless returns this environment's Docker Engine, or nil if it is not rootless.
func FindRootless() *rootless.Engine {
	host, err := dockerapi.FindHost(os.Getenv)
	if err != nil {
		return nil
	}
	e, err := engineAt(host)
	if err != nil {
		return nil
	}
	return e
}

func engineAt(host string) (*rootless.Engine, error) {
	socket, err := dockerapi.Socket(host)
	if err != nil {
		return nil, err
	}
	return rootless.FindEngine(socket)
}

// UserNamespace returns the PID of a process in the user namespace of this environment's rootless
// Docker Engine or, with podman, Podman. It returns 0 if the engine is not rootless, or if this
// process may enter the engine's networks already.
func UserNamespace(podman bool) int {
	if mayRead("") == nil {
		return 0
	}
	pid := 0
	if podman {
		pid = FindRootlessPodman()
	} else if e := FindRootless(); e != nil {
		pid = e.Daemon
	}
	if pid != 0 && rootless.Inside(pid) {
		return 0
	}
	return pid
}

// Rootless returns the names of the modes that are compared on a rootless engine by default.
func Rootless() []string {
	return recipe.Names(map[mode.Name]bool{mode.Native: true, mode.Host: true, mode.Bridge: true,
		mode.RootlessPublish: true, mode.RootlessPublishNAT: true})
}
