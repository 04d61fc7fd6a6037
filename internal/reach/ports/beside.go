package ports

import (
	"net/netip"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// beside returns the places of other machines that are in one network with containers: at a bridge
// with a card, or at the card below macvlans. It leaves out cards that machines returns, at which
// this machine has an address, and bridges that filter VLANs, whose containers may be in another
// VLAN than their cards.
func (c *Copy) beside(six bool) (out []place) {
	if c.f.Client.IsValid() {
		return nil
	}
	hosts := c.f.hosting()
	for _, l := range c.Machine.Exits() {
		d := c.f.device(l.Name)
		own := d.own(six)
		if !d.Up || len(own) > 0 && !hosts(d) || l.FiltersVLANs() {
			continue
		}
		nets := c.Machine.Residents(l, six)
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

// near reports whether a container with the address is in the place's network.
func (p place) near(a netip.Addr) bool {
	return slices.ContainsFunc(p.nets, func(net netip.Prefix) bool { return net.Contains(a) })
}
