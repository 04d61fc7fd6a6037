// Package fast redirects clients on this machine past docker-proxy, straight to the containers that
// publish a port on a loopback address. decideRoutes decides which ports may have a shortcut; Fast
// puts the shortcuts into the kernel (internal/paths/kernel/shortcut) and removes them.
package fast

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/paths/firewall"
	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/shortcut"
	"github.com/bridgetoll/bridgetoll/internal/ports"
)

// Choice holds the ports and parts that the user asked for.
type Choice struct {
	Ports []uint16
	All   bool
	Parts []Part // empty: Connect
}

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

// Route is a shortcut that a port may have.
type Route struct {
	Container   string         `json:"container"`
	ContainerID string         `json:"container_id"`
	Dial        netip.AddrPort `json:"dial"`
	Target      netip.AddrPort `json:"target"`
	Taken       uint64         `json:"taken"` // number of connections

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
		return r, p.Proto + " is left alone", ""
	case c.Rootless:
		return r, "its engine is rootless: its containers are in another network", ""
	case c.PID == 0 || c.State != "running":
		return r, "its container is " + cmp.Or(c.State, "not running"), ""
	case c.Host || c.Shares != "":
		return r, "its container has no network of its own", ""
	case f.Switches.RoutedBySocket != "":
		return r,
			"policy routing may refuse a client's packets, or have them take another route than docker-proxy's: " + f.Switches.RoutedBySocket, "ip rule shows it"
	}
	dial, ok := dials(p.Host)
	if !ok {
		return r, "it is published on " + p.Host.Addr().String() +
			" only, where the kernel's own NAT answers this machine", ""
	}
	px, l, ok := proxyOf(f, p)
	switch {
	case !ok:
		return r, "no docker-proxy listens for it",
			`with "userland-proxy": false the kernel's NAT does without one`
	case !slices.Contains(c.Addrs, px.Container.Addr()) || px.Container.Port() != p.Port:
		return r, "docker-proxy leads elsewhere than the engine says: to " + px.Container.String(),
			""
	}
	if why := walk(f, dial, px.Container); why != "" {
		return r, why, "toll ports " + fmt.Sprint(p.Host.Port()) + " draws its routes"
	}
	if why := attached(f, c, px.Container.Addr()); why != "" {
		return r, why, ""
	}
	return Route{Container: c.Name, ContainerID: c.ID, Dial: dial, Target: px.Container,
		listener: shortcut.Listener{PID: px.PID, Inode: l.Inode, Command: px.Command},
		server:   c.PID}, "", ""
}

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

// walk returns why the port must stay unchanged, after an exchange in both directions on both
// paths. It refuses rules on a packet's sender, which would see the client instead of docker-proxy.
func walk(f *ports.Facts, dial, target netip.AddrPort) (why string) {
	switch {
	case !f.Known.Rules:
		return "the rules of the packet filter cannot be read"
	case !f.Known.OldRules:
		return "rules in iptables' old tables cannot be read"
	}
	bridge, gateway, ok := towards(f, target.Addr())
	if !ok {
		return "no bridge of Docker's leads to " + target.Addr().String()
	}
	for _, s := range exchange(f, dial, target, bridge, gateway) {
		for _, kind := range []firewall.Kind{firewall.Filter, firewall.NAT} {
			if kind == firewall.NAT && (s.packet.Stage != firewall.First ||
				s.hook == firewall.Prerouting) {
				continue // the first packet decides, in this machine's output if it sent it
			}
			o := f.Rules.Walk(kind, s.hook, s.packet)
			switch {
			case len(o.Marks) > 0 && f.Switches.RoutedByMark != "" &&
				(s.hook == firewall.Output || s.hook == firewall.Prerouting):
				return fmt.Sprintf("a rule in %s marks %s, and policy routing asks for marks: %s",
					o.Marks[0], s.what, f.Switches.RoutedByMark)
			case len(o.Unread) > 0:
				return "a rule that toll cannot read may decide about " + s.what + ": " +
					o.Unread[0]
			case len(o.Depends) > 0:
				return "a rule decides about " + s.what + " by the client's address or port: " +
					o.Depends[0]
			// it already has the bridge's address
			case o.Verdict == firewall.Masquerade && s.hook == firewall.Postrouting &&
				s.packet.Out == bridge:
			case o.Verdict != firewall.Accept:
				return fmt.Sprintf("%s meets %s in %s", s.what, o.Verdict, o.Where)
			}
		}
	}
	return ""
}

