package link

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// AddRouteOnlink routes the prefix by the device through a gateway that need not be in the device's
// network.
func AddRouteOnlink(to netip.Prefix, gateway netip.Addr, name string) error {
	what := fmt.Sprintf("add route to %s by %s and %s", to, gateway, name)
	return change(name, what, func(l netlink.Link) error {
		return netlink.RouteAdd(&netlink.Route{Dst: ipNet(to), Gw: gateway.AsSlice(),
			LinkIndex: l.Attrs().Index, Flags: int(netlink.FLAG_ONLINK)})
	})
}

// NoARP makes the device take every neighbour for itself.
func NoARP(name string) error {
	return change(name, "switch ARP off on "+name, netlink.LinkSetARPOff)
}
