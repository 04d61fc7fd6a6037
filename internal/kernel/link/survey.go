package link

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Device is a network device with its attachments.
type Device struct {
	Name   string
	Index  int
	Kind   string
	MTU    int
	Up     bool
	Master string
	// Peer is the index of a veth's other end, in that end's namespace.
	Peer int
	// Space is the ID that this namespace has for the namespace of a veth's other end, or of a
	// macvlan's parent; -1 if that is this namespace. See SpaceID.
	Space int
	Addrs []netip.Prefix
	// Uplink means that a default route of table main uses the device.
	Uplink bool
	// Uplink6 means that a default route of IPv6 does.
	Uplink6 bool
	// Router and Router6 mean that a route of any table does which has the same effect, of IPv4 or
	// of IPv6; see ToInternet.
	Router, Router6 bool
}

// Survey lists the namespace's devices.
func Survey() ([]Device, error) {
	links, err := listLinks()
	if err != nil {
		return nil, err
	}
	routes, err := dump(func() ([]netlink.Route, error) {
		return netlink.RouteListFiltered(unix.AF_UNSPEC, &netlink.Route{Table: unix.RT_TABLE_UNSPEC},
			netlink.RT_FILTER_TABLE)
	})
	if err != nil {
		return nil, fmt.Errorf("list routes: %w", err)
	}
	up := uplinks(routes)
	names := map[int]string{}
	for _, l := range links {
		names[l.Attrs().Index] = l.Attrs().Name
	}
	var out []Device
	for _, l := range links {
		a := l.Attrs()
		d := Device{Name: a.Name, Index: a.Index, Kind: l.Type(), MTU: a.MTU,
			Up:     a.Flags&net.FlagUp != 0,
			Master: names[a.MasterIndex], Space: a.NetNsID,
			Uplink:  up[uplink{a.Index, false, true}] || up[uplink{a.Index, true, true}],
			Uplink6: up[uplink{a.Index, true, true}], Router: up[uplink{a.Index, false, false}],
			Router6: up[uplink{a.Index, true, false}]}
		if a.Flags&net.FlagLoopback != 0 {
			d.Kind = "loopback"
		}
		if d.Kind == "veth" {
			d.Peer = a.ParentIndex
		}
		addrs, err := dump(func() ([]netlink.Addr, error) {
			return netlink.AddrList(l, unix.AF_UNSPEC)
		})
		if err != nil {
			return nil, fmt.Errorf("list addresses of %s: %w", a.Name, err)
		}
		for _, x := range addrs {
			if ip, ok := netip.AddrFromSlice(x.IP); ok {
				ones, _ := x.Mask.Size()
				d.Addrs = append(d.Addrs, netip.PrefixFrom(ip.Unmap(), ones))
			}
		}
		out = append(out, d)
	}
	return out, nil
}

type uplink struct {
	index int
	six   bool
	main  bool // by a default route of table main
}

func uplinks(routes []netlink.Route) map[uplink]bool {
	out := map[uplink]bool{}
	for _, r := range routes {
		ones, six := 0, r.Family == unix.AF_INET6
		if r.Dst != nil {
			ones, _ = r.Dst.Mask.Size()
		}
		if r.Type != unix.RTN_UNICAST || r.Table == unix.RT_TABLE_LOCAL ||
			!anywhere(ones, byte(r.Family)) {
			continue
		}
		by := []int{r.LinkIndex}
		for _, hop := range r.MultiPath {
			by = append(by, hop.LinkIndex)
		}
		for _, i := range by {
			out[uplink{i, six, false}] = true
			out[uplink{i, six, true}] = out[uplink{i, six, true}] ||
				r.Table == unix.RT_TABLE_MAIN && ones == 0
		}
	}
	return out
}

func isAll(n *net.IPNet) bool {
	ones, _ := n.Mask.Size()
	return ones == 0 && n.IP.IsUnspecified()
}

// Used lists the IPv4 prefixes of the namespace's addresses and of all tables' routes, except
// default routes.
func Used() ([]netip.Prefix, error) {
	routes, err := dump(func() ([]netlink.Route, error) {
		return netlink.RouteListFiltered(unix.AF_INET, &netlink.Route{Table: unix.RT_TABLE_UNSPEC},
			netlink.RT_FILTER_TABLE)
	})
	if err != nil {
		return nil, fmt.Errorf("list routes: %w", err)
	}
	addrs, err := dump(func() ([]netlink.Addr, error) {
		return netlink.AddrList(nil, unix.AF_INET)
	})
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	var out []netip.Prefix
	add := func(n *net.IPNet) {
		if n == nil || isAll(n) {
			return
		}
		if p := prefix(n); p.IsValid() {
			out = append(out, p)
		}
	}
	for _, r := range routes {
		add(r.Dst)
	}
	for _, a := range addrs {
		add(a.IPNet)
	}
	return out, nil
}

func prefix(n *net.IPNet) netip.Prefix {
	ip, _ := netip.AddrFromSlice(n.IP)
	ones, _ := n.Mask.Size()
	return netip.PrefixFrom(ip.Unmap(), ones).Masked()
}
