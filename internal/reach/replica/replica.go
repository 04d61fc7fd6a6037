// Package replica makes a private copy of a machine's network and makes connections in it. So the
// kernel itself decides which packets pass. No packet leaves the copy.
//
// Read reads a Machine, which may also be saved to a file and loaded elsewhere. Start builds a copy
// in a child process, in a user namespace or, if these are forbidden, as root. The copy ends with
// that process. Session.Dial makes connections in the copy.
package replica

import (
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
	"github.com/bridgetoll/bridgetoll/internal/kernel/xtables"
)

// Machine is the network of a machine and of the containers linked to it.
type Machine struct {
	Arch   string  `json:"arch"`   // GOARCH, because raw messages are in the machine's byte order
	Kernel string  `json:"kernel"` // release
	Spaces []Space `json:"namespaces"`
	// First names bridges of the first namespace that matter most, if not all can be copied.
	First []string `json:"-"`

	// here means that Read made the Machine on this machine. Only such a Machine may be built
	// without a user namespace, as root.
	here bool
	// singled has what Singled returns of a Machine that Session.Now returned; nil: of any other.
	singled *[]int
}

// Space is a network namespace. The machine's own is the first of Machine.Spaces.
type Space struct {
	ID string `json:"id"` // as /proc/PID/ns/net prints it: "net:[4026531840]"
	// PID is the PID of a process that was in the namespace when it was read; 0: the namespace had
	// no process, but a name.
	PID int `json:"pid"`
	// Names has the names by which ip-netns knows the namespace.
	Names      []string          `json:"names,omitempty"`
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
	// Text has the rules as iptables-save and nft print them; nil until ReadText is called.
	Text []RuleText `json:"rules,omitempty"`
	// Unknown lists parts that may drop or redirect packets and cannot be copied.
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
	// Device limits the part to packets that cross the device; "": all packets of the namespace.
	Device string `json:"device,omitempty"`
	// At limits the part to packets of a protocol to an address and port; zero: to any. Port 0 is any
	// port.
	At    netip.AddrPort `json:"at,omitzero"`
	Proto string         `json:"protocol,omitempty"` // "tcp", "udp", "sctp"; "": any
}

// Socket describes a stand-in for a listening socket. The stand-in answers with its index in the
// list given to Start, and with the address from which it sees the client.
type Socket struct {
	Space  int            `json:"namespace"`
	Proto  string         `json:"protocol"` // "tcp" or "udp"
	Addr   netip.AddrPort `json:"address"`
	V6Only bool           `json:"v6_only,omitempty"`
	Device string         `json:"device,omitempty"` // SO_BINDTODEVICE
	Mark   uint32         `json:"mark,omitempty"`   // SO_MARK
	// Relay is the address to which a docker-proxy connects from its own namespace; zero: the
	// socket answers.
	Relay netip.AddrPort `json:"relay"`
	// Doubt is what may keep packets from the real socket, but not from the stand-in; "": nothing.
	Doubt string `json:"doubt,omitempty"`
}

// Client is the place from which a connection is made.
type Client struct {
	Space int `json:"namespace"`
	// Card is a device of Space: the client is on another machine in the device's network. "": it
	// is not.
	Card string `json:"card,omitempty"`
	// Bridge is a bridge of Space: the client is in a new container on the bridge. "": it is not.
	Bridge string `json:"bridge,omitempty"`
	// Source is the client's address. If it is zero, the kernel chooses one or, with Card or
	// Bridge, the client gets a free address of that network. With Card it may be the address of
	// any machine in the network or behind its routers.
	Source netip.Addr `json:"source"`
}

// Scan is an address all of whose ports are tried from a place.
type Scan struct {
	Client Client     `json:"client"`
	To     netip.Addr `json:"to"`
	UDP    bool       `json:"udp,omitempty"` // else TCP
}

// Dial is a connection to make, or a datagram to send.
type Dial struct {
	Client
	Proto string         `json:"protocol"`
	To    netip.AddrPort `json:"to"`
	// Long is the client's port for an exchange of 64 KiB in each direction over TCP, after which
	// both sides end the connection; 0: a short connection. Dials with the same port must have
	// different destinations.
	Long uint16 `json:"long,omitempty"`
	// Explain requests the packets' steps and, if packets were lost, where and why. For that the
	// copy makes a separate connection, while it makes no others. With Long it does so only for the
	// first failure of each client and destination.
	Explain bool `json:"explain,omitempty"`
	// OnlyLost limits Explain to connections that get neither an answer nor a refusal. Without
	// Long.
	OnlyLost bool `json:"only_lost,omitempty"`
	// Pass limits a short connection without Explain to one of its two passes. "": both, the second
	// one if it is needed.
	Pass Pass `json:"pass,omitempty"`
}

