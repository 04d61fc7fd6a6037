package link

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// Route is the kernel's route to an address, as in `ip route get`.
type Route struct {
	Device string     `json:"device"`
	Source netip.Addr `json:"source,omitzero"`
	Via    netip.Addr `json:"via,omitzero"` // invalid: the address is a neighbour
	// MTU in bytes, set or learnt from a router; 0: the device's
	MTU       int `json:"mtu,omitempty"`
	DeviceMTU int `json:"device_mtu,omitempty"`
}

// RouteTo returns the route to an address from the calling thread's network namespace.
func RouteTo(to netip.Addr) (Route, error) {
	return route(to, nil)
}

// RouteFrom returns the route of packets that come in by the device with the source address from.
func RouteFrom(from, to netip.Addr, device string) (Route, error) {
	return route(to, &netlink.RouteGetOptions{Iif: device, SrcAddr: from.AsSlice()})
}

func route(to netip.Addr, o *netlink.RouteGetOptions) (out Route, err error) {
	all, err := netlink.RouteGetWithOptions(to.AsSlice(), o)
	if err != nil {
		return out, fmt.Errorf("route to %s: %w", to, err)
	}
	if len(all) == 0 {
		return out, fmt.Errorf("no route to %s", to)
	}
	r := all[0]
	l, err := netlink.LinkByIndex(r.LinkIndex)
	if err != nil {
		return out, fmt.Errorf("route to %s: find link number %d: %w", to, r.LinkIndex, err)
	}
	out.Device, out.DeviceMTU = l.Attrs().Name, l.Attrs().MTU
	out.MTU = r.MTU
	if a, ok := netip.AddrFromSlice(r.Src); ok {
		out.Source = a.Unmap()
	}
	if a, ok := netip.AddrFromSlice(r.Gw); ok {
		out.Via = a.Unmap()
	}
	return out, nil
}
