// Package firewall computes what a machine's packet filter does to a packet, without sending one:
// which rule translates its destination, and whether it passes. The rules come from nf_tables
// (internal/paths/kernel/nft) or from iptables-save.
//
// The package knows the matches of Docker and common firewalls. A rule with an unknown match is
// followed both ways; if the results differ, Outcome.Unread names the match. Outcome.Depends does
// the same for a packet whose source is only an example.
package firewall

import (
	"net/netip"
	"slices"
	"strings"
)

// Hook is where the kernel calls a chain.
type Hook string

// The names are nf_tables'.
const (
	Prerouting  Hook = "prerouting"
	Input       Hook = "input"
	Forward     Hook = "forward"
	Output      Hook = "output"
	Postrouting Hook = "postrouting"
)

// Kind is the type of a chain.
type Kind string

const (
	Filter Kind = "filter"
	NAT    Kind = "nat"
)

// Rules is a rule set.
type Rules struct {
	Chains []Chain
}

// Chain is a list of rules.
type Chain struct {
	V4, V6   bool
	Table    string
	Name     string
	Hook     Hook // "": only jumps reach it
	Kind     Kind
	Priority int
	Drop     bool
	Rules    []Rule
}

// Verdict is the effect of a rule.
type Verdict string

// Continue is the verdict of rules that only count, mark or log.
const (
	Continue   Verdict = ""
	Accept     Verdict = "accept"
	Drop       Verdict = "drop"
	Reject     Verdict = "reject"
	Return     Verdict = "return"
	Jump       Verdict = "jump"
	Goto       Verdict = "goto"
	DNAT       Verdict = "dnat"
	Masquerade Verdict = "masquerade"
	// Other is an effect that the package does not understand.
	Other Verdict = "other"
)

// Rule has matches and a verdict. A zero match matches every packet.
type Rule struct {
	In, Out  Device
	Src, Dst Net
	SrcLocal Local
	DstLocal Local
	Proto    string
	Ports    Ports // destination ports
	Sets     []Lookup
	// Map, unless nil, replaces Verdict. A packet outside it does not match.
	Map *Lookup
	// a match that the package does not understand
	Unread  string
	Verdict Verdict
	Marks   bool
	Chain   string
	To      netip.AddrPort // of DNAT; an invalid address or port 0 is unchanged
}

// Device matches a device's name, or with a final + all names with its prefix.
type Device struct {
	Name string
	Not  bool
}

// Net matches an address.
type Net struct {
	Prefix netip.Prefix
	Not    bool
}

// Ports matches a range of ports.
type Ports struct {
	Low, High uint16 // 0: any
	Not       bool
}

// Local tells whether an address must be the machine's own.
type Local string

const (
	Any     Local = ""
	Own     Local = "own"
	Foreign Local = "foreign"  // another single machine's
	NoOnes  Local = "no one's" // of several machines, such as broadcast, or unused
)

// Stage is a packet's position in a connection, for connection tracking.
type Stage int

const (
	First      Stage = iota // of the client
	Reply                   // of the server
	Later                   // of the client, once the connection is assured
	LaterReply              // of the server, once the connection is assured
)

// Back reports whether the server sends the packet.
func (s Stage) Back() bool { return s == Reply || s == LaterReply }

// Packet is a packet of a connection.
type Packet struct {
	Stage    Stage
	Proto    string
	Src, Dst netip.Addr
	Port     uint16
	// High is the last possible port if Port is the first of a range, or 0.
	High uint16
	// the server's port, for its packets
	From               uint16
	In, Out            string
	SrcLocal, DstLocal bool
	// the dialled address before its translation
	Orig netip.AddrPort
	// Sources are the client's possible addresses, if Src is only an example.
	Sources *Sources

	untracked bool // by connection tracking
}

// Sources are the addresses of a prefix, with exceptions.
type Sources struct {
	Among  netip.Prefix
	Except []netip.Prefix
}

// Outcome is the result of the rules at a hook for a packet.
type Outcome struct {
	Verdict Verdict
	To      netip.AddrPort
	Where   string   // deciding rule's table and chain, or ""
	Rule    int      // in the chain, from 1, as in iptables; 0: the policy, or no rule
	Unread  []string // matches that may have decided otherwise
	Depends []string // rules that decide otherwise for other sources
	Marks   []string // tables and chains of rules that may set the packet's mark
	Tried   int      // rules compared with the packet
}

func (c Chain) sees(p Packet) bool { return p.Dst.Is4() && c.V4 || !p.Dst.Is4() && c.V6 }

// linux/netfilter_ipv4.h
const (
	conntrackPriority = -200
	dnatPriority      = -100
)

// BeforeDNAT keeps only the base chains that see the original destination.
func (r Rules) BeforeDNAT() Rules {
	return r.only(func(c Chain) bool { return c.Priority <= dnatPriority })
}

// AfterDNAT keeps only the base chains that see the translated destination.
func (r Rules) AfterDNAT() Rules {
	return r.only(func(c Chain) bool { return c.Priority > dnatPriority })
}

func (r Rules) only(want func(Chain) bool) Rules {
	var out Rules
	for _, c := range r.Chains {
		if c.Hook == "" || want(c) {
			out.Chains = append(out.Chains, c)
		}
	}
	return out
}

func (r Rules) find(from *Chain, name string) *Chain {
	i := slices.IndexFunc(r.Chains, func(c Chain) bool {
		return c.Table == from.Table && c.V4 == from.V4 && c.V6 == from.V6 && c.Name == name
	})
	if i < 0 {
		return nil
	}
	return &r.Chains[i]
}

func (d Device) matches(name string) bool {
	if d.Name == "" {
		return true
	}
	stem, prefix := strings.CutSuffix(d.Name, "+")
	return (name == d.Name || prefix && strings.HasPrefix(name, stem)) != d.Not
}

func (n Net) matches(a netip.Addr) bool {
	return !n.Prefix.IsValid() || n.Prefix.Contains(a) != n.Not
}

func (s Ports) to(p *Packet) answer {
	if s.High == 0 {
		return sure(true)
	}
	return p.to(s.Low, s.High).not(s.Not)
}

func (p *Packet) to(low, high uint16) answer {
	last := max(p.Port, p.High)
	all := low <= p.Port && last <= high
	return answer{yes: all, open: !all && low <= last && p.Port <= high}
}

func (l Local) matches(own bool) bool {
	switch l {
	case Own:
		return own
	case Foreign:
		return !own
	}
	return l == Any
}
