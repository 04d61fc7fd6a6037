package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
	"github.com/bridgetoll/bridgetoll/internal/paths/rootless"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// userRelay describes the kind of process that relays the published ports of rootless Podman.
type userRelay struct {
	network string // as podman run's --network; "": a network of toll's
	kind    mode.HopKind
	program string // prefix of the process's name
}

var userRelays = map[mode.Name]userRelay{
	mode.Pasta:        {"pasta", mode.HopPasta, "pasta"},
	mode.Slirp4netns:  {"slirp4netns:port_handler=slirp4netns", mode.HopSlirp, "slirp4netns"},
	mode.RootlessPort: {"", mode.HopRootlessPort, "rootlessport"},
}

// From this version on Podman refuses --network slirp4netns.
const podmanWithoutSlirp = 6

var errNoSlirp = &machine.UnsupportedError{Missing: "Podman has no slirp4netns since version 6",
	Remedy: "pasta or rootlessport, or --on lab"}

func (e *engine) checkRootlessPodman(ctx context.Context, s path.Spec) error {
	_, relayed := userRelays[s.Mode]
	switch {
	case !e.rootless && relayed:
		return &machine.UnsupportedError{
			Missing: "this Podman runs as root and publishes ports by the kernel's rules",
			Remedy:  "publish; or CONTAINER_HOST with the address of a user's Podman service"}
	case !e.rootless:
		return nil
	case s.To.Outside() && (s.Mode == mode.Bridge || s.Mode == mode.BridgeDefault):
		return crossesTap("Podman",
			string(mode.RootlessPort)+", whose way out is that of a container on a bridge")
	case s.To.Outside() && s.Mode == mode.RootlessPort:
		if err := e.enterBridges(ctx); err != nil {
			return err
		}
		return e.checkWayThroughTap(s)
	case s.Mode == mode.Bridge, s.Mode == mode.BridgeDefault:
		if err := e.enterBridges(ctx); err != nil {
			return err
		}
		if s.Mode == mode.BridgeDefault {
			return e.checkPodmanDefault(ctx, s, nil)
		}
		return nil
	case !relayed:
		return &machine.UnsupportedError{
			Missing: "this Podman is rootless: its networks are not in the machine's network namespace",
			Remedy:  "host, shared, bridge, pasta or rootlessport; or root's Podman"}
	case s.Mode == mode.Slirp4netns && e.Major() >= podmanWithoutSlirp:
		return errNoSlirp
	case s.UDP && s.Mode == mode.Slirp4netns && s.To == mode.ToLoopback:
		return rootless.ErrHostLoopback
	case s.UDP && s.Mode == mode.Pasta && !s.To.Outside():
		pasta := rootless.Said(rootless.Pasta, e.Podman.Host.Pasta.Version)
		if err := rootless.CheckAnswers(pasta); err != nil {
			return err
		}
	}
	return e.checkAddress(s)
}

func findPodman(host string) (pid int, err error) {
	socket, err := dockerapi.Socket(host)
	if err != nil {
		return 0, err
	}
	return rootless.FindPodman(socket)
}

// FindRootlessPodman returns the PID of a process in the namespaces of this environment's rootless
// Podman, or 0 if it finds none.
func FindRootlessPodman() int {
	pid, err := findPodman(dockerapi.FindPodman(os.Getenv))
	if err != nil {
		return 0
	}
	return pid
}

// RootlessPodman returns the names of the modes that are compared on a rootless Podman by default.
func RootlessPodman() []string {
	return recipe.Names(map[mode.Name]bool{mode.Native: true, mode.Host: true, mode.Bridge: true,
		mode.Pasta: true, mode.RootlessPort: true})
}

// enterBridges makes the engine's networks those in the network namespace of rootless Podman's
// bridges. Podman removes that namespace when no container is on a bridge, so one container stays
// on a bridge until the engine is closed.
func (e *engine) enterBridges(ctx context.Context) error {
	if e.lost != nil {
		return e.lost
	}
	if err := e.makeImage(ctx); err != nil {
		return err
	}
	e.trying.Lock()
	defer e.trying.Unlock()
	if e.spot != e.machine {
		return nil
	}
	p := &path.Path{Facts: map[string]string{}, Sysctls: map[string]string{}}
	s, err := e.newSite(ctx, p)
	if err == nil {
		err = s.ownNetwork()
	}
	if err == nil {
		_, err = s.addBox(wanted{what: "container that keeps the bridges", role: "keeper",
			network: s.network.name})
	}
	if err == nil {
		err = e.joinBridges()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("enter the network of rootless Podman: %w", err), p.Close())
	}
	e.held.Push("leave the network of rootless Podman", p.Close)
	return nil
}

