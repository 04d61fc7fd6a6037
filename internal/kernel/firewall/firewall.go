// Package firewall has the rules of packet filters as data. They come from nf_tables
// (internal/kernel/nft) or from iptables-save.
package firewall

import (
	"fmt"
	"net/netip"
	"strings"
)

// Chain is a list of rules.
type Chain struct {
	V4, V6 bool
	Table  string
	Name   string
	Drop   bool // the policy is to drop
	Rules  []Rule
}

// Verdict is the effect of a rule.
type Verdict string

// Continue is the verdict of rules that only count, mark or log packets.
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

// Rule has matches and a verdict. A zero match matches every packet.
type Rule struct {
	In, Out  Device
	Src, Dst Net
	SrcLocal Local
	DstLocal Local
	Proto    string
	Ports    Ports // destination ports
	Set      bool  // the rule looks up a set or a map
	// a match or an effect that this package cannot represent; "": none
	Unread  string
	Verdict Verdict
	Chain   string         // of a jump; also the name of an iptables target such as MARK
	To      netip.AddrPort // of DNAT; an invalid address, or port 0, stays unchanged
}

// Device matches a device by its name. A final + matches all names with the prefix.
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

const (
	Any     Local = ""
	Own     Local = "own"
	Foreign Local = "foreign"
)

// Has reports whether the rule has the verdict and every match of want.
func (r Rule) Has(want Rule) bool {
	return says(want.In, r.In) && says(want.Out, r.Out) && says(want.Src, r.Src) &&
		says(want.Dst, r.Dst) &&
		says(want.SrcLocal, r.SrcLocal) && says(want.DstLocal, r.DstLocal) &&
		says(want.Proto, r.Proto) &&
		says(want.Ports, r.Ports) &&
		says(want.Verdict, r.Verdict) && says(want.Chain, r.Chain) && says(want.To, r.To)
}

func says[T comparable](want, is T) bool {
	var nothing T
	return want == nothing || want == is
}

// String returns the known parts of the rule in iptables' words, without the elements of sets.
func (r Rule) String() string {
	var out []string
	word := func(option, value string, not bool) {
		if value == "" {
			return
		}
		if not {
			out = append(out, "!")
		}
		out = append(out, option, value)
	}
	word("-i", r.In.Name, r.In.Not)
	word("-o", r.Out.Name, r.Out.Not)
	word("-s", prefixText(r.Src.Prefix), r.Src.Not)
	word("-d", prefixText(r.Dst.Prefix), r.Dst.Not)
	word("-p", r.Proto, false)
	if p := r.Ports; p.High != 0 {
		word("--dport", p.String(), p.Not)
	}
	if r.SrcLocal != Any {
		word("--src-type", "LOCAL", r.SrcLocal != Own)
	}
	if r.DstLocal != Any {
		word("--dst-type", "LOCAL", r.DstLocal != Own)
	}
	if r.Set {
		out = append(out, "by a set")
	}
	word("and", r.Unread, false)
	switch r.Verdict {
	case Jump, Goto:
		word("-j", r.Chain, false)
	case DNAT:
		word("-j", "DNAT to "+r.To.String(), false)
	default:
		word("-j", strings.ToUpper(string(r.Verdict)), false)
	}
	return strings.Join(out, " ")
}

func prefixText(p netip.Prefix) string {
	if !p.IsValid() {
		return ""
	}
	return p.String()
}

// String returns the range as iptables writes it, without its negation.
func (s Ports) String() string {
	if s.High == s.Low {
		return fmt.Sprint(s.Low)
	}
	return fmt.Sprintf("%d:%d", s.Low, s.High)
}
