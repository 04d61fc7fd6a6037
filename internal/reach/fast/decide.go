// Package fast redirects clients on this machine past docker-proxy, straight to the containers that
// publish a port on a loopback address. decideRoutes decides which ports may have a shortcut, and
// judge which shortcuts serve clients as docker-proxy does. Fast puts the shortcuts into the kernel
// (internal/kernel/shortcut) and removes them.
package fast

import (
	"cmp"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/shortcut"
	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
)

// Choice holds the ports and parts that the user asked for.
type Choice struct {
	Ports []uint16
	All   bool
	Parts []Part // empty: Connect
}

// Part is a part of toll fast that can be on without the others.
type Part string

const (
	Connect Part = "connect" // shortcuts past docker-proxy
	Links   Part = "links"   // BIG TCP on the host's side of containers' links
)

// Parts returns all parts.
func Parts() []Part { return []Part{Connect, Links} }

// With reports whether the choice includes a part.
func (c Choice) With(p Part) bool {
	return slices.Contains(c.Parts, p) || len(c.Parts) == 0 && p == Connect
}

func (c Choice) has(port uint16) bool { return c.All || slices.Contains(c.Ports, port) }

// Route is a shortcut that a port may have: clients that dial Dial are redirected to Target.
type Route struct {
	Container   string         `json:"container"`
	ContainerID string         `json:"container_id"`
	Dial        netip.AddrPort `json:"dial"`
	Target      netip.AddrPort `json:"target"`
	Taken       uint64         `json:"taken"` // number of connections

	host     netip.AddrPort // where docker-proxy listens
	listener shortcut.Listener
	server   int // PID of a process in the container
}

// Refusal is a published port that gets no shortcut, with the reason.
type Refusal struct {
	Container string         `json:"container,omitempty"`
	Proto     string         `json:"proto"`
	Host      netip.AddrPort `json:"host"` // only a port if nothing publishes it
	Why       string         `json:"why"`
	Remedy    string         `json:"remedy,omitempty"`
}

var loopbacks = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}

func decideRoutes(f *ports.Facts, want Choice) (routes []Route, left []Refusal) {
	found := map[uint16]bool{}
	for _, c := range f.Containers {
		if c.Measuring {
			continue // toll measures its normal path
		}
		for _, p := range c.Published {
			if !want.has(p.Host.Port()) {
				continue
			}
			found[p.Host.Port()] = true
			r, why, remedy := decide(f, c, p)
			if why != "" {
				left = append(left, Refusal{c.Name, p.Proto, p.Host, why, remedy})
				continue
			}
			routes = append(routes, r)
		}
	}
	for _, p := range want.Ports {
		if !found[p] {
			left = append(left, Refusal{Proto: "tcp",
				Host:   netip.AddrPortFrom(netip.IPv4Unspecified(), p),
				Why:    "no running container publishes it",
				Remedy: "docker ps lists what is published"})
		}
	}
	slices.SortFunc(routes, func(a, b Route) int {
		return cmp.Or(cmp.Compare(a.Dial.Port(), b.Dial.Port()), a.Dial.Compare(b.Dial))
	})
	return routes, left
}

