package link

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Adjacent returns the hardware addresses of the device by which the calling thread's namespace
// reaches a neighbour, and of that neighbour. They are nil if the address is not a neighbour's, or its
// hardware address is not known.
func Adjacent(to netip.Addr) (own, its net.HardwareAddr, err error) {
	r, err := RouteTo(to)
	if err != nil || r.Via.IsValid() {
		return nil, nil, err
	}
	l, err := netlink.LinkByName(r.Device)
	if err != nil {
		return nil, nil, fmt.Errorf("find %s: %w", r.Device, err)
	}
	family := unix.AF_INET
	if to.Is6() {
		family = unix.AF_INET6
	}
	all, err := dump(func() ([]netlink.Neigh, error) {
		return netlink.NeighList(l.Attrs().Index, family)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list neighbours: %w", err)
	}
	for _, n := range all {
		if a, ok := netip.AddrFromSlice(n.IP); ok && a.Unmap() == to && len(n.HardwareAddr) > 0 {
			return l.Attrs().HardwareAddr, n.HardwareAddr, nil
		}
	}
	return nil, nil, nil
}

// BridgeBetween returns the name of the bridge of the calling thread's namespace that has learnt two
// hardware addresses at different ports, or "".
func BridgeBetween(a, b net.HardwareAddr) (name string, err error) {
	all, err := dump(func() ([]netlink.Neigh, error) { return netlink.NeighList(0, unix.AF_BRIDGE) })
	if err != nil {
		return "", fmt.Errorf("list what bridges have learnt: %w", err)
	}
	ports := map[int]int{} // of the first address, by bridge
	for _, n := range all {
		if learnt(n) && bytes.Equal(n.HardwareAddr, a) {
			ports[n.MasterIndex] = n.LinkIndex
		}
	}
	for _, n := range all {
		port, ok := ports[n.MasterIndex]
		if !ok || !learnt(n) || !bytes.Equal(n.HardwareAddr, b) || n.LinkIndex == port {
			continue
		}
		l, err := netlink.LinkByIndex(n.MasterIndex)
		if err != nil {
			return "", fmt.Errorf("find the bridge with number %d: %w", n.MasterIndex, err)
		}
		if l.Type() == "bridge" {
			return l.Attrs().Name, nil
		}
	}
	return "", nil
}

// learnt reports whether an entry is of a machine behind a bridge's port, and not of the port itself.
func learnt(n netlink.Neigh) bool { return n.MasterIndex != 0 && n.State&unix.NUD_PERMANENT == 0 }