// attached covers the devices of both paths: lo, the bridge and the container's port of the bridge.
func attached(f *ports.Facts, c ports.Container, target netip.Addr) (why string) {
	switch {
	case !f.Known.Attached:
		return "what is attached to network devices cannot be read"
	case len(f.Programs) > 0:
		return "a BPF program is attached to a packet filter: " + f.Programs[0]
	}
	bridge, _, _ := towards(f, target)
	for _, d := range f.Devices {
		own := len(c.Devices) == 0 || slices.ContainsFunc(c.Devices, func(x ports.Device) bool {
			return x.Peer == d.Index
		})
		if len(d.Attached) > 0 && (d.Kind == "loopback" || d.Name == bridge ||
			d.Master == bridge && own) {
			return "packets may be dropped or changed at " + d.Name + ": " + d.Attached[0]
		}
	}
	return ""
}

type step struct {
	hook   firewall.Hook
	packet firewall.Packet
	what   string
}

// exchange returns the packets to docker-proxy over lo and back, and to the container over the
// bridge and back. The client's port is any that the kernel may choose.
func exchange(f *ports.Facts, dial, target netip.AddrPort, bridge string,
	gateway netip.Addr) (out []step) {
	low, high := f.Switches.ClientPorts[0], f.Switches.ClientPorts[1]
	if high == 0 {
		low, high = 1, math.MaxUint16
	}
	for _, stage := range []firewall.Stage{firewall.First, firewall.Reply, firewall.Later,
		firewall.LaterReply} {
		for _, x := range []struct {
			server netip.AddrPort
			client netip.Addr
			device string
		}{{dial, dial.Addr(), "lo"}, {target, gateway, bridge}} {
			local := x.device == "lo"
			p := firewall.Packet{Stage: stage, Proto: "tcp", Src: x.client, Dst: x.server.Addr(),
				Port: x.server.Port(), SrcLocal: true, DstLocal: local}
			what := map[firewall.Stage]string{firewall.First: "a packet to ",
				firewall.Reply:      "the answer from ",
				firewall.Later:      "a later packet to ",
				firewall.LaterReply: "a later answer from "}[stage] + x.server.String()
			if stage.Back() {
				p = firewall.Packet{Stage: stage, Proto: "tcp", Src: x.server.Addr(), Dst: x.client,
					Port: low, High: high, From: x.server.Port(), SrcLocal: local, DstLocal: true}
			}
			leaves, comes := p, p
			leaves.Out, comes.In = x.device, x.device
			if local || !stage.Back() {
				out = append(out, step{firewall.Output, leaves, what},
					step{firewall.Postrouting, leaves, what})
			}
			if local || stage.Back() {
				out = append(out, step{firewall.Prerouting, comes, what},
					step{firewall.Input, comes, what})
			}
		}
	}
	return out
}

// own is the bridge's address.
func towards(f *ports.Facts, a netip.Addr) (bridge string, own netip.Addr, ok bool) {
	bits := -1
	for _, d := range f.Devices {
		for _, p := range d.Addrs {
			if p.Masked().Contains(a) && p.Bits() > bits {
				bits, bridge, own, ok = p.Bits(), d.Name, p.Addr(),
					d.Docker && d.Up && p.Addr() != a
			}
		}
	}
	return bridge, own, ok
}
