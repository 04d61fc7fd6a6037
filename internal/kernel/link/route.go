package link

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
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

// ErrNoRoute means that there is no route, or one that discards packets. For IPv4 the kernel has
// errors of its own.
var ErrNoRoute = errors.New("no route")

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
	if len(all) == 0 || slices.Contains(
		[]int{unix.RTN_BLACKHOLE, unix.RTN_UNREACHABLE, unix.RTN_PROHIBIT}, all[0].Type) {
		return out, fmt.Errorf("%w to %s", ErrNoRoute, to)
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

// AddRouteOnlink adds or replaces a route over the device to a gateway that need not be in the
// device's network (onlink).
func AddRouteOnlink(to netip.Prefix, gateway netip.Addr, name string) error {
	what := fmt.Sprintf("add route to %s by %s and %s", to, gateway, name)
	return change(name, what, func(l netlink.Link) error {
		return netlink.RouteReplace(&netlink.Route{Dst: ipNet(to), Gw: gateway.AsSlice(),
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

// Unrouted returns the IPv6 addresses of the calling thread's namespace to which the kernel does
// not yet deliver packets, because it adds the local route a moment after the address. It leaves
// out devices that do not carry packets.
func Unrouted() ([]netip.Addr, error) {
	six := []byte{unix.AF_INET6}
	addresses, err := rawList("addresses", unix.RTM_GETADDR, unix.RTM_NEWADDR, six,
		unix.SizeofIfAddrmsg, func(b []byte) bool { return b[2]&unix.IFA_F_DADFAILED == 0 })
	if err != nil {
		return nil, err
	}
	routes, err := rawList("routes", unix.RTM_GETROUTE, unix.RTM_NEWROUTE, six, unix.SizeofRtMsg,
		func(b []byte) bool { return nl.DeserializeRtMsg(b).Type == unix.RTN_LOCAL })
	if err != nil {
		return nil, err
	}
	type place struct {
		addr  netip.Addr
		index int
	}
	routed := map[place]bool{}
	for _, m := range routes {
		f, err := fieldsOf(m.Data, unix.SizeofRtMsg)
		if err != nil {
			return nil, err
		}
		to, _ := netip.AddrFromSlice(f[unix.RTA_DST])
		routed[place{to, int(f.number(unix.RTA_OIF))}] = true
	}
	const loopback = 1 // before Linux 4.19, the device of all local routes
	var late []place
	for _, m := range addresses {
		a, ok := ParseAddress(m)
		addr := a.Prefix.Addr()
		if ok && !routed[place{addr, a.Index}] && !routed[place{addr, loopback}] {
			late = append(late, place{addr, a.Index})
		}
	}
	if len(late) == 0 {
		return nil, nil
	}
	carrying, err := Carrying()
	if err != nil {
		return nil, err
	}
	var out []netip.Addr
	for _, p := range late {
		if carrying[p.index] {
			out = append(out, p.addr)
		}
	}
	return out, nil
}
