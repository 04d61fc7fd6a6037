package ports

import (
	"net/netip"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// beside returns the places of other machines that are in one network with containers: at a bridge
// with a card, or at the card below macvlans. It leaves out cards that machines returns, at which
// this machine has an address, and bridges that filter VLANs, whose containers may be in another
// VLAN than their cards.
func (c *Copy) beside(six bool) (out []place) {
	if c.f.Client.IsValid() || len(c.Machine.Spaces) == 0 {
		return nil
	}
	hosts, links := c.f.hosting(), c.Machine.Spaces[0].Links
	var tried []int
	for _, l := range links {
		if on, ok := link.ByIndex(links, l.Master); leadsOut(l) && ok {
			l = on
		} else if !leadsOut(l) {
			continue
		}
		d := c.f.device(l.Name)
		own := d.own(six)
		if slices.Contains(tried, l.Index) || !d.Up || len(own) > 0 && !hosts(d) || l.FiltersVLANs() {
			continue
		}
		tried = append(tried, l.Index)
		nets := c.residents(l, six)
		if len(nets) == 0 {
			continue
		}
		if len(own) > 0 {
			own = append(own, c.f.virtual(six)...)
		}
		out = append(out, place{kind: Remote, from: atCard + d.Name, addrs: own, nets: nets,
			client: replica.Client{Card: d.Name}})
	}
	return out
}

// leadsOut reports whether other machines are at a device for certain. At the other end of a veth a
// container may be starting, and a virtual machine is at that of a tap.
func leadsOut(l link.Saved) bool {
	return l.Up && l.Lower && l.Name != "lo" && !slices.Contains([]string{"bridge", "dummy", "vrf",
		"veth", "netkit", "tun", "macvlan", "macvtap", "ipvlan", "ipvtap"}, l.Kind)
}

// residents returns the networks of containers at a bridge of the machine, or of those with a
// macvlan on a card.
func (c *Copy) residents(on link.Saved, six bool) (out []netip.Prefix) {
	for i := range c.Machine.Spaces {
		if i == 0 {
			continue
		}
		for _, l := range c.Machine.Spaces[i].Links {
			at, end := c.Machine.Other(i, l)
			if end == nil || at != 0 || l.Routed() || l.Kind == "vlan" ||
				l.Pair() && end.Master != on.Index || !l.Pair() && end.Index != on.Index {
				continue
			}
			for _, p := range c.Machine.Spaces[i].Prefixes(l.Index) {
				if p.Addr().Is6() == six && !p.Addr().IsLinkLocalUnicast() {
					out = append(out, p)
				}
			}
		}
	}
	return out
}

// near reports whether a container with the address is in the place's network.
func (p place) near(a netip.Addr) bool {
	return slices.ContainsFunc(p.nets, func(net netip.Prefix) bool { return net.Contains(a) })
}
