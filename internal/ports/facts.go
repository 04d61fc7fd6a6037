// Package ports finds the server of each port of this machine, the route to it from five kinds of
// clients, and the traps on that route. It does no I/O: internal/ports/collect reads the Facts from
// which Judge makes a Report.
package ports

import (
	"net/netip"
	"slices"
	"time"
)

// Facts describes the machine.
type Facts struct {
	// Space is the machine's network namespace as /proc/PID/ns/net prints it: "net:[4026531840]".
	// "": not known.
	Space       string       `json:"namespace,omitempty"`
	Listeners   []Listener   `json:"listeners,omitempty"`
	Connections []Connection `json:"connections,omitempty"`
	Flows       []Flow       `json:"flows,omitempty"`
	Proxies     []Proxy      `json:"proxies,omitempty"`
	Shortcuts   []Shortcut   `json:"shortcuts,omitempty"`
	Containers  []Container  `json:"containers,omitempty"`
	Devices     []Device     `json:"devices,omitempty"`
	Switches    Switches     `json:"switches"`
	Tracked     int          `json:"tracked,omitempty"` // conntrack's entries and limit; 0: not known
	TrackedMax  int          `json:"tracked_max,omitempty"`
	// Docker is the engine's version; "" if it did not answer.
	Docker string `json:"docker,omitempty"`
	// Client is the other machine whose routes are reported; invalid: any machine.
	Client  netip.Addr `json:"client,omitzero"`
	Ingress Ingress    `json:"ingress,omitzero"`
	Known   Known      `json:"known"`
	Missing []Missing  `json:"missing,omitempty"`
	// Copy has the connections tried in a copy of the machine; nil: there was none.
	Copy *Copy `json:"-"`
}

// Known reports what could be read.
type Known struct {
	Attached bool `json:"attached,omitempty"` // Device.Attached
	Owners   bool `json:"owners,omitempty"`   // of all sockets
	Flows    bool `json:"flows,omitempty"`
}

// Missing is a fact that could not be read, with the reason and the remedy.
type Missing struct {
	What   string `json:"what"`
	Why    string `json:"why"`
	Remedy string `json:"remedy"`
}

type Listener struct {
	Proto  string         `json:"protocol"`
	Addr   netip.AddrPort `json:"address"`
	V6Only bool           `json:"v6_only,omitempty"`
	Inode  uint32         `json:"inode,omitempty"`
	// Owners are several if they share it; empty if not known.
	Owners []Process `json:"owners,omitempty"`
	Device string    `json:"device,omitempty"` // the only one whose packets it gets; "": all
	// Waiting are the connections to accept, at most Backlog+1. The longest one waits for Waited.
	Waiting int           `json:"waiting,omitempty"`
	Backlog int           `json:"backlog,omitempty"`
	Waited  time.Duration `json:"waited_ns,omitempty"`
}

type Process struct {
	PID       int    `json:"pid"`
	Name      string `json:"name"`
	Container string `json:"container,omitempty"` // an id
}

type Connection struct {
	Local  netip.AddrPort `json:"local"`
	Remote netip.AddrPort `json:"remote"`
	PID    int            `json:"pid,omitempty"` // 0: not known
	Bytes  uint64         `json:"bytes,omitempty"`
}

// Flow is an entry of connection tracking: TCP and UDP with a translated destination, and UDP to a
// port of this machine that no program of its own serves.
type Flow struct {
	Proto string         `json:"protocol"`
	From  netip.Addr     `json:"from"`
	Port  uint16         `json:"port"` // the client's
	To    netip.AddrPort `json:"to"`
	Now   netip.AddrPort `json:"now"` // To, unless it is translated
}

// Proxy is a program that listens for a server in another network: a docker-proxy, or a relay of
// containers without root.
type Proxy struct {
	PID   int            `json:"pid"`
	Proto string         `json:"protocol"`
	Host  netip.AddrPort `json:"host"`
	// Container is where the server listens. The address is 0.0.0.0 if the relay ends in the
	// container's own network; the port is 0 if it is not known.
	Container netip.AddrPort `json:"container"`
	Command   []string       `json:"command,omitempty"`
	Rootless  bool           `json:"rootless,omitempty"` // a relay
	// Program is the relay's name; "": Rootlesskit.
	Program string `json:"program,omitempty"`
	// Space is the network namespace from which it dials the container; "": not known.
	Space string `json:"namespace,omitempty"`
	// ID is the container's, if its engine says so.
	ID string `json:"container_id,omitempty"`
	// Next is the docker-proxy to which a rootlesskit leads; nil: none, or not known.
	Next *Next `json:"next,omitempty"`
	// Source reports whether a relay keeps the client's address.
	Source Source `json:"source,omitempty"`
	// Used are the local ports in use towards the container.
	Used int     `json:"used_ports,omitempty"`
	CPU  float64 `json:"cpu,omitempty"` // in cores, at present
	// Memory is in bytes, including its part of shared pages; 0: not known.
	Memory int64 `json:"memory_bytes,omitempty"`
}

