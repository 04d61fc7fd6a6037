package docker

import (
	"context"
	"net/netip"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// Remote is another machine with one end of each path between the two: the clients that dial this
// machine, or the servers outside.
type Remote struct {
	Addr  netip.Addr // this machine's address for clients; invalid: none
	Addr6 netip.Addr // the same over IPv6
	// Client places the client of a path and returns the hops from it to this machine's card. The
	// client dials the given address. on may be nil.
	Client func(ctx context.Context, p *path.Path, dial netip.AddrPort, on *Segment) (
		path.Place, []path.Hop, error)
	// Server places the server of a path outside. It returns the server's place, the address that
	// clients on this machine dial and the hop from this machine's card to the server.
	Server  func(ctx context.Context, p *path.Path) (path.Place, netip.AddrPort, path.Hop, error)
	Machine path.Machine
	// Route adds a route on the other machine to one of this machine's networks, until the path is
	// closed. This machine is its gateway; with direct the route has no gateway, only the other
	// machine's card.
	Route func(ctx context.Context, p *path.Path, to netip.Prefix, direct bool) error
}

// Segment is a network of both machines' cards, for sub-interfaces.
type Segment struct {
	Driver, Kind string // Docker's driver and its mode, such as macvlan and bridge
	Subnet       netip.Prefix
	Client       netip.Addr // the client's address, which nothing else uses
}

func (r *Remote) at(six bool) netip.Addr {
	if six {
		return r.Addr6
	}
	return r.Addr
}

// remotely lists the modes that remote clients reach. The value is true if only containers on the
// other machine do.
var remotely = map[mode.Name]bool{mode.Host: false, mode.Publish: false, mode.PublishDefault: false,
	mode.PublishNAT: false, mode.PublishProxy: false,
	mode.Routed: false, mode.MacvlanBridge: true, mode.IPvlanL2: true}

var outward = map[mode.Name]bool{mode.Host: true, mode.Bridge: true, mode.BridgeDefault: true,
	mode.Routed: true, mode.MacvlanBridge: true, mode.MacvlanPrivate: true, mode.MacvlanVEPA: true,
	mode.IPvlanL2: true, mode.IPvlanL3: true, mode.IPvlanL3S: true, mode.Overlay: true,
	mode.RootlessPublish: true, mode.RootlessPublishNAT: true, mode.RootlessPublishTap: true, mode.Pasta: true,
	mode.Slirp4netns: true, mode.RootlessPort: true}

// Remotely returns the names of modes that remote clients reach.
func Remotely() []string { return recipe.Names(remotely) }

// Outward returns the names of modes from which clients reach a process on the other machine.
func Outward() []string { return recipe.Names(outward) }

func fromAfar(s path.Spec) bool {
	return s.From == mode.FromRemote || s.From == mode.FromRemoteContainer
}

// Apart reports whether one end of the path is on the other machine.
func Apart(s path.Spec) bool { return fromAfar(s) || s.To.Outside() }

// ByRoute reports whether the other machine needs a route to the path's containers, and whether it
// is direct; see Remote.Route.
func ByRoute(s path.Spec) (needed, direct bool) {
	switch {
	case s.Mode == mode.Routed:
		return Apart(s), false
	case s.To.Outside() && outward[s.Mode]:
		driver, kind := driverOf(s.Mode)
		needed = driver == "macvlan" || driver == "ipvlan"
		return needed, needed && !strings.HasPrefix(kind, "l3")
	}
	return false, false
}

func (r *Remote) refuse(s path.Spec) error {
	contained, known := remotely[s.Mode]
	switch {
	case !Apart(s):
		return nil
	case s.To.Outside():
		return r.has(s.To.Six())
	case contained && s.From != mode.FromRemoteContainer:
		return &machine.UnsupportedError{Missing: "the containers of " + string(s.Mode) +
			" have a network of their own on the wire, and the other machine has no address in it",
			Remedy: "--from remote-container"}
	case s.Mode == mode.Routed && s.From == mode.FromRemoteContainer:
		return &machine.UnsupportedError{
			Missing: "the other machine's engine would rewrite what a container there sends, and a routed path has no NAT", Remedy: "--from remote; or --on lab"}
	case !known:
		return &machine.UnsupportedError{Missing: "toll cannot measure mode " + string(s.Mode) +
			" of a Docker Engine from another machine", Remedy: "--on lab, or swarm"}
	case s.To.Six() && s.From == mode.FromRemoteContainer && s.Mode != mode.Host:
		return &machine.UnsupportedError{
			Missing: "toll gives the client's container on the other machine no IPv6",
			Remedy:  "--from remote, or -4"}
	case s.Mode == mode.PublishProxy && !s.To.Six():
		return &machine.UnsupportedError{
			Missing: "over IPv4, packets from another machine are handled by NAT, not by docker-proxy", Remedy: "publish; or -6, of a network without IPv6"}
	}
	return r.has(s.To.Six())
}

// has returns a *machine.UnsupportedError if this machine has no address of the family on the wire.
func (r *Remote) has(six bool) error {
	switch {
	case six && !r.Addr6.IsValid():
		return &machine.UnsupportedError{
			Missing: "this machine has no IPv6 address on the wire to the other one",
			Remedy:  "-4, or an address of a network that both machines have"}
	case !six && !r.Addr.IsValid():
		return &machine.UnsupportedError{
			Missing: "this machine has no IPv4 address on the wire to the other one",
			Remedy:  "-6, or an address of a network that both machines have"}
	}
	return nil
}

// remote returns the machine of the path's clients, or nil if they are on this one.
func (s *site) remote() *Remote {
	if fromAfar(s.path.Spec) {
		return s.engine.docker.Remote
	}
	return nil
}

// routedTo chooses a subnet that is unused on both machines, and gives the other machine a route to
// it.
func (s *site) routedTo(r *Remote, options map[string]string) error {
	e := s.engine
	e.laying.Lock() // two would choose the same network
	defer e.laying.Unlock()
	subnet, err := s.freeSubnet()
	if err != nil {
		return err
	}
	s.userNetwork()
	if s.network, err = s.makeNetwork(&s.path.Undo, "bridge", options, subnet, s.dual()); err != nil {
		return err
	}
	if s.path.Spec.To.Six() {
		subnet = s.network.subnet6
	}
	return r.Route(s.ctx, s.path, subnet, false)
}

// placeClients places the clients on the other machine or as processes on this one, or else calls
// contained, which adds their containers.
func (s *site) placeClients(contained func() error) error {
	switch r := s.remote(); {
	case r != nil:
		return s.placeRemote(r, nil)
	case s.path.Spec.From == mode.FromHost:
		s.PlaceClients(s.machine())
		return nil
	}
	return contained()
}

func (s *site) placeRemote(r *Remote, on *Segment) error {
	place, hops, err := r.Client(s.ctx, s.path, s.Dial[0], on)
	if err != nil {
		return err
	}
	s.Approach(hops)
	s.PlaceClients(place)
	for i := range s.path.Clients {
		s.path.Clients[i].Machine = r.Machine
	}
	return nil
}

// serveOutside places the server on the other machine.
func (s *site) serveOutside() error {
	r := s.engine.docker.Remote
	place, dial, wire, err := r.Server(s.ctx, s.path)
	if err != nil {
		return err
	}
	s.Give(mode.HopWire, wire)
	s.path.Facts["server"] = "a process on the other machine"
	s.Listen(place, dial.Port(), dial)
	s.path.Servers[0].Machine = r.Machine
	return nil
}

// outside places the ends of a path from containers on a bridge to the other machine.
func (s *site) outside() error {
	if err := s.serveOutside(); err != nil {
		return err
	}
	return s.plainClients()
}