func (e *engine) joinBridges() error {
	ns, err := netns.Join(rootless.BridgesOf(e.podman, e.Podman.Store.RunRoot))
	if errors.Is(err, fs.ErrNotExist) {
		return &machine.UnsupportedError{Missing: "the network namespace of rootless Podman's bridges is not where Podman 4 to 6 keep it",
			Remedy: "pasta or rootlessport", Err: err}
	}
	if err == nil {
		e.spot = spot{ns, engineName}
	}
	return err
}

func (s *site) onBridges() { s.at, s.spot = s.engine.spot, s.engine.spot }

func (s *site) podmanBridge() error {
	s.onBridges()
	return s.bridge()
}

func (s *site) podmanBridgeDefault() error {
	s.onBridges()
	return s.bridgeDefault()
}

// program returns the name and version of a relay's program.
func (s *site) program(r userRelay) string {
	host := s.engine.Podman.Host
	switch r.kind {
	case mode.HopPasta:
		return rootless.Said(r.program, host.Pasta.Version)
	case mode.HopSlirp:
		return rootless.Said(r.program, host.Slirp.Version)
	}
	return r.program + " " + s.engine.Podman.Version.Version // Podman's own
}

func (s *site) publishByUser() error {
	r := userRelays[s.path.Spec.Mode]
	switch {
	case s.path.Spec.To.Outside() && r.network == "":
		return s.outOfBridges()
	case s.path.Spec.To.Outside():
		return s.outByUser(r.network)
	}
	if r.network == "" {
		if err := s.ownNetwork(); err != nil {
			return err
		}
	} else {
		s.ownRules()
		s.path.Facts["network"] = "as by podman run --network " + r.network
		s.network = &bridgeNet{name: r.network}
	}
	if err := s.published(); err != nil {
		return err
	}
	var relays []path.Hop
	for i, p := range s.Dial {
		b := s.Servers[i]
		if s.path.Spec.To.Six() {
			s.path.Servers[i].Listen = netip.AddrPortFrom(netip.IPv6Unspecified(), serverPort)
		}
		pid, err := s.holder(r.program, p)
		if err != nil {
			return err
		}
		if b.device, err = onlyDevice(b); err != nil {
			return err
		}
		proxy := local.Proxy{Space: s.at.ns, PID: pid, Listens: p.Port(),
			Target: netip.AddrPortFrom(b.Addr(), serverPort)}
		b.kind = mode.HopTap
		guard := b.loopbackHop()
		if recipe.Spliced(s.path.Spec) {
			proxy.Dials, guard = b.ns, b.Hop(true)
		} else {
			proxy.Tap, proxy.Frames = b.ns, b.Hop(true).Read
		}
		relay := local.RelayHop(s.path, r.kind, proxy, s.program(r), s.at.name)
		guard = local.Unused(guard)
		relay.Clients, guard.Clients = s.path.Spec.TalkTo(i), s.path.Spec.TalkTo(i)
		relays = append(relays, relay)
		s.path.Guards = append(s.path.Guards, guard)
	}
	s.Give(r.kind, relays...)
	s.PlaceClients(s.machine())
	return nil
}

// onlyDevice returns the name of the container's only device. pasta gives it the name of the
// machine's card.
func onlyDevice(b *box) (device string, err error) {
	var names []string
	err = b.ns.Do(func() (err error) { names, err = link.Names(); return err })
	if err != nil {
		return "", err
	}
	names = slices.DeleteFunc(names, func(n string) bool { return n == "lo" })
	if len(names) != 1 {
		return "", fmt.Errorf("%s has the devices %q, not one", b.what, names)
	}
	return names[0], nil
}

// holder returns the PID of the process that listens on a published port and whose name begins with
// program.
func (s *site) holder(program string, at netip.AddrPort) (pid int, err error) {
	list := sock.Listeners
	if s.path.Spec.UDP {
		list = sock.Datagram
	}
	var inode uint32
	err = s.at.ns.Do(func() error {
		all, err := list()
		for _, l := range all {
			if l.Listening && l.Local == at {
				inode = l.Inode
			}
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	names, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return 0, err
	}
	for _, file := range names {
		name, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(name), program) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			continue
		}
		if sockets, err := sock.Inodes(pid); err == nil && sockets[inode] {
			return pid, nil
		}
	}
	return 0, &machine.UnsupportedError{
		Missing: fmt.Sprintf("toll finds no process %s that listens on %s",
			program, at),
		Remedy: "run toll as root, outside containers"}
}
