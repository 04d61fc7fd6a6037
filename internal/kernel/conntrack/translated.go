package conntrack

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Translation is how NAT rewrites a connection.
type Translation struct {
	From, To netip.AddrPort // the client and the address that it dials
	As, Now  netip.AddrPort // the same behind NAT
}

// Translations lists the connections of a protocol and address family that pick accepts, whether
// they got an answer or not. A connection that a rule dropped is not in the table.
func Translations(proto string, six bool, pick func(Translation) bool) ([]Translation, error) {
	family := netlink.InetFamily(unix.AF_INET)
	if six {
		family = unix.AF_INET6
	}
	// To list a namespace's few connections, the kernel walks the whole machine's table.
	if use, err := Read(); err == nil && use.Max > 0 && use.Entries == 0 {
		return nil, nil
	}
	flows, err := netlink.ConntrackTableList(netlink.ConntrackTable, family)
	if err != nil {
		return nil, fmt.Errorf("list conntrack's table: %w", err)
	}
	var out []Translation
	for _, f := range flows {
		x := Translation{at(f.Forward.SrcIP, f.Forward.SrcPort), at(f.Forward.DstIP,
			f.Forward.DstPort), at(f.Reverse.DstIP, f.Reverse.DstPort), at(f.Reverse.SrcIP,
			f.Reverse.SrcPort)}
		if f.Forward.Protocol == protocols[proto] && pick(x) {
			out = append(out, x)
		}
	}
	return out, nil
}
