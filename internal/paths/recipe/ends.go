package recipe

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// Ports inside containers.
const (
	ServerPort = 5201
	SecondPort = 5301 // the second port of a server with two
)

// Container is a container in which a server or client runs.
type Container interface {
	Place() path.Place
	Addr() netip.Addr
	// Hop returns the hop of the container's own device. toServer means that packets which the
	// device receives go to the server.
	Hop(toServer bool) path.Hop
}

// Ends has the servers and clients of a path that is being built.
type Ends[C Container] struct {
	// Servers and Clients are the containers of the ends. They are empty for ends that are
	// processes on a machine.
	Servers, Clients []C
	// Dial has the address that clients dial, by server.
	Dial []netip.AddrPort
	Given

	path *path.Path
}

// NewEnds returns Ends without servers and clients for a path.
func NewEnds[C Container](p *path.Path) Ends[C] { return Ends[C]{path: p} }

// Label returns the name of the container of end i of n in a role.
func Label(role string, i, n int) string {
	if n > 1 {
		return fmt.Sprintf("%s container %d", role, i+1)
	}
	return role + " container"
}

// AddServer places the next server in a container. Clients dial the container unless the recipe
// sets another address.
func (e *Ends[C]) AddServer(c C) {
	e.Servers = append(e.Servers, c)
	e.Listen(c.Place(), ServerPort, netip.AddrPortFrom(c.Addr(), ServerPort))
}

// Listen places the next server, which listens on the port at all addresses of dial's family.
// Clients dial the address dial.
func (e *Ends[C]) Listen(place path.Place, port uint16, dial netip.AddrPort) {
	anywhere := netip.IPv4Unspecified()
	if dial.Addr().Is6() {
		anywhere = netip.IPv6Unspecified()
	}
	e.path.Servers = append(e.path.Servers,
		path.Server{Place: place, Listen: netip.AddrPortFrom(anywhere, port)})
	e.Dial = append(e.Dial, dial)
}

// AddClient places the next client in a container.
func (e *Ends[C]) AddClient(c C) {
	e.Clients = append(e.Clients, c)
	e.PlaceClient(c.Place())
}

// PlaceClient places the next client.
func (e *Ends[C]) PlaceClient(place path.Place) {
	n, _ := e.path.Spec.Count()
	e.path.Clients = append(e.path.Clients,
		path.Client{Place: place, Server: len(e.path.Clients) % n})
}

// PlaceClients places all clients in one place.
func (e *Ends[C]) PlaceClients(place path.Place) {
	_, m := e.path.Spec.Count()
	for range m {
		e.PlaceClient(place)
	}
}

// Port is a port of a server, as clients dial it and in the server's container.
type Port struct{ Dial, Target netip.AddrPort }

// Ports returns the ports of a server in a container: the load's, and any second one.
func (e *Ends[C]) Ports(server int) []Port {
	dial, to := e.Dial[server], e.Servers[server].Addr()
	out := []Port{{dial, netip.AddrPortFrom(to, ServerPort)}}
	if e.path.Spec.Second {
		n := cmp.Or(e.path.Second, SecondPort)
		out = append(out, Port{netip.AddrPortFrom(dial.Addr(), n), netip.AddrPortFrom(to, n)})
	}
	return out
}

// Connect sets the servers that the clients dial.
func (e *Ends[C]) Connect() {
	for i, c := range e.path.Clients {
		e.path.Clients[i].Dial = e.Dial[c.Server]
	}
	if e.path.Spec.Second && e.path.Second == 0 {
		e.path.Second = SecondPort
	}
}

func (e *Ends[C]) assemble(ways []mode.Route, rest func(At) []path.Hop) ([]path.Hop, error) {
	return e.Given.assemble(ways, func(a At) []path.Hop {
		switch {
		case a.ofClients():
			return e.ClientHops()
		case a.ofServers():
			return e.ServerHops()
		}
		return rest(a)
	})
}

// EachServer returns a hop for each server. Only the bytes of the server's clients cross it.
func (e *Ends[C]) EachServer(hop func(i int) path.Hop) []path.Hop {
	var out []path.Hop
	n, _ := e.path.Spec.Count()
	for i := range n {
		h := hop(i)
		h.Clients = e.path.Spec.TalkTo(i)
		out = append(out, h)
	}
	return out
}

// EachClient returns a hop for each client. Only its bytes cross it.
func (e *Ends[C]) EachClient(hop func(i int) path.Hop) []path.Hop {
	var out []path.Hop
	for i := range e.Clients {
		h := hop(i)
		h.Clients = e.path.Spec.Alone(i)
		out = append(out, h)
	}
	return out
}

// ServerHops returns the hops of the servers' own devices, or nil if no server is in a container.
func (e *Ends[C]) ServerHops() []path.Hop {
	if len(e.Servers) == 0 {
		return nil
	}
	return e.EachServer(func(i int) path.Hop { return e.Servers[i].Hop(true) })
}

// ClientHops returns the hops of the clients' own devices, or nil if no client is in a container.
func (e *Ends[C]) ClientHops() []path.Hop {
	return e.EachClient(func(i int) path.Hop { return e.Clients[i].Hop(false) })
}

// Dual reports whether a path's networks have IPv6 in addition to IPv4, as with `docker network
// create --ipv6`, and its machines have Docker's IPv6 rules. On networks without IPv6, the default,
// docker-proxy serves connections to ::1 and to the machine's own IPv6 address.
func Dual(s path.Spec) bool {
	if m, _ := mode.Find(s.Mode); m.Rootless { // without Docker's networks, or with its default
		return false
	}
	switch s.Mode {
	case mode.Native, mode.Fast, mode.FastLinks:
		return false
	case mode.Host, mode.Shared:
		return s.To.Six()
	case mode.PublishProxy, mode.Publish, mode.PublishDefault:
		return s.To == mode.ToAddress6 && s.From == mode.FromContainer
	}
	return s.To.Six() && s.To != mode.ToLoopback6
}

// Proxied reports whether docker-proxy, if it listens on the published port, receives the path's
// connections.
func Proxied(s path.Spec) bool { return Crosses(mode.Publish, s.From, s.To, mode.HopProxy) }

// Crosses reports whether the usual route of a mode has a hop of the kind.
func Crosses(m mode.Name, from mode.Placement, to mode.Target, k mode.HopKind) bool {
	known, _ := mode.Find(m)
	r, _ := known.Route(from, to)
	return slices.Contains(r.Hops, k)
}

// Spliced reports whether a program that publishes the path's ports uses sockets in the containers
// instead of a tap device.
func Spliced(s path.Spec) bool { return !Crosses(s.Mode, s.From, s.To, mode.HopTap) }

// Names returns the modes of a backend's recipes, in the catalogue's order.
func Names[R any](recipes map[mode.Name]R) []string {
	var out []string
	for _, m := range mode.All() {
		if _, ok := recipes[m.Name]; ok {
			out = append(out, string(m.Name))
		}
	}
	return out
}
