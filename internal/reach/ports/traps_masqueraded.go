package ports

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// planUnmasqueraded adds connections to the internet from the networks whose packets are to keep
// their source addresses.
func (c *Copy) planUnmasqueraded() {
	if c.port != 0 || c.f.Changed || !c.f.Switches.Forward4 {
		return
	}
	planned := 0
	for _, n := range c.f.Networks {
		if _, ok := c.f.prefixOn(n.Bridge, false); n.Unmasqueraded == "" || !ok {
			continue
		}
		if planned++; planned > maxBridges {
			return
		}
		c.asked = append(c.asked, asked{service: service{"tcp", netip.AddrPortFrom(anybody, 80)},
			place: place{client: replica.Client{Bridge: n.Bridge}}, bridge: n.Bridge, tier: column})
	}
}

// masqueraded finds networks without NAT whose packets leave this machine with another source
// address.
func (f *Facts) masqueraded([]Row) (out []Trap) {
	if f.Copy == nil {
		return nil
	}
	for _, n := range f.Networks {
		if n.Unmasqueraded == "" {
			continue
		}
		for i, q := range f.Copy.asked {
			s := q.left()
			if q.bridge != n.Bridge || !s.Out || s.Src.Addr() == q.source() {
				continue
			}
			t := Trap{Code: Masqueraded,
				About: Reason{Code: Masqueraded, Of: n.Name, By: n.Unmasqueraded},
				Evidence: fmt.Sprintf("a TCP packet from %s to the internet leaves %s from %s",
					q.source(), s.Device, s.Src.Addr())}
			t.keep(f.Copy, i, s.Device)
			out = append(out, t)
			break
		}
	}
	return out
}

// left returns the step in which the client's packet left this machine for the dialled address, or
// the zero Step.
func (q asked) left() (out replica.Step) {
	for _, s := range q.answer.Steps {
		if s.Space == 0 && s.Out && !s.Reply && s.Dst == q.at && s.Device != q.bridge {
			out = s
		}
	}
	return out
}

// source returns the client's address, or the zero Addr.
func (q asked) source() netip.Addr {
	if len(q.answer.Outcomes) == 0 {
		return netip.Addr{}
	}
	return q.answer.Outcomes[0].Source
}

// keep sets the remedy: a command that exempts the client's network from the rules, which it adds
// to the evidence.
func (t *Trap) keep(c *Copy, which int, device string) {
	var rules []string
	for _, r := range c.translators(c.asked[which].source(), device) {
		rules = once(rules, r.Text)
	}
	if len(rules) > 0 {
		t.Evidence += ": " + few(rules)
	}
	net, _ := c.f.prefixOn(c.asked[which].bridge, false)
	commands := here0(fmt.Sprintf("iptables -t nat -I POSTROUTING -s %s -o %s -j ACCEPT",
		net.Masked(), device))
	t.trials = []TrapTrial{{Commands: commands, which: []int{which}, ended: func(q asked) bool {
		return q.left().Out && q.left().Src.Addr() == q.source()
	}}}
	if t.Remedy = c.told(commands); t.Remedy == "" {
		t.Remedy = "exempt " + net.Masked().String() + " from that rule" +
			inVain(commands, "toll's own command")
		return
	}
	t.Remedy += "; other machines then need a route to " + net.Masked().String()
}

// translators returns the machine's rules that may replace the source address of packets that leave
// through the device; "": any.
func (c *Copy) translators(src netip.Addr, device string) (out []replica.RuleText) {
	for _, r := range c.textsOf(0) {
		text := strings.ToLower(r.Text)
		if (strings.Contains(text, "masquerade") || strings.Contains(text, "snat")) &&
			mayMatch(r.Text, src, device) {
			out = append(out, r)
		}
	}
	return out
}

// mayMatch reports whether a rule's source and output device leave the packet in question.
func mayMatch(rule string, src netip.Addr, device string) bool {
	words := strings.Fields(rule)
	for i, w := range words[:max(0, len(words)-1)] {
		value, not := words[i+1], i > 0 && words[i-1] == "!"
		if value == "!=" && i+2 < len(words) {
			value, not = words[i+2], true
		}
		value = strings.Trim(value, `"`)
		switch w {
		case "-s", "saddr":
			net, err := netip.ParsePrefix(value)
			if a, bad := netip.ParseAddr(value); bad == nil {
				net, err = netip.PrefixFrom(a, a.BitLen()), nil
			}
			if err == nil && net.Contains(src) == not {
				return false
			}
		case "-o", "oif", "oifname":
			start, _ := strings.CutSuffix(strings.TrimSuffix(value, "*"), "+")
			same := value == device || start != value && strings.HasPrefix(device, start)
			if device != "" && !strings.ContainsAny(value, "{@$") && same == not {
				return false
			}
		case "--src-type":
			if value == "LOCAL" && !not {
				return false
			}
		}
	}
	return true
}