// Next is a docker-proxy behind a relay.
type Next struct {
	PID  int            `json:"pid"`
	Host netip.AddrPort `json:"host"` // in the relay's other namespace
}

// Shortcut redirects clients of a loopback address past docker-proxy.
type Shortcut struct {
	Dial   netip.AddrPort `json:"dial"`
	Target netip.AddrPort `json:"target"`
}

// Container is a container that runs, or that should.
type Container struct {
	ID        string        `json:"id"`
	Name      string        `json:"name"`
	Image     string        `json:"image,omitempty"`
	PID       int           `json:"pid,omitempty"`       // 0: it does not run
	Space     string        `json:"namespace,omitempty"` // as Facts.Space
	State     string        `json:"state,omitempty"`
	Restarts  int           `json:"restarts,omitempty"`
	Measuring bool          `json:"measuring,omitempty"` // toll started it to measure it
	Up        time.Duration `json:"up_ns,omitempty"`
	Rootless  bool          `json:"rootless,omitempty"` // its engine's network is not the machine's
	Host      bool          `json:"host,omitempty"`     // it uses the machine's network
	Shares    string        `json:"shares,omitempty"`   // the container whose network it uses
	Networks  []string      `json:"networks,omitempty"`
	Drivers   []string      `json:"drivers,omitempty"` // of Networks: "bridge", "macvlan", …
	// Internal: all its networks are internal. Docker publishes none of its ports.
	Internal       bool         `json:"internal,omitempty"`
	Asked          []Published  `json:"asked,omitempty"` // by -p, published or not
	Addrs          []netip.Addr `json:"addresses,omitempty"`
	Published      []Published  `json:"published,omitempty"`
	Exposed        []Published  `json:"exposed,omitempty"` // not published; Host is zero
	Listeners      []Listener   `json:"listeners,omitempty"`
	ListenersKnown bool         `json:"listeners_known,omitempty"`
	Proxies        []Proxy      `json:"proxies,omitempty"` // in its network namespace
	Devices        []Device     `json:"devices,omitempty"` // empty if not known
	// LastLog is of a container that failed.
	LastLog string `json:"last_log,omitempty" printable:"text"`
}

// Published is a port of a container, and the machine's port that leads to it.
type Published struct {
	Proto string         `json:"protocol"`
	Port  uint16         `json:"port"`
	Host  netip.AddrPort `json:"host"`
}

type Device struct {
	Name   string `json:"name"`
	Index  int    `json:"index"`
	Kind   string `json:"kind"`
	MTU    int    `json:"mtu"`
	Up     bool   `json:"up,omitempty"`
	Master string `json:"master,omitempty"`
	Peer   int    `json:"peer,omitempty"`
	// PeerSpace is the namespace of a veth's other end, or of the device below a macvlan, or
	// Nameless. "": not known, or this device's own, if that is the machine's.
	PeerSpace string         `json:"peer_namespace,omitempty"`
	Addrs     []netip.Prefix `json:"addresses,omitempty"`
	Uplink    bool           `json:"uplink,omitempty"`
	Uplink6   bool           `json:"uplink6,omitempty"` // by a default route of IPv6
	Docker    bool           `json:"docker,omitempty"`
	// Out is the device by which packets from behind a bridge go to the internet, OutMTU the
	// route's MTU; "": not known.
	Out    string `json:"out,omitempty"`
	OutMTU int    `json:"out_mtu,omitempty"`
	// Attached names programs, filters, queues and chains that may drop or change the device's
	// packets, besides rules at IP's own hooks. Only collect.Published reads it.
	Attached []string `json:"attached,omitempty"`
}

// Nameless is a namespace without a process, which is not the machine's.
const Nameless = "nameless"

// Switches are kernel settings that decide paths.
type Switches struct {
	Forward4 bool `json:"forward_ipv4,omitempty"`
	BridgeNF bool `json:"bridge_nf,omitempty"` // bridged frames cross iptables
	// RoutedBySocket is a policy rule that may give two programs' packets different routes, or
	// none, or the reason why one is suspected; "": none.
	RoutedBySocket string `json:"routed_by_socket,omitempty"`
	// ClientPorts are the first and last port of net.ipv4.ip_local_port_range; 0: not known.
	ClientPorts [2]uint16 `json:"client_ports"`
}

func (f *Facts) own(a netip.Addr) bool {
	if a.IsLoopback() {
		return true
	}
	for _, d := range f.Devices {
		for _, p := range d.Addrs {
			if p.Addr() == a {
				return true
			}
		}
	}
	return false
}

// address returns the address that other machines dial, and its device: the one with the default
// route, else any network card.
func (f *Facts) address(six bool) (netip.Addr, string) {
	var best netip.Addr
	device := ""
	rank := 0
	for _, d := range f.Devices {
		score := 1
		switch {
		case d.Kind == "loopback" || !d.Up || d.Docker:
			continue
		case d.Uplink:
			score = 3
		case d.Master == "" && d.Kind != "bridge":
			score = 2
		}
		for _, p := range d.Addrs {
			if p.Addr().Is4() == !six && !p.Addr().IsLinkLocalUnicast() && score > rank {
				best, device, rank = p.Addr(), d.Name, score
			}
		}
	}
	return best, device
}

func (f *Facts) towards(a netip.Addr) string {
	device, bits := "", -1
	for _, d := range f.Devices {
		for _, p := range d.Addrs {
			if d.Kind != "loopback" && p.Masked().Contains(a) && p.Bits() > bits {
				device, bits = d.Name, p.Bits()
			}
		}
	}
	return device
}

func (f *Facts) at(a netip.Addr) (Container, bool) { return f.find(a, f.Space, false) }

func (f *Facts) behind(p Proxy) (Container, bool) {
	if c, ok := f.byID(p.ID); ok {
		return c, true
	}
	if p.ends() {
		return f.inSpace(p.Space)
	}
	return f.find(p.Container.Addr(), p.Space, p.Rootless)
}

func (f *Facts) inSpace(space string) (Container, bool) {
	for _, c := range f.Containers {
		if space != "" && c.Space == space && c.PID != 0 && c.Shares == "" {
			return c, true
		}
	}
	return Container{}, false
}

// linked reports whether the container's network is linked to the namespace. Containers of several
// engines may have the same addresses.
func (c Container) linked(space string, rootless bool) bool {
	known := func(d Device) bool { return d.PeerSpace != "" }
	if space == "" || !slices.ContainsFunc(c.Devices, known) {
		return c.Rootless == rootless
	}
	return slices.ContainsFunc(c.Devices, func(d Device) bool { return d.PeerSpace == space })
}

func (f *Facts) find(a netip.Addr, space string, rootless bool) (Container, bool) {
	for _, c := range f.Containers {
		if !c.linked(space, rootless) || c.Host || c.Shares != "" || c.PID == 0 {
			continue
		}
		for _, own := range c.Addrs {
			if own == a {
				return c, true
			}
		}
	}
	return Container{}, false
}

// sharing returns c first.
func (f *Facts) sharing(c Container) []Container {
	out := []Container{c}
	for _, o := range f.Containers {
		if o.Shares != "" && o.Shares == c.Name && o.PID != 0 {
			out = append(out, o)
		}
	}
	return out
}

func (f *Facts) byID(id string) (Container, bool) {
	for _, c := range f.Containers {
		if id != "" && c.ID == id {
			return c, true
		}
	}
	return Container{}, false
}

func (f *Facts) proxyOf(l Listener) (Proxy, bool) { return proxyOf(f.Proxies, l) }

func proxyOf(all []Proxy, l Listener) (Proxy, bool) {
	for _, p := range all {
		if p.Proto == l.Proto && p.Host == l.Addr &&
			(len(l.Owners) == 0 || l.Owners[0].PID == p.PID) {
			return p, true
		}
	}
	// With -use-listen-fd, the wildcard in the arguments may differ from the socket's: the process
	// decides.
	for _, p := range all {
		if len(l.Owners) > 0 && l.Owners[0].PID == p.PID && p.Proto == l.Proto &&
			p.Host.Port() == l.Addr.Port() {
			return p, true
		}
	}
	return Proxy{}, false
}

// Like the kernel, listens prefers an exact address to a wildcard.
func listens(all []Listener, proto string, to netip.AddrPort) (Listener, bool) {
	best, rank := Listener{}, 0
	for _, l := range all {
		if l.Proto != proto || l.Addr.Port() != to.Port() {
			continue
		}
		score := 0
		a := l.Addr.Addr()
		switch {
		case a == to.Addr() || a.Is4In6() && a.Unmap() == to.Addr():
			score = 3
		case a.IsUnspecified() && a.Is4() == to.Addr().Is4():
			score = 2
		case a.IsUnspecified() && a.Is6() && to.Addr().Is4() && !l.V6Only:
			score = 1
		}
		if score > rank {
			best, rank = l, score
		}
	}
	return best, rank > 0
}
