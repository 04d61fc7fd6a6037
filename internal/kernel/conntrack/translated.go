package conntrack

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

var protocols = map[string]uint8{"tcp": unix.IPPROTO_TCP, "udp": unix.IPPROTO_UDP}

// Translation is how NAT rewrites a connection.
type Translation struct {
	From, To netip.AddrPort // the client and the address that it dials
	As, Now  netip.AddrPort // the same behind NAT
}

func translation(f *netlink.ConntrackFlow) Translation {
	return Translation{at(f.Forward.SrcIP, f.Forward.SrcPort), at(f.Forward.DstIP,
		f.Forward.DstPort), at(f.Reverse.DstIP, f.Reverse.DstPort), at(f.Reverse.SrcIP,
		f.Reverse.SrcPort)}
}

// Translations lists the connections of a protocol that pick accepts, whether they got an answer or
// not. A connection that a rule dropped is not in the table.
func Translations(proto string, pick func(Translation) bool) (out []Translation, err error) {
	number, ok := protocols[proto]
	if !ok {
		return nil, fmt.Errorf("list connections: unknown protocol %q", proto)
	}
	flows, err := table(unix.AF_UNSPEC)
	for _, f := range flows {
		if x := translation(f); f.Forward.Protocol == number && pick(x) {
			out = append(out, x)
		}
	}
	return out, err
}

func family(six bool) netlink.InetFamily {
	if six {
		return unix.AF_INET6
	}
	return unix.AF_INET
}

// Take is like Translations, for an address family. It also removes TCP connections that have ended from the table, and
// returns them apart. The kernel would keep them for up to two minutes
// (nf_conntrack_tcp_timeout_time_wait), and a new connection from the same port takes the entry's
// place.
func Take(proto string, six bool, pick func(Translation) bool) (open, ended []Translation,
	err error) {
	if proto == "tcp" {
		h, err := netlink.NewHandle(unix.NETLINK_NETFILTER)
		if err != nil {
			return nil, nil, fmt.Errorf("remove from conntrack's table: %w", err)
		}
		defer h.Close()
		_, err = h.ConntrackDeleteFilters(netlink.ConntrackTable, family(six), filter(
			func(f *netlink.ConntrackFlow) bool {
				x := translation(f)
				if !over(f) || !pick(x) {
					return false
				}
				ended = append(ended, x)
				return true
			}))
		if err != nil {
			return nil, ended, fmt.Errorf("remove from conntrack's table: %w", err)
		}
	}
	open, err = Translations(proto, func(t Translation) bool {
		return t.From.Addr().Is6() == six && pick(t)
	})
	return open, ended, err
}

// over reports whether both sides of a TCP connection have ended it, or one has reset it.
func over(f *netlink.ConntrackFlow) bool {
	const timeWait, closed = 7, 8 // TCP_CONNTRACK_TIME_WAIT, TCP_CONNTRACK_CLOSE
	tcp, ok := f.ProtoInfo.(*netlink.ProtoInfoTCP)
	return ok && (tcp.State == timeWait || tcp.State == closed)
}

type filter func(*netlink.ConntrackFlow) bool

// MatchConntrackFlow calls the function.
func (f filter) MatchConntrackFlow(x *netlink.ConntrackFlow) bool { return f(x) }

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

// Selects reports whether rules rewrote a connection of r.Proto as r says. Translations and Take
// list such connections.
func (r Rewrite) Selects(t Translation) bool {
	is := func(a netip.AddrPort, want netip.Addr) bool {
		return !want.IsValid() || a.Addr() == want.Unmap()
	}
	return t.To == plain(r.To) && t.Now == plain(r.Now) && is(t.From, r.From) && is(t.As, r.As) &&
		(r.Source == Any || (t.As.Addr() == t.From.Addr()) == (r.Source == Kept))
}

func at(ip []byte, port uint16) netip.AddrPort {
	a, _ := netip.AddrFromSlice(ip)
	return netip.AddrPortFrom(a.Unmap(), port)
}

func plain(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}
