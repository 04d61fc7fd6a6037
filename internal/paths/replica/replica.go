// Package replica makes a private copy of a machine's network and connects in it, so that the
// kernel decides which packets pass. No packet leaves the copy.
//
// Read reads a Machine, which may also be saved to a file and loaded elsewhere. Start builds its
// copy in a child process, in network namespaces of a user namespace; without one as root. The copy
// ends with that process. Session.Dial makes connections between the copy's places.
package replica

import (
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/raw"
	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/xtables"
)

// Machine is the network of a machine and of the containers linked to it.
type Machine struct {
	Arch   string  `json:"arch"`   // as GOARCH: raw messages are in the machine's byte order
	Kernel string  `json:"kernel"` // release
	Spaces []Space `json:"namespaces"`

	// here reports that Read read it on this machine. Only such a Machine is built by root without
	// a user namespace.
	here bool
}

// Space is a network namespace. The machine's own is the first of Machine.Spaces.
type Space struct {
	ID string `json:"id"` // as /proc/PID/ns/net prints it: "net:[4026531840]"
	// PID is a process in it when it was read. 0: none, the namespace has a name.
	PID        int               `json:"pid"`
	Links      []link.Saved      `json:"links"`
	Addresses  []raw.Message     `json:"addresses"`
	Nexthops   []raw.Message     `json:"nexthops,omitempty"`
	Routes     []raw.Message     `json:"routes"`
	Policy     []raw.Message     `json:"policy"` // RTM_NEWRULE
	Neighbours []raw.Message     `json:"neighbours,omitempty"`
	Sysctls    map[string]string `json:"sysctls"`
	Nft        nft.Saved         `json:"nftables"`
	Legacy     []xtables.Saved   `json:"iptables_legacy,omitempty"`
	Sets       []raw.Message     `json:"ipsets,omitempty"`
	// Text has the rules as their user wrote them. Nil until ReadText.
	Text []RuleText `json:"rules,omitempty"`
	// Unknown lists what may drop or redirect packets and cannot be copied.
	Unknown []Unknown `json:"unknown,omitempty"`
}

// RuleText is a rule as iptables-save or nft prints it.
type RuleText struct {
	Table  string `json:"table"` // "ip filter" (nf_tables, iptables-nft), "iptables-legacy filter"
	Chain  string `json:"chain"`
	Number int    `json:"number"` // in the chain, from 1
	Text   string `json:"text"`
}

// Unknown is a part of a namespace that the copy lacks.
type Unknown struct {
	What string `json:"what"` // "BPF program cil_from_netdev at eth0's tc ingress"
	// Device limits it to packets that cross the device. "": all packets of the namespace.
	Device string `json:"device,omitempty"`
}

// Socket is a stand-in for a listening socket. It answers with its index in the list given to
// Start, and with the client's address as it sees it.
type Socket struct {
	Space  int            `json:"namespace"`
	Proto  string         `json:"protocol"` // "tcp" or "udp"
	Addr   netip.AddrPort `json:"address"`
	V6Only bool           `json:"v6_only,omitempty"`
	Device string         `json:"device,omitempty"` // SO_BINDTODEVICE
	// Relay is where a docker-proxy connects, from its own namespace. Zero: the socket answers.
	Relay netip.AddrPort `json:"relay"`
}

// Client is the place from which a connection is made.
type Client struct {
	Space int `json:"namespace"`
	// Card, unless "", puts the client on another machine in the network of this device of Space.
	Card string `json:"card,omitempty"`
	// Bridge, unless "", puts the client into a new container at this bridge of Space.
	Bridge string `json:"bridge,omitempty"`
	// Source is the client's address; zero: the kernel chooses. With Card it may be any address of
	// a machine there or behind its routers, zero a free address of the card's network; with Bridge
	// zero is a free address of the bridge's network.
	Source netip.Addr `json:"source"`
}

