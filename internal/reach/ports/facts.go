// Package ports finds the server of each port of this machine, the routes to it from five kinds of
// clients, and the traps on those routes. It does no I/O: internal/reach/collect reads the Facts,
// from which Judge makes a Report.
package ports

import (
	"net/netip"
	"time"
)

// Facts describes the machine.
type Facts struct {
	// Space is the machine's network namespace in the form of /proc/PID/ns/net, such as
	// "net:[4026531840]"; "": not known.
	Space string `json:"namespace,omitempty"`
	// Contained is the kind of the container, without containers in it, whose own network these facts
	// are of, such as "Docker"; "": they are the machine's, as far as is known.
	Contained   string       `json:"contained,omitempty"`
	Listeners   []Listener   `json:"listeners,omitempty"`
	Connections []Connection `json:"connections,omitempty"`
	Flows       []Flow       `json:"flows,omitempty"`
	Proxies     []Proxy      `json:"proxies,omitempty"`
	Shortcuts   []Shortcut   `json:"shortcuts,omitempty"`
	Containers  []Container  `json:"containers,omitempty"`
	Networks    []Network    `json:"networks,omitempty"` // the engine's
	// AddressPools are those that the engine takes new networks from; empty: not known.
	AddressPools []AddressPool    `json:"address_pools,omitempty"`
	Neighbours   []NeighbourTable `json:"neighbours,omitempty"`
	Devices      []Device         `json:"devices,omitempty"`
	Switches     Switches         `json:"switches"`
	// Tracked and TrackedMax are the number and the limit of conntrack's entries; 0: not known.
	Tracked    int `json:"tracked,omitempty"`
	TrackedMax int `json:"tracked_max,omitempty"`
	// Docker is the engine's version; "" if it did not answer.
	Docker string `json:"docker,omitempty"`
	// Client is the address of the other machine whose routes are reported; invalid: any machine.
	Client netip.Addr `json:"client,omitzero"`
	// Proto limits a report on one port to a protocol; "": all.
	Proto string `json:"-"`
	// TryFor is the longest time for trying commands that may admit clients, unless the report itself
	// takes longer; 0: they are not tried.
	TryFor time.Duration `json:"-"`
	// Everything also requests published ports at the containers' own addresses.
	Everything bool `json:"-"`
	// ClientDevice is the device by which the machine's routes lead to Client; "": not known.
	ClientDevice string    `json:"-"`
	Ingress      Ingress   `json:"ingress,omitzero"`
	Known        Known     `json:"known"`
	Missing      []Missing `json:"missing,omitempty"`
	// Copy has the connections tried in a copy of the machine; nil: there was none.
	Copy *Copy `json:"-"`
	// Before has the connections of an older report; nil: none. The ports that its scans found are
	// dialled too: the machine may have lost the route to where a rule redirects them.
	Before *Copy `json:"-"`
	// Changed means that commands changed the machine in a copy; see After.
	Changed bool `json:"-"`

	index *index // nil, or of earlier facts: see indexed
}

// Known reports what could be read.
type Known struct {
	Attached bool `json:"attached,omitempty"` // Device.Attached
	Owners   bool `json:"owners,omitempty"`   // all sockets' processes
	Flows    bool `json:"flows,omitempty"`
}

// Missing is a fact that could not be read, with the reason and the remedy.
type Missing struct {
	What   string `json:"what"`
	Why    string `json:"why"`
	Remedy string `json:"remedy"`
}

// Listener is a listening TCP socket, or a UDP socket that is bound and not connected.
type Listener struct {
	Proto  string         `json:"protocol"`
	Addr   netip.AddrPort `json:"address"`
	V6Only bool           `json:"v6_only,omitempty"`
	Inode  uint32         `json:"inode,omitempty"`
	// Owners lists the socket's processes, the one that serves it first if toll can tell; empty: not
	// known.
	Owners []Process `json:"owners,omitempty"`
	Device string    `json:"device,omitempty"` // the only one whose packets it gets; "": all
	Mark   uint32    `json:"mark,omitempty"`   // of the packets that it sends (SO_MARK)
	// Programs describes BPF programs of the control groups of its processes that may keep packets
	// from it, such as those for IPAddressDeny= of systemd; "": none, or not known.
	Programs string `json:"programs,omitempty"`
	// Waiting is the number of connections to accept, at most Backlog+1. The oldest has waited for
	// Waited.
	Waiting int           `json:"waiting,omitempty"`
	Backlog int           `json:"backlog,omitempty"`
	Waited  time.Duration `json:"waited_ns,omitempty"`
}

