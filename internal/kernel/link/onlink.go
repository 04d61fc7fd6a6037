package link

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
)

// AddRouteOnlink adds a route over the device to a gateway that need not be in the device's network
// (onlink).
func AddRouteOnlink(to netip.Prefix, gateway netip.Addr, name string) error {
	what := fmt.Sprintf("add route to %s by %s and %s", to, gateway, name)
	return change(name, what, func(l netlink.Link) error {
		return netlink.RouteAdd(&netlink.Route{Dst: ipNet(to), Gw: gateway.AsSlice(),
			LinkIndex: l.Attrs().Index, Flags: int(netlink.FLAG_ONLINK)})
	})
}

// NoARP switches ARP off: the device sends every frame to its own MAC address.
func NoARP(name string) error {
	return change(name, "switch ARP off on "+name, netlink.LinkSetARPOff)
}

// MacvlanBridge is Saved.Data of a macvlan in mode bridge.
var MacvlanBridge = binary.NativeEndian.AppendUint32(
	binary.NativeEndian.AppendUint16(
		binary.NativeEndian.AppendUint16(nil, 8), nl.IFLA_MACVLAN_MODE),
	nl.MACVLAN_MODE_BRIDGE)
