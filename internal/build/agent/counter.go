package agent

import (
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/build/kernel/conntrack"
)

// Counter is something on an agent's machine that counts, in a network namespace:
// exactly one of the kinds is set.
type Counter struct {
	// Namespace is a file that stands for a network namespace, as the agent sees it,
	// such as /run/docker/netns/1-abcdef; "" is the agent's own. Another one needs
	// CAP_SYS_ADMIN.
	Namespace string  `json:"namespace,omitempty"`
	Device    *Device `json:"device,omitempty"`
	NAT       *NAT    `json:"nat,omitempty"`
	ESP       *ESP    `json:"esp,omitempty"`
	Proxy     *Proxy  `json:"proxy,omitempty"`
}

// Device is a network device's counters, as path/local.Device reads them.
type Device struct {
	Name string `json:"name"`
	// ForwardRx says that what the device receives is on its way to the server.
	ForwardRx bool `json:"forward_rx,omitempty"`
	// OneWay keeps what counts as forward only, of a device that sees both directions
	// of the load that way.
	OneWay bool `json:"one_way,omitempty"`
}

// NAT is the connections that were rewritten: those that dialled To and are
// answered by Now. Hits grow by each that was not in the connection table at the
// reading before, and so count those that have ended since, which the table
// remembers for two minutes. It needs CAP_NET_ADMIN.
type NAT struct {
	Proto string         `json:"proto"` // tcp or udp
	To    netip.AddrPort `json:"to"`
	Now   netip.AddrPort `json:"now"`
	// From is who dialled, and As the address that rules made of that; invalid ones
	// are any.
	From netip.Addr `json:"from,omitzero"`
	As   netip.Addr `json:"as,omitzero"`
	// Source is what rules must have made of who dialled, whatever the address.
	Source conntrack.Source `json:"source,omitempty"`
}

// ESP is what the ESP states between two machines have carried, whatever their
// keys. It needs CAP_NET_ADMIN.
type ESP struct {
	Client netip.Addr `json:"client"` // source of what is on its way to the server
	Server netip.Addr `json:"server"`
}

// Proxy is what a docker-proxy for TCP relayed, as path/local.Proxy tells it. It
// needs CAP_SYS_PTRACE and the machine's PID namespace.
type Proxy struct {
	PID     int            `json:"pid"` // as the agent sees it
	Listens uint16         `json:"listens"`
	Target  netip.AddrPort `json:"target"`
	Beside  bool           `json:"beside,omitempty"` // the client is on the proxy's machine, too
}
