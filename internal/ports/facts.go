// Package ports finds who answers each port of this machine, by which route a
// client gets there from five places, and which traps are on that route. It is
// pure: Facts go in, a Report comes out; internal/ports/collect reads the facts.
package ports

import (
	"net/netip"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/build/firewall"
)

// Facts are what was found on the machine.
type Facts struct {
	Listeners   []Listener
	Connections []Connection
	Flows       []Flow // connections whose destination was translated
	Proxies     []Proxy
	Shortcuts   []Shortcut // that toll fast has in the kernel, and that work now
	Containers  []Container
	Devices     []Device
	Rules       firewall.Rules
	// Programs are BPF programs in a packet filter, of any network namespace.
	Programs   []string
	Switches   Switches
	Tracked    int // conntrack's entries, and how many it takes; 0: not known
	TrackedMax int
	Docker     string // the engine's version; "" if it was not asked
	// Client is the other machine that the routes are of; invalid: any.
	Client  netip.Addr
	Ingress Ingress
	Known   Known
	Missing []Missing
}

// Known says what could be read.
type Known struct {
	Rules bool // nft's or iptables'
	// OldRules says that iptables' old tables, if there are any, are among them.
	OldRules bool
	Attached bool // Device.Attached and Programs
	Owners   bool // of all sockets
	Flows    bool
}

// Missing is what could not be read, and what that takes.
type Missing struct {
	What   string `json:"what"`
	Why    string `json:"why"`
	Remedy string `json:"remedy"`
}

// Listener is a socket that listens.
type Listener struct {
	Proto  string
	Addr   netip.AddrPort
	V6Only bool // an IPv6 wildcard that takes no IPv4
	Inode  uint32
	Owners []Process // several if they share it; none if not known
}

// Process is who has a socket.
type Process struct {
	PID       int
	Name      string
	Container string // id, if it runs in one
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
	To    netip.AddrPort // what the client dialled
	Now   netip.AddrPort
}

// Proxy is a docker-proxy, or a rootlesskit, which takes the ports of a rootless
// engine and passes them on into the engine's own network.
type Proxy struct {
	PID       int
	Proto     string
	Host      netip.AddrPort
	Container netip.AddrPort
	Command   []string
	Rootless  bool    // it is a rootlesskit
	CPU       float64 // cores that it uses now
	Memory    int64   // bytes, with its share of what proxies have in common; 0: not known
}

// Shortcut leads clients of a loopback address past docker-proxy.
type Shortcut struct{ Dial, Target netip.AddrPort }

// Name is the program's.
func (p Proxy) Name() string {
	if p.Rootless {
		return Rootlesskit
	}
	return "docker-proxy"
}

// Rootlesskit is the program that holds the ports of a rootless engine.
const Rootlesskit = "rootlesskit"

// Container is a container that runs, or that should.
type Container struct {
	ID, Name, Image string
	PID             int    // 0: it does not run
	State           string // Docker's: "running", "paused", "restarting", "exited", …
	Restarts        int
	Measuring       bool          // toll made it, to measure it
	Up              time.Duration // since it was last started
	Rootless        bool          // its engine's network is not the machine's
	Host            bool          // it has the machine's network
	Shares          string        // the name of the container whose network it has
	Networks        []string      // names
	Internal        bool          // all of them are: Docker publishes nothing there
	Asked           []Published   // what -p asked for, published or not
	Addrs           []netip.Addr
	Published       []Published
	Exposed         []Published // not published: Host is empty
	Listeners       []Listener
	ListenersKnown  bool
	Devices         []Device // empty if not known
	LastLog         string   `printable:"text"` // of one that ended by a fault
}

// Published is a port of a container, and the machine's that leads to it.
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
	// Docker says that it is a bridge of a Docker network.
	Docker bool
	// Attached is what may drop or change its packets besides rules of IP's own hooks:
	// programs, filters, queues, chains. Only collect.Published reads it.
	Attached []string
}

// Switches are the settings of the kernel that decide paths.
type Switches struct {
	Forward4, Forward6 bool
	BridgeNF           bool            // bridged frames cross iptables
	RouteLocalnet      map[string]bool // by device; "all" counts for each
	// RoutedBySocket is a policy rule, or why one is feared, that asks for a socket's user,
	// port, protocol or type of service, or refuses packets: two programs' packets may take
	// different routes, or none. "": there is none.
	RoutedBySocket string
	// RoutedByMark is a policy rule that asks for a packet's mark, or why one is feared; "": there is none.
	RoutedByMark string
	// ClientPorts are the first and the last port that the kernel gives to clients; 0: not known.
	ClientPorts [2]uint16
}

// localnet reports whether a device carries packets from 127.0.0.0/8.
func (s Switches) localnet(device string) bool {
	return s.RouteLocalnet["all"] || s.RouteLocalnet[device]
}

// own reports whether the address is the machine's.
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

// address is the machine's own address, of IPv4 or IPv6, that others dial: that
// of the device with the default route, else of any card.
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

// towards is the device that leads to a container's address.
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

// at is the container that has the address in its own network.
func (f *Facts) at(a netip.Addr) (Container, bool) { return f.find(a, false) }

// behind is the container that a proxy dials. A rootless engine's may have the
// same address as one of this machine's networks.
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

// sharing are the containers that have c's network, c first.
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

// proxyOf is the docker-proxy behind a listening socket.
func (f *Facts) proxyOf(l Listener) (Proxy, bool) {
	for _, p := range f.Proxies {
		if p.Proto == l.Proto && p.Host == l.Addr && (len(l.Owners) == 0 || l.Owners[0].PID == p.PID) {
			return p, true
		}
	}
	// With -use-listen-fd, one proxy's arguments may differ from its socket in how
	// the wildcard is written; the process is then the proof.
	for _, p := range f.Proxies {
		if len(l.Owners) > 0 && l.Owners[0].PID == p.PID && p.Proto == l.Proto && p.Host.Port() == l.Addr.Port() {
			return p, true
		}
	}
	return Proxy{}, false
}

// listens finds the socket that takes what is sent to an address, as the kernel
// does: the address itself before a wildcard.
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