// Pass is one of the two passes in which connections are made.
type Pass string

// The passes. A Doubtful outcome of the first is not certain: make the second.
const (
	Quickly Pass = "quickly" // thousands at once, with little time for each answer
	Calmly  Pass = "calmly"
)

// Got is the outcome of a connection.
type Got string

// The outcomes. A datagram without an answer is a Timeout.
const (
	Connected   Got = "connected"   // connected and answered
	Refused     Got = "refused"     // RST, or ICMP port unreachable
	Closed      Got = "closed"      // accepted, then closed or reset without an answer
	Silent      Got = "silent"      // accepted, then no answer
	Timeout     Got = "timeout"     // no answer to the first packet
	Unreachable Got = "unreachable" // no route here, or another ICMP error
	Failed      Got = "failed"      // the connection could not be tried: see Outcome.Err
)

// Answer has the results of a Dial.
type Answer struct {
	// Outcomes has each different outcome once, the most frequent first. There are several if rules
	// choose at random.
	Outcomes []Outcome `json:"outcomes"`
	Steps    []Step    `json:"steps,omitempty"` // with Explain: of the first packet and its answer
	Lost     *Lost     `json:"lost,omitempty"`  // with Explain, if there was no answer
	// Unsure lists why the machine itself may answer differently: rules that cannot be copied and
	// matter for this answer, and parts that the copy lacks where the packets pass. Empty: the
	// answer is certain.
	Unsure []string `json:"unsure,omitempty"`
}

// Explained reports whether the answer has where the packets passed or were lost.
func (a *Answer) Explained() bool { return len(a.Steps) > 0 || a.Lost != nil }

// Outcome is one outcome of a Dial.
type Outcome struct {
	Got    Got        `json:"got"`
	Err    string     `json:"error,omitempty"`
	Source netip.Addr `json:"source"` // the client's address
	Socket int        `json:"socket"` // the Socket that answered; -1: none
	// Seen is the client's address as that socket sees it.
	Seen netip.Addr `json:"seen"`
	// Relays has the Sockets of the docker-proxies in between, in order.
	Relays []int `json:"relays,omitempty"`
	// From is the source address of a datagram's answer if it is not the dialled one; else zero.
	From netip.AddrPort `json:"from"`
}

// Doubtful reports whether a busy machine may have caused the outcome.
func (o Outcome) Doubtful() bool { return o.Got != Connected && o.Got != Refused }

// Step is a packet at a device.
type Step struct {
	Space  int            `json:"namespace"` // -1: another machine, or a new container
	Device string         `json:"device"`    // "": it is delivered here, redirected by rules
	Out    bool           `json:"out"`       // it leaves through the device
	Reply  bool           `json:"reply"`     // the packet goes to the client
	Src    netip.AddrPort `json:"src"`
	Dst    netip.AddrPort `json:"dst"`
	// Rule is the rule that redirects it here. With Device "" it is nil if it is not known.
	Rule *RuleText `json:"rule,omitempty"`
}

// Lost has where and why packets were lost. At most one of Rule and Why is set.
type Lost struct {
	Space int   `json:"namespace"`
	Reply bool  `json:"reply"` // the answer was lost, not the first packet
	Rule  *Rule `json:"rule,omitempty"`
	Why   Why   `json:"why,omitempty"`
	// Dst is the destination, after DNAT, of a packet that a rule dropped, or that was lost before a
	// device showed it; else zero.
	Dst netip.AddrPort `json:"dst,omitzero"`
	// Device is the device by which the packet came in last, or by which it left the copy or, with
	// NoNeighbour, would have left.
	Device string `json:"device,omitempty"`
}

// Caused reports whether the cause of the loss is known.
func (l *Lost) Caused() bool {
	return l != nil && (l.Rule != nil || l.Why != "" && l.Why != Untraced)
}

// Rule is the place of a rule that dropped or rejected a packet.
type Rule struct {
	RuleText      // Number 0: the chain's policy; Text "": not known
	Reject   bool `json:"reject,omitempty"`
}

// Why is a reason other than a rule.
type Why string

// The reasons.
const (
	ReversePath    Why = "rp_filter"    // the source is not routed back through the device
	NoRoute        Why = "no-route"     // nothing routes to the destination
	ReplyElsewhere Why = "reply-leaves" // the answer leaves through another device
	ReplyUnnatted  Why = "reply-as-is"  // the answer reaches the client untranslated
	NotForwarded   Why = "forwarding"   // ip_forward is 0
	Localnet       Why = "localnet"     // 127.0.0.1 or ::1 may not leave lo
	Leaves         Why = "leaves"       // left through Device to machines that do not answer
	NoNeighbour    Why = "no-neighbour" // no machine has the address
	Untraced       Why = "untraced"     // a rule of iptables-legacy, or a lost trace
)
