package conntrack

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Flow is a connection as its client sees it.
type Flow struct {
	Proto string
	From  netip.Addr
	Port  uint16 // the client's
	To    netip.AddrPort
	Now   netip.AddrPort // where NAT redirects the connection; To without NAT
}

// Flows lists connections whose destination NAT has changed (of TCP only established ones), and
// those UDP connections without NAT that pick accepts.
func Flows(pick func(Flow) bool) ([]Flow, error) {
	var out []Flow
	for _, family := range []netlink.InetFamily{unix.AF_INET, unix.AF_INET6} {
		flows, err := netlink.ConntrackTableList(netlink.ConntrackTable, family)
		if err != nil {
			return out, fmt.Errorf("list conntrack's table: %w", err)
		}
		for _, f := range flows {
			from, okF := netip.AddrFromSlice(f.Forward.SrcIP)
			to, okT := netip.AddrFromSlice(f.Forward.DstIP)
			now, okN := netip.AddrFromSlice(f.Reverse.SrcIP)
			proto := map[uint8]string{unix.IPPROTO_TCP: "tcp",
				unix.IPPROTO_UDP: "udp"}[f.Forward.Protocol]
			if ended(f) {
				continue
			}
			if !okF || !okT || !okN || proto == "" {
				continue
			}
			c := Flow{proto, from.Unmap(), f.Forward.SrcPort,
				netip.AddrPortFrom(to.Unmap(), f.Forward.DstPort),
				netip.AddrPortFrom(now.Unmap(), f.Reverse.SrcPort)}
			if c.To != c.Now || proto == "udp" && pick(c) {
				out = append(out, c)
			}
		}
	}
	return out, nil
}

func ended(f *netlink.ConntrackFlow) bool {
	const establishedTCP = 3 // TCP_CONNTRACK_ESTABLISHED
	tcp, ok := f.ProtoInfo.(*netlink.ProtoInfoTCP)
	return ok && tcp.State != establishedTCP
}