// decide returns why the port gets no shortcut; "" if it may have one.
func decide(f *ports.Facts, c ports.Container, p ports.Published) (r Route, why, remedy string) {
	switch {
	case p.Proto != "tcp":
		return r, "toll fast redirects only TCP", ""
	case c.Rootless:
		return r, "its engine is rootless: its containers are in another network", ""
	case c.PID == 0 || c.State != "running":
		return r, "its container is " + cmp.Or(c.State, "not running"), ""
	case c.Host || c.Shares != "":
		return r, "its container has no network of its own", ""
	case f.Switches.RoutedBySocket != "":
		return r,
			"policy routing may refuse a client's packets, or send them by another route than " +
				"docker-proxy's: " + f.Switches.RoutedBySocket, "ip rule shows it"
	}
	px, l, found := proxyOf(f, p)
	dial, ok := dials(p.Host)
	switch {
	case !ok:
		return r, "it is published on " + p.Host.Addr().String() +
			" only; toll fast redirects only clients that dial 127.0.0.1 or ::1", ""
	case !found:
		return r, "no docker-proxy listens for it",
			`with "userland-proxy": false in daemon.json, NAT forwards the port without one`
	case !slices.Contains(c.Addrs, px.Container.Addr()) || px.Container.Port() != p.Port:
		return r, "docker-proxy forwards to an address that the engine does not report: " +
			px.Container.String(), ""
	case silent(c, px.Container):
		return r, nobody + px.Container.String() + " in its container", ""
	}
	bridge, ok := towards(f, px.Container.Addr())
	if !ok {
		return r, "no Docker bridge leads to " + px.Container.Addr().String(), ""
	}
	if why := attached(f, c, bridge); why != "" {
		return r, why, ""
	}
	return Route{Container: c.Name, ContainerID: c.ID, Dial: dial, Target: px.Container,
		host:     p.Host,
		listener: shortcut.Listener{PID: px.PID, Inode: l.Inode, Command: px.Command},
		server:   c.PID}, "", ""
}

// nobody begins the reason for a port that gets a shortcut as soon as a server listens.
const nobody = "nothing listens on "

// silent reports whether a container certainly has no TCP server at an address.
func silent(c ports.Container, at netip.AddrPort) bool {
	return c.ListenersKnown && !slices.ContainsFunc(c.Listeners, func(l ports.Listener) bool {
		a := l.Addr.Addr()
		return l.Proto == "tcp" && l.Addr.Port() == at.Port() && (a.Unmap() == at.Addr() ||
			a.IsUnspecified() && (a.Is4() == at.Addr().Is4() || a.Is6() && !l.V6Only))
	})
}

// dials returns the loopback address at which clients dial a published one. It returns false if
// there is none.
func dials(host netip.AddrPort) (netip.AddrPort, bool) {
	for _, a := range loopbacks {
		if host.Addr() == a || host.Addr().IsUnspecified() && host.Addr().Is4() == a.Is4() {
			return netip.AddrPortFrom(a, host.Port()), true
		}
	}
	return host, host.Addr().IsLoopback()
}

func proxyOf(f *ports.Facts, p ports.Published) (ports.Proxy, ports.Listener, bool) {
	for _, px := range f.Proxies {
		if px.Rootless || px.Proto != p.Proto || px.Host != p.Host ||
			filepath.Base(strings.Join(px.Command[:min(1, len(px.Command))],
				"")) != "docker-proxy" {
			continue
		}
		for _, l := range f.Listeners {
			if l.Proto == p.Proto && l.Addr == p.Host && len(l.Owners) == 1 &&
				l.Owners[0].PID == px.PID {
				return px, l, true
			}
		}
	}
	return ports.Proxy{}, ports.Listener{}, false
}

// attached returns what may drop or change packets at the devices of both paths (lo, the bridge and
// the container's port of the bridge), or "". It leaves out nftables' rules, which judge tests in
// the copy of the network.
func attached(f *ports.Facts, c ports.Container, bridge string) (why string) {
	if !f.Known.Attached {
		return "cannot read which programs and filters are attached to network devices"
	}
	for _, d := range f.Devices {
		own := len(c.Devices) == 0 || slices.ContainsFunc(c.Devices, func(x ports.Device) bool {
			return x.Peer == d.Index
		})
		if d.Kind != "loopback" && d.Name != bridge && (d.Master != bridge || !own) {
			continue
		}
		for _, what := range d.Attached {
			if !strings.HasPrefix(what, "nftables: ") {
				return "packets may be dropped or changed at " + d.Name + ": " + what
			}
		}
	}
	return ""
}

// towards returns the device with the most specific network that contains a. It returns false if
// that is not a Docker bridge, or not up.
func towards(f *ports.Facts, a netip.Addr) (bridge string, ok bool) {
	bits := -1
	for _, d := range f.Devices {
		for _, p := range d.Addrs {
			if p.Masked().Contains(a) && p.Bits() > bits {
				bits, bridge = p.Bits(), d.Name
				ok = d.Docker && d.Up && p.Addr() != a
			}
		}
	}
	return bridge, ok
}
