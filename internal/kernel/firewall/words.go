package firewall

import (
	"fmt"
	"net/netip"
	"strings"
)

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
