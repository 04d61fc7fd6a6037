// Package firewall says what a machine's packet filter does to a packet,
// without sending one: which rule translates its destination, and whether it
// is let through. The rules come from nf_tables (internal/kernel/nft) or from
// the text of iptables-save.
//
// Be aware: it knows the matches that Docker and common firewalls write. What
// it does not know it leaves out and names in Outcome.Unread, so that a
// judgement that rests on such rules can be called uncertain.
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
)

// Rule is matches and a verdict. A zero match matches all.
type Rule struct {
	In, Out  Device
	Src, Dst Net
	SrcLocal Local
	DstLocal Local
	Proto    string
	Ports    Ports // of the destination
	// NotNew rules match only packets of known connections.
	NotNew bool
	Sets   []Lookup // all must match
	// Map holds the verdict, by the packet; nil: it is Verdict. A packet that is not
	// in it is not matched.
	Map *Lookup
	// Unread names a match that is not understood.
	Unread  string
	Verdict Verdict
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
	Any   Local = ""
	Own   Local = "own"
	Other Local = "other"
)

// Packet is the first packet of a connection.
type Packet struct {
	Proto              string
	Src, Dst           netip.Addr
	Port               uint16
	In, Out            string
	SrcLocal, DstLocal bool
}

// Outcome is what became of a packet at a hook.
type Outcome struct {
	Verdict Verdict // Accept, Drop, Reject, DNAT, Masquerade
	To      netip.AddrPort
	Where   string   // table and chain of the rule that decided; "" if none did
	Unread  []string // matches that may have decided otherwise
	Tried   int      // rules that it was compared with
}

// Walk sends p through the chains of that kind at a hook, in the kernel's order.
func (r Rules) Walk(kind Kind, hook Hook, p Packet) Outcome {
	w := walk{rules: r, p: p}
	var bases []Chain
	for _, c := range r.Chains {
		if c.Hook == hook && c.Kind == kind && c.sees(p) {
			bases = append(bases, c)
		}
	}
	slices.SortStableFunc(bases, func(a, b Chain) int { return a.Priority - b.Priority })
	for _, c := range bases {
		rule, where := w.chain(c, 0)
		switch v := rule.Verdict; {
		case v == Drop || v == Reject || v == Masquerade || v == DNAT:
			return Outcome{v, w.to(rule), where, w.unread, w.tried}
		case v != Accept && c.Drop:
			return Outcome{Drop, netip.AddrPort{}, "policy of " + c.Table + " " + c.Name, w.unread, w.tried}
		}
	}
	return Outcome{Verdict: Accept, Unread: w.unread, Tried: w.tried}
}

func (c Chain) sees(p Packet) bool { return p.Dst.Is4() && c.V4 || !p.Dst.Is4() && c.V6 }

type walk struct {
	rules  Rules
	p      Packet
	unread []string
	tried  int
}

// maxDepth is the kernel's own limit of jumps.
const maxDepth = 16

// chain returns the rule that decided; its verdict is Continue if none did.
func (w *walk) chain(c Chain, depth int) (Rule, string) {
	for _, r := range c.Rules {
		w.tried++
		if !r.matches(w.p) {
			continue
		}
		if r.Unread != "" {
			if r.Map != nil || r.Verdict != Continue && r.Verdict != Return {
				w.unread = append(w.unread, c.Table+" "+c.Name+": "+r.Unread)
			}
			continue
		}
		if r.Map != nil {
			e, ok := r.Map.find(w.p)
			if !ok {
				continue
			}
			r.Verdict, r.Chain = e.Verdict, e.Chain
		}
		switch r.Verdict {
		case Continue:
		case Return:
			return Rule{}, ""
		case Jump, Goto:
			next, ok := w.rules.find(c, r.Chain)
			if !ok || depth == maxDepth {
				continue
			}
			if d, where := w.chain(next, depth+1); d.Verdict != Continue {
				return d, where
			}
			if r.Verdict == Goto {
				return Rule{}, ""
			}
		default:
			return r, c.Table + " " + c.Name
		}
	}
	return Rule{}, ""
}

// find looks for a chain of the same table and family.
func (r Rules) find(from Chain, name string) (Chain, bool) {
	for _, c := range r.Chains {
		if c.Table == from.Table && c.V4 == from.V4 && c.V6 == from.V6 && c.Name == name {
			return c, true
		}
	}
	return Chain{}, false
}

// to is where a DNAT rule sends the packet.
func (w *walk) to(r Rule) netip.AddrPort {
	if r.Verdict != DNAT {
		return netip.AddrPort{}
	}
	addr, port := r.To.Addr(), r.To.Port()
	if !addr.IsValid() {
		addr = w.p.Dst
	}
	if port == 0 {
		port = w.p.Port
	}
	return netip.AddrPortFrom(addr, port)
}

func (r Rule) matches(p Packet) bool {
	return r.In.matches(p.In) && r.Out.matches(p.Out) && r.Src.matches(p.Src) && r.Dst.matches(p.Dst) &&
		r.SrcLocal.matches(p.SrcLocal) && r.DstLocal.matches(p.DstLocal) &&
		(r.Proto == "" || r.Proto == p.Proto) && r.Ports.matches(p.Port) && !r.NotNew &&
		!slices.ContainsFunc(r.Sets, func(l Lookup) bool { return !l.matches(p) })
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

func (s Ports) matches(port uint16) bool {
	return s.High == 0 || (s.Low <= port && port <= s.High) != s.Not
}

func (l Local) matches(own bool) bool { return l == Any || (l == Own) == own }
