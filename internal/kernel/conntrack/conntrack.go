// Package conntrack reads and empties the connection tracking table of the calling thread's network
// namespace. Call it inside netns.NS.Do. Except for Read, functions need CONFIG_NF_CT_NETLINK and
// CAP_NET_ADMIN over the namespace.
package conntrack

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	countFile = "/proc/sys/net/netfilter/nf_conntrack_count"
	maxFile   = "/proc/sys/net/netfilter/nf_conntrack_max"
)

// Use is how full the table is.
type Use struct {
	Entries int
	Max     int // 0: unknown
}

// Read returns how full the table is, or the zero value in a namespace without a visible table.
func Read() (u Use, err error) {
	if u.Entries, err = number(countFile); err == nil {
		u.Max, err = number(maxFile)
	}
	return u, err
}

func number(file string) (int, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read conntrack's table: %w", err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0, fmt.Errorf("read conntrack's table: %w", err)
	}
	return n, nil
}

// Flush empties the table, as `conntrack -F` does.
func Flush() error {
	if err := netlink.ConntrackTableFlush(netlink.ConntrackTable); err != nil {
		return fmt.Errorf("empty conntrack's table: %w", err)
	}
	return nil
}

// Ends picks connections. It is called with the addresses and ports of each connection, before and
// after NAT, and picks the connection if it returns true for one of them.
type Ends func(netip.AddrPort) bool

// Remove removes the picked connections from the table.
func Remove(of Ends) error {
	h, err := netlink.NewHandle(unix.NETLINK_NETFILTER)
	if err != nil {
		return fmt.Errorf("remove from conntrack's table: %w", err)
	}
	defer h.Close()
	for _, family := range []netlink.InetFamily{unix.AF_INET, unix.AF_INET6} {
		if _, err := h.ConntrackDeleteFilters(netlink.ConntrackTable, family, of); err != nil {
			return fmt.Errorf("remove from conntrack's table: %w", err)
		}
	}
	return nil
}

var _ netlink.CustomConntrackFilter = Ends(nil)

// MatchConntrackFlow reports whether the flow has a picked end.
func (e Ends) MatchConntrackFlow(f *netlink.ConntrackFlow) bool {
	for _, t := range []netlink.IPTuple{f.Forward, f.Reverse} {
		from, _ := netip.AddrFromSlice(t.SrcIP)
		to, _ := netip.AddrFromSlice(t.DstIP)
		if e(netip.AddrPortFrom(from.Unmap(), t.SrcPort)) ||
			e(netip.AddrPortFrom(to.Unmap(), t.DstPort)) {
			return true
		}
	}
	return false
}

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
func Flows(pick func(Flow) bool) (out []Flow, err error) {
	flows, err := table(unix.AF_UNSPEC)
	for _, f := range flows {
		from, okF := netip.AddrFromSlice(f.Forward.SrcIP)
		to, okT := netip.AddrFromSlice(f.Forward.DstIP)
		now, okN := netip.AddrFromSlice(f.Reverse.SrcIP)
		proto := map[uint8]string{unix.IPPROTO_TCP: "tcp",
			unix.IPPROTO_UDP: "udp"}[f.Forward.Protocol]
		if ended(f) || !okF || !okT || !okN || proto == "" {
			continue
		}
		c := Flow{proto, from.Unmap(), f.Forward.SrcPort,
			netip.AddrPortFrom(to.Unmap(), f.Forward.DstPort),
			netip.AddrPortFrom(now.Unmap(), f.Reverse.SrcPort)}
		if c.To != c.Now || proto == "udp" && pick(c) {
			out = append(out, c)
		}
	}
	return out, err
}

// table lists the connections of an address family, AF_UNSPEC is all, or none if there are none: to
// list a namespace's few connections, the kernel walks the whole machine's table.
func table(family netlink.InetFamily) ([]*netlink.ConntrackFlow, error) {
	if use, err := Read(); err == nil && use.Max > 0 && use.Entries == 0 {
		return nil, nil
	}
	flows, err := netlink.ConntrackTableList(netlink.ConntrackTable, family)
	if err != nil {
		err = fmt.Errorf("list conntrack's table: %w", err)
	}
	return flows, err
}

func ended(f *netlink.ConntrackFlow) bool {
	const establishedTCP = 3 // TCP_CONNTRACK_ESTABLISHED
	tcp, ok := f.ProtoInfo.(*netlink.ProtoInfoTCP)
	return ok && tcp.State != establishedTCP
}