type Process struct {
	PID       int    `json:"pid"`
	Name      string `json:"name"`
	Container string `json:"container,omitempty"` // an id
	// Space is the process's network namespace if it is not the socket's; else "".
	Space string `json:"namespace,omitempty"`
}

// Connection is a socket that has a peer.
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
	Port  uint16         `json:"port"` // the client's port
	To    netip.AddrPort `json:"to"`
	Now   netip.AddrPort `json:"now"` // the translated destination, or To
}

// Proxy is a program that listens for a server in another network: a docker-proxy, or a relay for
// containers of an engine without root.
type Proxy struct {
	PID   int            `json:"pid"`
	Proto string         `json:"protocol"`
	Host  netip.AddrPort `json:"host"`
	// Container is the address on which the server listens: 0.0.0.0 if the relay ends in the
	// container's own network. Port 0: not known.
	Container netip.AddrPort `json:"container"`
	Command   []string       `json:"command,omitempty"`
	Rootless  bool           `json:"rootless,omitempty"` // the program is a relay
	// Program is the relay's name; "": Rootlesskit.
	Program string `json:"program,omitempty"`
	// Space is the network namespace from which the program dials the container; "": not known.
	Space string `json:"namespace,omitempty"`
	// ID is the container's ID; "": the engine did not report it.
	ID string `json:"container_id,omitempty"`
	// Next is the docker-proxy that a rootlesskit dials; nil: none, or not known.
	Next *Next `json:"next,omitempty"`
	// Source is the set of clients whose addresses a relay passes on.
	Source Source `json:"source,omitempty"`
	// Used is the number of local ports in use for connections to the container.
	Used int     `json:"used_ports,omitempty"`
	CPU  float64 `json:"cpu,omitempty"` // current CPU use in cores
	// Memory is in bytes and includes a share of shared pages; 0: not known.
	Memory int64 `json:"memory_bytes,omitempty"`
}

// Next is a docker-proxy behind a relay.
type Next struct {
	PID  int            `json:"pid"`
	Host netip.AddrPort `json:"host"` // address in the namespace from which the relay dials
}

// Shortcut is a redirection of loopback clients that bypasses docker-proxy.
type Shortcut struct {
	Dial   netip.AddrPort `json:"dial"`
	Target netip.AddrPort `json:"target"`
}

// Network is a network of the engine.
type Network struct {
	Name   string `json:"name"`
	Driver string `json:"driver"`
	Scope  string `json:"scope"` // "local" or "swarm"
	// Pools are the ranges of its containers' addresses.
	Pools []netip.Prefix `json:"pools,omitempty"`
	// Ranges are the parts of Pools that its containers get addresses from; empty: all.
	Ranges []netip.Prefix `json:"ranges,omitempty"`
	Bridge string         `json:"bridge,omitempty"` // its device; "": it has none
	// Unmasqueraded is the option by which IPv4 packets from its containers are to keep their source
	// addresses; "": they need not.
	Unmasqueraded string `json:"unmasqueraded,omitempty"`
}

// AddressPool is a range that the engine cuts into networks of Size bits.
type AddressPool struct {
	Base netip.Prefix `json:"base"`
	Size int          `json:"size"`
}

// NeighbourTable is how full a table of neighbours is, over all network namespaces.
type NeighbourTable struct {
	Family  string `json:"family"` // "ipv4" or "ipv6"
	Entries int    `json:"entries"`
	Max     int    `json:"max"`
}

