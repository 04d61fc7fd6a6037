package conntrack

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// protocols by their names.
var protocols = map[string]uint8{"tcp": unix.IPPROTO_TCP, "udp": unix.IPPROTO_UDP}

// Rewrite says which connections to count, by what the rules made of them.
type Rewrite struct {
	Proto string         // tcp or udp
	To    netip.AddrPort // that was dialled
	Now   netip.AddrPort // that answers: To, if the destination was left alone
	// From is who dialled, and As whom the answers go to; invalid addresses are any.
	From, As netip.Addr
	// Ended counts connections of TCP that the table only remembers, too.
	Ended bool
}

// Rewritten counts connections that rules rewrote. It needs CONFIG_NF_CT_NETLINK
// and CAP_NET_ADMIN over the namespace.
func Rewritten(r Rewrite) (int, error) {
	to, now, all := r.To, r.Now, r.Ended
	number, ok := protocols[r.Proto]
	if !ok {
		return 0, fmt.Errorf("count rewritten connections: unknown protocol %q", r.Proto)
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
			at(f.Reverse.SrcIP, f.Reverse.SrcPort) == plain(now) && (all || !ended(f)) &&
			is(f.Forward.SrcIP, r.From) && is(f.Reverse.DstIP, r.As) {
			n++
		}
	}
	return n, nil
}

// is reports whether ip is want, or want is any.
func is(ip []byte, want netip.Addr) bool {
	a, _ := netip.AddrFromSlice(ip)
	return !want.IsValid() || a.Unmap() == want.Unmap()
}

func at(ip []byte, port uint16) netip.AddrPort {
	a, _ := netip.AddrFromSlice(ip)
	return netip.AddrPortFrom(a.Unmap(), port)
}

func plain(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }
