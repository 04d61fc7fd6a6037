// Package ports finds the server of each port of this machine, the route to it from five kinds of
// clients, and the traps on that route. It does no I/O: internal/ports/collect reads the Facts from
// which Judge makes a Report.
package ports

import (
	"net/netip"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/firewall"
)

// Facts describes the machine.
type Facts struct {
	Listeners   []Listener
	Connections []Connection
	Flows       []Flow // destination translated by NAT
	Proxies     []Proxy
	Shortcuts   []Shortcut
	Containers  []Container
	Devices     []Device
	Rules       firewall.Rules
	// Programs are BPF programs in a packet filter, of any network namespace.
	Programs   []string
	Switches   Switches
	Tracked    int // conntrack's entries and their limit; 0: not known
	TrackedMax int
	Docker     string // the engine's version; "" if it did not answer
	// Client is the other machine whose routes are reported; invalid: any machine.
	Client  netip.Addr
	Ingress Ingress
	Known   Known
	Missing []Missing
}

// Known reports what could be read.
type Known struct {
	Rules bool
	// OldRules: with those of iptables' old tables, if any.
	OldRules bool
	Attached bool // Device.Attached and Programs
	Owners   bool // of all sockets
	Flows    bool
}

// Missing is a fact that could not be read, with the reason and the remedy.
type Missing struct {
	What   string `json:"what"`
	Why    string `json:"why"`
	Remedy string `json:"remedy"`
}

type Listener struct {
	Proto  string
	Addr   netip.AddrPort
	V6Only bool
	Inode  uint32
	Owners []Process // several if they share it; empty if not known
}

type Process struct {
	PID       int
	Name      string
	Container string // an id
}

type Connection struct {
	Local, Remote netip.AddrPort
	PID           int // 0: not known
	Bytes         uint64
}

// Flow is a connection whose destination NAT translated.
type Flow struct {
	Proto string
	From  netip.Addr
	To    netip.AddrPort
	Now   netip.AddrPort
}

// Proxy is a docker-proxy, or a rootlesskit, which forwards into the network of a rootless engine.
type Proxy struct {
	PID       int
	Proto     string
	Host      netip.AddrPort
	Container netip.AddrPort
	Command   []string
	Rootless  bool
	CPU       float64 // in cores, at present
	Memory    int64   // bytes, including its part of shared pages; 0: not known
}

// Shortcut redirects clients of a loopback address past docker-proxy.
type Shortcut struct{ Dial, Target netip.AddrPort }

// Name returns the program's name.
func (p Proxy) Name() string {
	if p.Rootless {
		return Rootlesskit
	}
	return "docker-proxy"
}

// Rootlesskit is the name of the program that holds the ports of a rootless engine.
const Rootlesskit = "rootlesskit"

// Container is a container that runs, or that should.
type Container struct {
	ID, Name, Image string
	PID             int // 0: it does not run
	State           string
	Restarts        int
	Measuring       bool // toll started it to measure it
	Up              time.Duration
	Rootless        bool   // its engine's network is not the machine's
	Host            bool   // it uses the machine's network
	Shares          string // the container whose network it uses
	Networks        []string
	Internal        bool        // all its networks are internal: Docker publishes none of its ports
	Asked           []Published // by -p, published or not
	Addrs           []netip.Addr
	Published       []Published
	Exposed         []Published // not published; Host is zero
	Listeners       []Listener
	ListenersKnown  bool
	Devices         []Device // empty if not known
	LastLog         string   `printable:"text"` // of a container that failed
}

// Published is a port of a container, and the machine's port that leads to it.
type Published struct {
	Proto string
	Port  uint16
	Host  netip.AddrPort
}

type Device struct {
	Name   string
	Index  int
	Kind   string
	MTU    int
	Up     bool
	Master string
	Peer   int
	Addrs  []netip.Prefix
	Uplink bool
	Docker bool
	// Attached names programs, filters, queues and chains that may drop or change the device's
	// packets, besides rules at IP's own hooks. Only collect.Published reads it.
	Attached []string
}

// Switches are kernel settings that decide paths.
type Switches struct {
	Forward4, Forward6 bool
	BridgeNF           bool            // bridged frames cross iptables
	RouteLocalnet      map[string]bool // by device; "all" applies to each
	// RoutedBySocket is a policy rule that may give two programs' packets different routes, or
	// none, or the reason why one is suspected; "": none.
	RoutedBySocket string
	// RoutedByMark is the same for rules that test a packet's mark.
	RoutedByMark string
	// ClientPorts are the first and last port of net.ipv4.ip_local_port_range; 0: not known.
	ClientPorts [2]uint16
}

func (s Switches) localnet(device string) bool {
	return s.RouteLocalnet["all"] || s.RouteLocalnet[device]
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

func (f *Facts) at(a netip.Addr) (Container, bool) { return f.find(a, false) }

// A container of a rootless engine may have the same address as one of this machine's engine.
func (f *Facts) behind(p Proxy) (Container, bool) { return f.find(p.Container.Addr(), p.Rootless) }

func (f *Facts) find(a netip.Addr, rootless bool) (Container, bool) {
	for _, c := range f.Containers {
		if c.Rootless != rootless || c.Host || c.Shares != "" || c.PID == 0 {
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

func (f *Facts) proxyOf(l Listener) (Proxy, bool) {
	for _, p := range f.Proxies {
		if p.Proto == l.Proto && p.Host == l.Addr &&
			(len(l.Owners) == 0 || l.Owners[0].PID == p.PID) {
			return p, true
		}
	}
	// With -use-listen-fd, the wildcard in the arguments may differ from the socket's: the process
	// decides.
	for _, p := range f.Proxies {
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
