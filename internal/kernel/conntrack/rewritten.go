package conntrack

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// protocols by their names.
var protocols = map[string]uint8{"tcp": unix.IPPROTO_TCP, "udp": unix.IPPROTO_UDP}

// Rewritten counts the connections that dialled an address and are answered by
// another one: those whose destination a rule rewrote. Of TCP it counts those that
// are established or, if all is true, those that the table only remembers, too.
// It needs CONFIG_NF_CT_NETLINK and CAP_NET_ADMIN over the namespace.
func Rewritten(proto string, to, now netip.AddrPort, all bool) (int, error) {
	number, ok := protocols[proto]
	if !ok {
		return 0, fmt.Errorf("count rewritten connections: unknown protocol %q", proto)
	}
	family := netlink.InetFamily(unix.AF_INET)
	if to.Addr().Unmap().Is6() {
		family = unix.AF_INET6
	}
	flows, err := netlink.ConntrackTableList(netlink.ConntrackTable, family)
	if err != nil {
		return 0, fmt.Errorf("list conntrack's table: %w", err)
	}
	n := 0
	for _, f := range flows {
		if f.Forward.Protocol == number && at(f.Forward.DstIP, f.Forward.DstPort) == plain(to) &&
			at(f.Reverse.SrcIP, f.Reverse.SrcPort) == plain(now) && (all || !ended(f)) {
			n++
		}
	}
	return n, nil
}

func at(ip []byte, port uint16) netip.AddrPort {
	a, _ := netip.AddrFromSlice(ip)
	return netip.AddrPortFrom(a.Unmap(), port)
}

func plain(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }
