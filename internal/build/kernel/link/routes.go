package link

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Routed is a route with the device that it leaves by, in words.
type Routed struct {
	To           netip.Prefix
	Device, Text string
}

// Routes lists the routes of all tables but the local one, which follows from the addresses. Of
// IPv6 it leaves out those that come and go by themselves: link-local ones, multicast, and what
// routers advertise.
func Routes() ([]Routed, error) {
	links, err := dump(netlink.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	names := map[int]string{}
	for _, l := range links {
		names[l.Attrs().Index] = l.Attrs().Name
	}
	var out []Routed
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		routes, err := dump(func() ([]netlink.Route, error) {
			return netlink.RouteListFiltered(family, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
		})
		if family == unix.AF_INET6 && (errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP)) {
			continue // without IPv6
		}
		if err != nil {
			return nil, fmt.Errorf("list routes: %w", err)
		}
		out = append(out, routed(routes, family == unix.AF_INET6, names)...)
	}
	slices.SortFunc(out, func(a, b Routed) int { return strings.Compare(a.Text, b.Text) })
	return out, nil
}

// routed are those routes that stay, in words.
func routed(routes []netlink.Route, six bool, names map[int]string) (out []Routed) {
	for _, r := range routes {
		if r.Table == unix.RT_TABLE_LOCAL || six && fleeting(r) {
			continue
		}
		to, text := netip.PrefixFrom(netip.IPv4Unspecified(), 0), "default"
		if six {
			to = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		}
		if r.Dst != nil && !isAll(r.Dst) {
			to, text = prefix(r.Dst), r.Dst.String()
		}
		word := func(name, value string) {
			if value != "" && value != "0" {
				text += " " + name + " " + value
			}
		}
		word("via", address(r.Gw))
		word("dev", names[r.LinkIndex])
		for _, hop := range r.MultiPath {
			word("nexthop", strings.TrimSpace(address(hop.Gw)+" "+names[hop.LinkIndex]))
		}
		word("src", address(r.Src))
		for _, n := range []struct {
			name string
			is   int
		}{{"table", r.Table}, {"metric", r.Priority}, {"type", r.Type}, {"scope", int(r.Scope)}, {"mtu", r.MTU}, {"advmss", r.AdvMSS},
			{"window", r.Window}, {"cwnd", r.Cwnd}, {"initcwnd", r.InitCwnd}, {"initrwnd", r.InitRwnd}, {"rto_min", r.RtoMin},
			{"quickack", r.QuickACK}} {
			word(n.name, fmt.Sprint(n.is))
		}
		word("congctl", r.Congctl)
		out = append(out, Routed{to, names[r.LinkIndex], text})
	}
	return out
}

// fleeting reports whether a route of IPv6 comes and goes by itself.
func fleeting(r netlink.Route) bool {
	return r.Protocol == unix.RTPROT_RA || r.Type != unix.RTN_UNICAST ||
		r.Dst != nil && !isAll(r.Dst) && (r.Dst.IP.IsLinkLocalUnicast() || r.Dst.IP.IsMulticast())
}

func address(ip net.IP) string {
	if ip == nil {
		return ""
	}
	return ip.String()
}

// Policies are the rules that choose a routing table for IPv4, in words.
func Policies() (string, error) {
	rules, err := dump(func() ([]netlink.Rule, error) { return netlink.RuleList(unix.AF_INET) })
	if err != nil {
		return "", fmt.Errorf("list routing policies: %w", err)
	}
	var all []string
	for _, r := range rules {
		all = append(all, r.String())
	}
	return list(all), nil
}

// RoutedBySocket reports whether a policy rule asks for what two programs' sockets may
// differ in: user, ports, protocol or type of service. Marks are not among it.
func RoutedBySocket() (bool, error) {
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		rules, err := dump(func() ([]netlink.Rule, error) { return netlink.RuleList(family) })
		if errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP) {
			continue // without IPv6, or without policy rules
		}
		if err != nil {
			return false, fmt.Errorf("list policy rules: %w", err)
		}
		for _, r := range rules {
			if r.UIDRange != nil || r.Sport != nil || r.Dport != nil || r.IPProto != 0 || r.Tos != 0 {
				return true, nil
			}
		}
	}
	return false, nil
}

// SetRouteCongestion gives the route to a network, which is its only one, a congestion control
// of its own: connections that are opened to it from the calling thread's namespace have that.
// It is read back.
func SetRouteCongestion(to netip.Prefix, name string) error {
	err := changeRoute(to, func(r *netlink.Route) { r.Congctl = name })
	if err == nil {
		var now *netlink.Route
		if now, err = routeTo(to); err == nil && now.Congctl != name {
			err = errKept
		}
	}
	if err != nil {
		return fmt.Errorf("set congestion control %s of the route to %s: %w", name, to, err)
	}
	return nil
}

func changeRoute(to netip.Prefix, change func(*netlink.Route)) error {
	r, err := routeTo(to)
	if err != nil {
		return err
	}
	change(r)
	return netlink.RouteReplace(r)
}

// routeTo is the one route to a network, of the main table.
func routeTo(to netip.Prefix) (*netlink.Route, error) {
	all, err := dump(func() ([]netlink.Route, error) {
		return netlink.RouteListFiltered(unix.AF_INET, &netlink.Route{Dst: ipNet(to)}, netlink.RT_FILTER_DST)
	})
	if err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, fmt.Errorf("there are %d", len(all))
	}
	return &all[0], nil
}