// Dial is a connection to make, or a datagram to send.
type Dial struct {
	Client
	Proto string         `json:"protocol"`
	To    netip.AddrPort `json:"to"`
	// Long, unless 0, is the client's port for an exchange of 64 KiB in each direction over TCP,
	// which is not explained.
	Long uint16 `json:"long,omitempty"`
	// Explain finds out which way the packets took and, if they were lost, where and why. It takes
	// a connection of its own, while nothing else is connecting.
	Explain bool `json:"explain,omitempty"`
}

// Got is the outcome of a connection.
type Got string

// The outcomes. A datagram without an answer is a Timeout.
const (
	Connected   Got = "connected"   // and answered
	Refused     Got = "refused"     // RST, or ICMP port unreachable
	Closed      Got = "closed"      // accepted, then closed or reset without an answer
	Silent      Got = "silent"      // accepted, then nothing
	Timeout     Got = "timeout"     // no answer to the first packet
	Unreachable Got = "unreachable" // no route here, or another ICMP error
	Failed      Got = "failed"      // the dial could not be made: Outcome.Err
)

// Answer is the result of a Dial.
type Answer struct {
	// Outcomes has each different outcome once, the most frequent first. More than one: rules
	// choose at random.
	Outcomes []Outcome `json:"outcomes"`
	Steps    []Step    `json:"steps,omitempty"` // with Explain: of the first packet and its answer
	Lost     *Lost     `json:"lost,omitempty"`  // with Explain, if there was no answer
	// Unsure says why the machine may answer differently: rules that cannot be copied and decide
	// here, and what the copy lacks where the packets pass. Empty: the answer is sure.
	Unsure []string `json:"unsure,omitempty"`
}

// Outcome is one outcome of a Dial.
type Outcome struct {
	Got    Got        `json:"got"`
	Err    string     `json:"error,omitempty"`
	Source netip.Addr `json:"source"` // the client's address
	Socket int        `json:"socket"` // the Socket that answered; -1: none
	// Seen is the client's address as that socket saw it.
	Seen netip.Addr `json:"seen"`
	// Relays are the docker-proxies between, in order.
	Relays []int `json:"relays,omitempty"`
	// From is the source of a datagram's answer if the client did not ask there; else zero.
	From netip.AddrPort `json:"from"`
}

// Step is a packet at a device.
type Step struct {
	Space  int            `json:"namespace"` // -1: another machine, or a new container
	Device string         `json:"device"`
	Out    bool           `json:"out"`   // it leaves by the device
	Reply  bool           `json:"reply"` // it goes towards the client
	Src    netip.AddrPort `json:"src"`
	Dst    netip.AddrPort `json:"dst"`
}

// Lost tells where and why packets were lost. At most one of Rule and Why is known.
type Lost struct {
	Space int   `json:"namespace"`
	Reply bool  `json:"reply"` // the answer was lost, not the first packet
	Rule  *Rule `json:"rule,omitempty"`
	Why   Why   `json:"why,omitempty"`
	// Dst is the destination of a packet that a rule dropped, after translation; else zero.
	Dst netip.AddrPort `json:"dst,omitzero"`
	// Device is where the packet came in last, or left elsewhere.
	Device string `json:"device,omitempty"`
}

// Rule names a rule that dropped or rejected a packet.
type Rule struct {
	RuleText      // Number 0: the chain's policy; Text "": not known
	Reject   bool `json:"reject,omitempty"`
}

// Why is a reason other than a rule.
type Why string

// The reasons.
const (
	ReversePath    Why = "rp_filter"    // the source is not routed back by the device
	NoRoute        Why = "no-route"     // nothing routes to the destination
	ReplyElsewhere Why = "reply-leaves" // the answer leaves by another device
	ReplyUnnatted  Why = "reply-as-is"  // the answer reaches the client untranslated
	NotForwarded   Why = "forwarding"   // ip_forward is 0
	Localnet       Why = "localnet"     // 127.0.0.1 or ::1 may not leave lo
	Leaves         Why = "leaves"       // by Device, to other machines, which do not answer
	NoNeighbour    Why = "no-neighbour" // nobody has the address
	Untraced       Why = "untraced"     // iptables-legacy, or the trace was lost
)