// Container is a container that runs or should run.
type Container struct {
	ID        string        `json:"id"`
	Name      string        `json:"name"`
	Image     string        `json:"image,omitempty"`
	PID       int           `json:"pid,omitempty"`       // 0: it does not run
	Space     string        `json:"namespace,omitempty"` // as Facts.Space
	State     string        `json:"state,omitempty"`
	Restarts  int           `json:"restarts,omitempty"`
	Measuring bool          `json:"measuring,omitempty"` // toll started it for a measurement
	Up        time.Duration `json:"up_ns,omitempty"`
	Rootless  bool          `json:"rootless,omitempty"` // its engine's network is not the machine's
	Host      bool          `json:"host,omitempty"`     // it uses the machine's network
	Shares    string        `json:"shares,omitempty"`   // the container whose network it uses
	Networks  []string      `json:"networks,omitempty"`
	Drivers   []string      `json:"drivers,omitempty"` // of Networks: "bridge", "macvlan", …
	// Internal means that all networks of the container are internal, so Docker publishes none of
	// its ports.
	Internal       bool         `json:"internal,omitempty"`
	Asked          []Published  `json:"asked,omitempty"` // requested by -p, published or not
	Addrs          []netip.Addr `json:"addresses,omitempty"`
	Published      []Published  `json:"published,omitempty"`
	Exposed        []Published  `json:"exposed,omitempty"` // not published; Host is zero
	Listeners      []Listener   `json:"listeners,omitempty"`
	ListenersKnown bool         `json:"listeners_known,omitempty"`
	Proxies        []Proxy      `json:"proxies,omitempty"` // those in its network namespace
	Devices        []Device     `json:"devices,omitempty"` // empty if not known
	// Processes are those of its control group, in order of their PIDs on this machine.
	Processes []Process `json:"processes,omitempty"`
	// LastLog is the end of a failed container's output.
	LastLog string `json:"last_log,omitempty" printable:"text"`

	Cut *Cut `json:"-"` // nil: commands changed nothing of how it is linked
}

// Cut is a container's place before commands changed how it is linked to a bridge.
type Cut struct {
	bridge, network string
	families        map[bool]bool // those of its addresses, by whether they are of IPv6
}

// Published is a port of a container and the machine's port that is published for it.
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
	// PeerSpace is the namespace of a veth's other end, or of the device below a macvlan; it may be
	// Nameless. "": not known, or this device's own namespace if that is the machine's.
	PeerSpace string         `json:"peer_namespace,omitempty"`
	Addrs     []netip.Prefix `json:"addresses,omitempty"`
	Uplink    bool           `json:"uplink,omitempty"`
	Uplink6   bool           `json:"uplink6,omitempty"` // has a default route of IPv6
	// Router and Router6 mean that a route of any table leads to the internet by the device, of IPv4
	// or of IPv6.
	Router  bool `json:"router,omitempty"`
	Router6 bool `json:"router6,omitempty"`
	Docker  bool `json:"docker,omitempty"`
	// Out is the device through which packets from a bridge's network leave for the internet,
	// OutMTU the route's MTU in bytes; "": not known.
	Out    string `json:"out,omitempty"`
	OutMTU int    `json:"out_mtu,omitempty"`
	// Allowed has the networks of a WireGuard device's peers; nil: not known, or another device.
	Allowed []netip.Prefix `json:"allowed,omitempty"`
	// Attached lists programs, filters, queues and chains that may drop or change the device's
	// packets, in addition to rules at IP's own hooks. Only collect.Published reads it.
	Attached []string `json:"attached,omitempty"`
}

// Nameless is a namespace without a process, other than the machine's.
const Nameless = "nameless"

// Switches are kernel settings that decide paths.
type Switches struct {
	Forward4 bool `json:"forward_ipv4,omitempty"`
	BridgeNF bool `json:"bridge_nf,omitempty"` // bridged frames cross iptables
	// RoutedBySocket is a policy rule that may give two programs' packets different routes or none, or
	// the reason why there may be one; "" if there is none.
	RoutedBySocket string `json:"routed_by_socket,omitempty"`
	// ClientPorts are the first and last port of net.ipv4.ip_local_port_range; 0: not known.
	ClientPorts [2]uint16 `json:"client_ports"`
}
