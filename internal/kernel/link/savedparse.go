package link

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
)

// SavedAddress is an address in a message of ReadAddresses.
type SavedAddress struct {
	Index  int // of the device
	Prefix netip.Prefix
	Peer   netip.Addr // the other end of a point-to-point link; invalid: none
}

// ParseAddress returns the address in m. ok is false if m is not about an address.
func ParseAddress(m raw.Message) (out SavedAddress, ok bool) {
	f, err := fieldsOf(m.Data, unix.SizeofIfAddrmsg)
	if m.Type != unix.RTM_NEWADDR || err != nil {
		return out, false
	}
	own, ok := netip.AddrFromSlice(f[unix.IFA_LOCAL])
	peer, six := netip.AddrFromSlice(f[unix.IFA_ADDRESS])
	switch {
	case !ok:
		own, ok = peer, six
	case own != peer:
		out.Peer = peer
	}
	out.Index, out.Prefix = indexOf(m.Data), netip.PrefixFrom(own, int(m.Data[1]))
	return out, ok && out.Prefix.IsValid()
}

// Hop is where a route or nexthop object sends packets.
type Hop struct {
	Index   int        // of the device; 0: none
	Gateway netip.Addr // invalid: none
}

// ParseHops returns the hops of a message of ReadRoutes or ReadNexthops.
func ParseHops(m raw.Message) []Hop {
	if m.Type == unix.RTM_NEWNEXTHOP {
		f, err := fieldsOf(m.Data, nexthopHeader)
		if err != nil || f.has(nexthopGroup) {
			return nil
		}
		gateway, _ := netip.AddrFromSlice(f[nexthopGateway])
		return []Hop{{int(f.number(nexthopDevice)), gateway}}
	}
	f, err := fieldsOf(m.Data, unix.SizeofRtMsg)
	if m.Type != unix.RTM_NEWROUTE || err != nil {
		return nil
	}
	if f.has(unix.RTA_MULTIPATH) {
		return multipath(f[unix.RTA_MULTIPATH])
	}
	return []Hop{{int(f.number(unix.RTA_OIF)), f.gateway()}}
}

// Branches reports whether a route or a group has several next hops, of which the kernel chooses
// one by the addresses and perhaps the ports of packets.
func Branches(m raw.Message) bool {
	if m.Type != unix.RTM_NEWNEXTHOP {
		return len(ParseHops(m)) > 1
	}
	const entry = 8 // struct nexthop_grp
	f, err := fieldsOf(m.Data, nexthopHeader)
	return err == nil && len(f[nexthopGroup]) > entry
}

func (f fields) gateway() netip.Addr {
	a, ok := netip.AddrFromSlice(f[unix.RTA_GATEWAY])
	if via := f[unix.RTA_VIA]; !ok && len(via) > 2 { // struct rtvia: family, address
		a, _ = netip.AddrFromSlice(via[2:])
	}
	return a
}

// multipath reads a list of struct rtnexthop.
func multipath(b []byte) (out []Hop) {
	eachHop(b, func(hop []byte) {
		if f, err := fieldsOf(hop, unix.SizeofRtNexthop); err == nil {
			out = append(out, Hop{indexOf(hop), f.gateway()})
		}
	})
	return out
}

func eachHop(b []byte, f func(hop []byte)) {
	for len(b) >= unix.SizeofRtNexthop {
		size := int(binary.NativeEndian.Uint16(b))
		if size < unix.SizeofRtNexthop || size > len(b) {
			return
		}
		f(b[:size])
		b = b[min(len(b), (size+unix.RTNH_ALIGNTO-1)/unix.RTNH_ALIGNTO*unix.RTNH_ALIGNTO):]
	}
}

// IsDefault reports whether m is a default route of table main.
func IsDefault(m raw.Message) bool {
	r, ok := unicast(m)
	return ok && r.Dst_len == 0 && r.Table == unix.RT_TABLE_MAIN
}

// ToInternet reports whether m is a route of any table to machines anywhere: a default route, or
// one that takes its place, such as 0.0.0.0/1 and 128.0.0.0/1, or 2000::/3.
func ToInternet(m raw.Message) bool {
	r, ok := unicast(m)
	return ok && r.Table != unix.RT_TABLE_LOCAL && anywhere(int(r.Dst_len), r.Family)
}

// Target returns the address and the prefix length of the destinations that a route or a policy
// rule is about. ok is false if these are all, or the namespace's own.
func Target(m raw.Message) (address []byte, bits int, ok bool) {
	const atBits, atKind = 1, 7 // in struct rtmsg, struct fib_rule_hdr
	f, err := fieldsOf(m.Data, unix.SizeofRtMsg)
	if err != nil || m.Type == unix.RTM_NEWROUTE && slices.Contains([]byte{unix.RTN_LOCAL,
		unix.RTN_BROADCAST, unix.RTN_ANYCAST, unix.RTN_MULTICAST}, m.Data[atKind]) {
		return nil, 0, false
	}
	return f[unix.RTA_DST], int(m.Data[atBits]), f.has(unix.RTA_DST) // FRA_DST
}

func unicast(m raw.Message) (r *nl.RtMsg, ok bool) {
	if m.Type != unix.RTM_NEWROUTE || len(m.Data) < unix.SizeofRtMsg {
		return nil, false
	}
	r = nl.DeserializeRtMsg(m.Data)
	return r, r.Type == unix.RTN_UNICAST
}

// anywhere reports whether a route to a prefix of the length is one to machines anywhere.
func anywhere(bits int, family byte) bool {
	const halves, global = 1, 3
	if family == unix.AF_INET6 {
		return bits <= global
	}
	return bits <= halves
}

// Numbered reports whether the calling thread's namespace has a number for any other namespace. It
// has one for each namespace with the other end or the parent of one of its devices.
func Numbered() (bool, error) {
	const getNSID, header = 90, 4 // RTM_GETNSID, struct rtgenmsg
	msgs, err := rawDump(getNSID, make([]byte, header))
	return len(msgs) > 0, err
}

// Renumber returns a message of this package in which the indexes of devices are replaced.
func Renumber(m raw.Message, to map[int]int) raw.Message {
	out := raw.Message{Type: m.Type, Data: slices.Clone(m.Data)}
	renumber := func(b []byte) {
		if n, ok := to[int(int32(binary.NativeEndian.Uint32(b)))]; ok {
			binary.NativeEndian.PutUint32(b, uint32(n))
		}
	}
	const offset = 4 // of the index in a header
	header, device := unix.SizeofRtMsg, uint16(unix.RTA_OIF)
	switch m.Type {
	case unix.RTM_NEWADDR, unix.RTM_NEWNEIGH:
		if len(out.Data) >= unix.SizeofIfAddrmsg {
			renumber(out.Data[offset:])
		}
		return out
	case unix.RTM_NEWNEXTHOP:
		header, device = nexthopHeader, nexthopDevice
	case unix.RTM_NEWROUTE:
	default:
		return out
	}
	list, err := attributesOf(m.Data, header)
	if err != nil {
		return m
	}
	for _, a := range list {
		switch {
		case typeOf(a) == device && len(a.Data) == 4:
			renumber(a.Data)
		case typeOf(a) == unix.RTA_MULTIPATH && m.Type == unix.RTM_NEWROUTE:
			eachHop(a.Data, func(hop []byte) { renumber(hop[offset:]) })
		}
	}
	out.Data = append(out.Data[:header:header], marshal(list...)...)
	return out
}
