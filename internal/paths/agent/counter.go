package agent

import (
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/kernel/conntrack"
)

// Counter selects a counter in a network namespace of an agent's machine. Exactly one kind is set.
type Counter struct {
	// Namespace is the file of a network namespace in the agent's view; "" is its own. Another one
	// needs CAP_SYS_ADMIN.
	Namespace string  `json:"namespace,omitempty"`
	Device    *Device `json:"device,omitempty"`
	NAT       *NAT    `json:"nat,omitempty"`
	ESP       *ESP    `json:"esp,omitempty"`
	Proxy     *Proxy  `json:"proxy,omitempty"`
}

// Device selects a network device's counters, read as by path/local.Device.
type Device struct {
	Name string `json:"name"`
	// ForwardRx means that received packets go to the server.
	ForwardRx bool `json:"forward_rx,omitempty"`
	// OneWay counts only the forward direction, for a device that counts packets of both
	// directions there.
	OneWay bool `json:"one_way,omitempty"`
}

// NAT selects connections that dialled To and that rules redirected to Now. Each one that is in the
// connection tracking table at a reading is a hit once. The reading removes TCP connections that
// have ended from the table. NAT needs CAP_NET_ADMIN.
type NAT struct {
	Proto string         `json:"proto"` // tcp or udp
	To    netip.AddrPort `json:"to"`
	Now   netip.AddrPort `json:"now"`
	// From is the client's address, As the address that replaces it; invalid: any.
	From netip.Addr `json:"from,omitzero"`
	As   netip.Addr `json:"as,omitzero"`
	// how rules must have rewritten the client's address
	Source conntrack.Source `json:"source,omitempty"`
}

// ESP selects what the ESP states between two machines have carried. It needs CAP_NET_ADMIN.
type ESP struct {
	Client netip.Addr `json:"client"` // source of packets to the server
	Server netip.Addr `json:"server"`
}

// Proxy selects the traffic of a docker-proxy for TCP, read as by path/local.Proxy. It needs
// CAP_SYS_PTRACE and the machine's PID namespace.
type Proxy struct {
	PID     int            `json:"pid"` // in the agent's view
	Listens uint16         `json:"listens"`
	Target  netip.AddrPort `json:"target"`
	Beside  bool           `json:"beside,omitempty"` // the client is on the proxy's machine
}
