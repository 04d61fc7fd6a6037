// Package firewall says what a machine's packet filter does to a packet,
// without sending one: which rule translates its destination, and whether it
// is let through. The rules come from nf_tables (internal/build/kernel/nft) or from
// the text of iptables-save.
//
// Be aware: it knows the matches that Docker and common firewalls write. A rule
// with one that it does not know may match or not: both are followed, and if they
// end differently Outcome.Unread says so. Outcome.Depends does the same where the
// packet's source is only an example.
package firewall

import (
	"net/netip"
	"slices"
	"strings"
)

// Hook says where the kernel calls a chain.
type Hook string

// The hooks, by their names in nf_tables.
const (
	Prerouting  Hook = "prerouting"
	Input       Hook = "input"
	Forward     Hook = "forward"
	Output      Hook = "output"
	Postrouting Hook = "postrouting"
)

// Kind is a chain's type.
type Kind string

// The kinds of chains that decide where packets go.
const (
	Filter Kind = "filter"
	NAT    Kind = "nat"
)

// Rules is a whole rule set.
type Rules struct {
	Chains []Chain
}

// Chain is a list of rules.
type Chain struct {
	V4, V6   bool // the families whose packets it sees
	Table    string
	Name     string
	Hook     Hook // "": reached by jumps only
	Kind     Kind
	Priority int
	Drop     bool // policy of a chain with a hook
	Rules    []Rule
}

// Verdict is what a rule does.
type Verdict string

// Continue is of rules that only count, mark or log.
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
	// Other is of rules that do something with the packet that is not understood.
	Other Verdict = "other"
)

// Rule is matches and a verdict. A zero match matches all.
type Rule struct {
	In, Out  Device
	Src, Dst Net
	SrcLocal Local
	DstLocal Local
	Proto    string
	Ports    Ports    // of the destination
	Sets     []Lookup // all must match
	// Map holds the verdict, by the packet; nil: it is Verdict. A packet that is not
	// in it is not matched.
	Map *Lookup
	// Unread names a match that is not understood.
	Unread  string
	Verdict Verdict
	Marks   bool           // it sets the packet's mark
	Chain   string         // of Jump and Goto
	To      netip.AddrPort // of DNAT; an invalid address or port 0 is left as it was
}

// Device matches a device's name; one that ends in + matches those that begin
// so.
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

// Local matches addresses by whether they are the machine's own.
type Local string

// The answers.
const (
	Any     Local = ""
	Own     Local = "own"
	Foreign Local = "foreign"  // one machine's, not this one's
	NoOnes  Local = "no one's" // of several machines, or of none: broadcast and the like
)

// Stage says which packet of a connection it is, as connection tracking tells them apart.
type Stage int

// The stages. A connection is assured once both ends have answered.
const (
	First      Stage = iota // the client's
	Reply                   // the server's first
	Later                   // the client's, once it is assured
	LaterReply              // the server's, once it is assured
)

// Back reports whether the server sends the packet.
func (s Stage) Back() bool { return s == Reply || s == LaterReply }

// Packet is a packet of a connection; the zero Stage is the first, in its original direction.
type Packet struct {
	Stage    Stage
	Proto    string
	Src, Dst netip.Addr
	Port     uint16 // of the destination
	// High is the last port that it may go to where Port is only the first; 0: there is one.
	High uint16
	// From is the server's port, of a packet that it sends.
	From               uint16
	In, Out            string
	SrcLocal, DstLocal bool
	// Orig is what the client dialled, where that was translated since.
	Orig netip.AddrPort
	// Sources are the addresses that the client may have; Src is one of them. Nil:
	// it has Src.
	Sources *Sources

	untracked bool // connection tracking has not seen it yet
}

// Sources are the addresses of a prefix but for some.
type Sources struct {
	Among  netip.Prefix
	Except []netip.Prefix
}

// Outcome is what the rules at a hook do with a packet.
type Outcome struct {
	Verdict Verdict // Accept, Drop, Reject, DNAT, Masquerade
	To      netip.AddrPort
	Where   string   // table and chain of the rule that decided; "" if none did
	Rule    int      // its number in that chain, from 1, as iptables counts; 0: the chain's policy, or none
	Unread  []string // matches that may have decided otherwise
	Depends []string // rules that decide otherwise for other sources
	Marks   []string // tables and chains of rules that may set the packet's mark
	Tried   int      // rules that it was compared with
}

func (c Chain) sees(p Packet) bool { return p.Dst.Is4() && c.V4 || !p.Dst.Is4() && c.V6 }

// Priorities of the kernel's own hooks (linux/netfilter_ipv4.h).
const (
	conntrackPriority = -200
	dnatPriority      = -100
)

// BeforeDNAT are the chains that see a packet as it came; AfterDNAT those that see
// its translated destination.
func (r Rules) BeforeDNAT() Rules {
	return r.only(func(c Chain) bool { return c.Priority <= dnatPriority })
}

// AfterDNAT is the rest.
func (r Rules) AfterDNAT() Rules {
	return r.only(func(c Chain) bool { return c.Priority > dnatPriority })
}

// only leaves out base chains; what they jump to stays.
func (r Rules) only(want func(Chain) bool) Rules {
	var out Rules
	for _, c := range r.Chains {
		if c.Hook == "" || want(c) {
			out.Chains = append(out.Chains, c)
		}
	}
	return out
}

// find looks for a chain of the same table and family.
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

// to reports whether the packet's destination has a port in the range.
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
