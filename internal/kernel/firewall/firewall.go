// Package firewall has the rules of packet filters as data. They come from nf_tables
// (internal/kernel/nft) or from iptables-save.
package firewall

import "net/netip"

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
