package conntrack

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

var protocols = map[string]uint8{"tcp": unix.IPPROTO_TCP, "udp": unix.IPPROTO_UDP}

// Rewrite selects connections by how rules rewrote them.
type Rewrite struct {
	Proto string
	To    netip.AddrPort
	Now   netip.AddrPort // the address that answers; To without DNAT
	// the client's address, and the one to which answers go; invalid: any
	From, As netip.Addr
	Source   Source
}

// Source tells how the client's own address was rewritten.
type Source string

const (
	Any     Source = ""
	Kept    Source = "kept"
	Changed Source = "changed"
)

func (s Source) is(f *netlink.ConntrackFlow) bool {
	return s == Any || f.Reverse.DstIP.Equal(f.Forward.SrcIP) == (s == Kept)
}

// Rewritten returns the clients of the selected connections, including ended ones that are still in
// the table.
func Rewritten(r Rewrite) ([]netip.AddrPort, error) {
	to, now := r.To, r.Now
	number, ok := protocols[r.Proto]
	if !ok {
		return nil, fmt.Errorf("count rewritten connections: unknown protocol %q", r.Proto)
	}
	family := netlink.InetFamily(unix.AF_INET)
	if to.Addr().Unmap().Is6() {
		family = unix.AF_INET6
	}
	flows, err := netlink.ConntrackTableList(netlink.ConntrackTable, family)
	if err != nil {
		return nil, fmt.Errorf("list conntrack's table: %w", err)
	}
	var out []netip.AddrPort
	for _, f := range flows {
		if f.Forward.Protocol == number && at(f.Forward.DstIP, f.Forward.DstPort) == plain(to) &&
			at(f.Reverse.SrcIP, f.Reverse.SrcPort) == plain(now) &&
			is(f.Forward.SrcIP, r.From) && is(f.Reverse.DstIP, r.As) && r.Source.is(f) {
			out = append(out, at(f.Forward.SrcIP, f.Forward.SrcPort))
		}
	}
	return out, nil
}

func is(ip []byte, want netip.Addr) bool {
	a, _ := netip.AddrFromSlice(ip)
	return !want.IsValid() || a.Unmap() == want.Unmap()
}

func at(ip []byte, port uint16) netip.AddrPort {
	a, _ := netip.AddrFromSlice(ip)
	return netip.AddrPortFrom(a.Unmap(), port)
}

func plain(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}
