package replica

import (
	"net/netip"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
)

// Exits returns the machine's own devices at which other machines are for certain: cards, and for
// those at a bridge the bridge, once.
func (m *Machine) Exits() (out []link.Saved) {
	if len(m.Spaces) == 0 {
		return nil
	}
	links := m.Spaces[0].Links
	for _, l := range links {
		if !othersAt(l) {
			continue
		}
		if on, ok := link.ByIndex(links, l.Master); ok {
			l = on
		}
		if !slices.ContainsFunc(out, func(o link.Saved) bool { return o.Index == l.Index }) {
			out = append(out, l)
		}
	}
	return out
}

// othersAt reports whether other machines are at a device for certain. At the other end of a veth a
// container may be starting, and a virtual machine is at that of a tap.
func othersAt(l link.Saved) bool {
	return l.Up && l.Lower && l.Name != "lo" && !slices.Contains([]string{"bridge", "dummy", "vrf",
		"veth", "netkit", "tun", "macvlan", "macvtap", "ipvlan", "ipvtap"}, l.Kind)
}

// Residents returns the networks of containers at a bridge of the machine, or of those with a
// macvlan on a card, of one family and without link-local ones.
func (m *Machine) Residents(on link.Saved, six bool) (out []netip.Prefix) {
	for i := range m.Spaces {
		if i == 0 {
			continue
		}
		for _, l := range m.Spaces[i].Links {
			at, end := m.Other(i, l)
			if end == nil || at != 0 || l.Routed() || l.Kind == "vlan" ||
				l.Pair() && end.Master != on.Index || !l.Pair() && end.Index != on.Index {
				continue
			}
			for _, p := range m.Spaces[i].Prefixes(l.Index) {
				if p.Addr().Is6() == six && !p.Addr().IsLinkLocalUnicast() {
					out = append(out, p)
				}
			}
		}
	}
	return out
}
