// Package ports finds the server of each port of this machine, the route to it from five kinds of
// clients, and the traps on that route. It does not touch the machine: it takes Facts, which
// internal/ports/collect reads, and returns a Report.
package ports

import (
	"net/netip"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/firewall"
)

// Facts holds what was found on the machine.
type Facts struct {
	Listeners   []Listener
	Connections []Connection
	Flows       []Flow // connections whose destination was translated
	Proxies     []Proxy
	Shortcuts   []Shortcut // toll fast's shortcuts that are in effect
	Containers  []Container
	Devices     []Device
	Rules       firewall.Rules
	// Programs are BPF programs in a packet filter, of any network namespace.
	Programs   []string
	Switches   Switches
	Tracked    int // conntrack's present and largest number of entries; 0: not known
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
	Rules bool // those of nft or iptables
	// OldRules reports that the rules include those of iptables' old tables, if there are any.
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

// Listener is a listening socket.
type Listener struct {
	Proto  string
	Addr   netip.AddrPort
	V6Only bool // an IPv6 wildcard that takes no IPv4
	Inode  uint32
	Owners []Process // several if they share it; empty if not known
}

// Process is a process that owns a socket.
type Process struct {
	PID       int
	Name      string
	Container string // the container's id, if it runs in one
}

// Connection is an established TCP connection.
type Connection struct {
	Local, Remote netip.AddrPort
	PID           int // 0: not known
	Bytes         uint64
}

// Flow is a connection whose destination NAT translated.
type Flow struct {
	Proto string
	From  netip.Addr
	To    netip.AddrPort // the address that the client dialled
	Now   netip.AddrPort
}

// Proxy is a docker-proxy, or a rootlesskit, which accepts connections to the ports of a rootless
// engine and forwards them into the engine's own network.
type Proxy struct {
	PID       int
	Proto     string
	Host      netip.AddrPort
	Container netip.AddrPort
	Command   []string
	Rootless  bool    // whether it is a rootlesskit
	CPU       float64 // present CPU use, in cores
	Memory    int64   // bytes, with its share of pages common to proxies; 0: not known
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
	PID             int    // 0: it does not run
	State           string // Docker's: "running", "paused", "restarting", "exited", …
	Restarts        int
	Measuring       bool          // toll started it to measure it
	Up              time.Duration // since it was last started
	Rootless        bool          // its engine's network is not the machine's
	Host            bool          // it uses the machine's network
	Shares          string        // the name of the container whose network it uses
	Networks        []string      // names
	Internal        bool          // all its networks are internal: Docker publishes nothing there
	Asked           []Published   // the ports of -p, published or not
	Addrs           []netip.Addr
	Published       []Published
	Exposed         []Published // not published; Host is zero
	Listeners       []Listener
	ListenersKnown  bool
	Devices         []Device // empty if not known
	LastLog         string   `printable:"text"` // of a container that ended with a fault
}

// Published is a port of a container, and the machine's port that leads to it.
type Published struct {
	Proto string
	Port  uint16
	Host  netip.AddrPort
}

// Device is a network device.
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
	// Docker reports that the device is a bridge of a Docker network.
	Docker bool
	// Attached names what may drop or change the device's packets besides rules at IP's own hooks:
	// programs, filters, queues, chains. Only collect.Published reads it.
	Attached []string
}

// Switches are the kernel's settings that decide paths.
type Switches struct {
	Forward4, Forward6 bool
	BridgeNF           bool            // bridged frames cross iptables
	RouteLocalnet      map[string]bool // by device; "all" applies to each
	// RoutedBySocket is a policy rule that tests a socket's user, port, protocol or type of
	// service, or refuses packets, so that packets of two programs may take different routes, or
	// none. It may also say why such a rule is suspected. "": there is none.
	RoutedBySocket string
	// RoutedByMark is a policy rule that tests a packet's mark, or the reason why one is suspected;
	// "": there is none.
	RoutedByMark string
	// ClientPorts are the first and the last port that the kernel assigns to clients; 0: not known.
	ClientPorts [2]uint16
}

// localnet reports whether a device carries packets from 127.0.0.0/8.
func (s Switches) localnet(device string) bool {
	return s.RouteLocalnet["all"] || s.RouteLocalnet[device]
}

// own reports whether the address is this machine's.
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

// address returns the machine's own IPv4 or IPv6 address that other machines dial, and its device:
// the one with the default route, else any network card.
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

// towards returns the device that leads to a container's address, or "".
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

// at returns the container that has the address in its own network.
func (f *Facts) at(a netip.Addr) (Container, bool) { return f.find(a, false) }

// behind returns the container that a proxy dials. A container of a rootless engine may have the
// same address as one in a network of this machine.
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

// sharing returns the containers that use c's network, c first.
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

// proxyOf returns the docker-proxy behind a listening socket.
func (f *Facts) proxyOf(l Listener) (Proxy, bool) {
	for _, p := range f.Proxies {
		if p.Proto == l.Proto && p.Host == l.Addr && (len(l.Owners) == 0 || l.Owners[0].PID == p.PID) {
			return p, true
		}
	}
	// With -use-listen-fd, a proxy's arguments may write the wildcard differently from its socket.
	// The process then decides.
	for _, p := range f.Proxies {
		if len(l.Owners) > 0 && l.Owners[0].PID == p.PID && p.Proto == l.Proto && p.Host.Port() == l.Addr.Port() {
			return p, true
		}
	}
	return Proxy{}, false
}

// listens returns the socket that receives what is sent to an address. Like the kernel, it prefers
// the address itself to a wildcard.
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
