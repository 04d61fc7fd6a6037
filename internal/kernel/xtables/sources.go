package xtables

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
)

// Sources has what rules compare with the source of packets or with the destination of answers:
// they may treat one container differently from others of its network.
type Sources struct {
	// Sets has, by index, the ipsets in which rules look for packets, and which dimensions of their
	// elements are compared with that end: bit 1 is of the first one, bit 2 of the second.
	Sets map[uint16]byte
	// Devices has the indexes of devices by which packets come.
	Devices map[uint32]bool

	ranges []addressRange
	names  map[string]bool
}

type addressRange struct{ first, last netip.Addr }

// End is one of the two ends of a packet's way.
type End int

// The ends.
const (
	Source End = iota
	Destination
)

// AddName adds a hardware address, or the name of a device, which may end with zeros.
func (s *Sources) AddName(name []byte) {
	if s.names == nil {
		s.names = map[string]bool{}
	}
	s.names[string(bytes.TrimRight(name, "\x00"))] = true
}

// AddNet adds the network of an address.
func (s *Sources) AddNet(address []byte, bits int) {
	a, _ := netip.AddrFromSlice(address)
	if p := netip.PrefixFrom(a, bits); p.IsValid() && bits > 0 {
		s.ranges = append(s.ranges, addressRange{p.Masked().Addr(), LastAddress(p)})
	}
}

func (s *Sources) addMasked(address, mask []byte) {
	bits, _ := net.IPMask(mask).Size()
	s.AddNet(address, bits)
}

// LimitsPorts reports whether a match excludes packets by their destination's port alone.
func LimitsPorts(name string, data []byte) bool {
	at := 0
	switch name {
	case "multiport": // struct xt_multiport, xt_multiport_v1
		const destination = 1 // XT_MULTIPORT_DESTINATION
		return len(data) > 0 && data[0] == destination
	case "tcp", "udp", "udplite": // struct xt_tcp, xt_udp: first and last source's port, then
		at = 4 // destination's
	case "sctp", "dccp": // struct xt_sctp_info, xt_dccp_info: the other way round
	default:
		return false
	}
	if len(data) < at+4 {
		return false
	}
	first, last := binary.NativeEndian.Uint16(data[at:]), binary.NativeEndian.Uint16(data[at+2:])
	return first != 0 || last != 0 && last != 0xffff
}

// AddRange adds the addresses from first to last.
func (s *Sources) AddRange(first, last []byte) {
	a, ok := netip.AddrFromSlice(first)
	b, also := netip.AddrFromSlice(last)
	if ok && also {
		s.ranges = append(s.ranges, addressRange{a, b})
	}
}

// LastAddress returns the last address of a network.
func LastAddress(p netip.Prefix) netip.Addr {
	const bits = 8 // of a byte
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < len(b)*bits; i++ {
		b[i/bits] |= 1 << (bits - 1 - i%bits)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// AddDevice adds the index of a device by which packets come.
func (s *Sources) AddDevice(index uint32) {
	if s.Devices == nil {
		s.Devices = map[uint32]bool{}
	}
	s.Devices[index] = true
}

// Match adds what a match of xtables compares with an end of packets.
func (s *Sources) Match(of End, name string, data []byte) {
	const (
		mac, device = 6, 16 // struct xt_mac_info, xt_physdev_info: devices and their masks
		flags       = 64    // struct xt_iprange_mtinfo: first and last source, then destinations
		// of ebtables: struct ebt_ip_info and ebt_ip6_info (source, destination, their masks),
		// ebt_arp_info (source, its mask, destination, its mask)
		size4, size6, bitmask, bitmask6, sender = 4, 16, 18, 66, 8
	)
	end := int(of)
	flag := byte(1) << of // IPRANGE_SRC, IPRANGE_DST; EBT_IP_SOURCE, EBT_IP_DEST
	switch {
	case name == "mac" && of == Source && len(data) >= mac:
		s.AddName(data[:mac])
	case name == "physdev" && len(data) >= 4*device:
		s.AddName(data[2*device*end:][:device])
	case name == "iprange" && len(data) > flags && data[flags]&flag != 0:
		const address = 16
		first, last := data[2*address*end:][:address], data[(2*end+1)*address:][:address]
		if allZero(first[size4:]) && allZero(last[size4:]) {
			first, last = first[:size4], last[:size4]
		}
		s.AddRange(first, last)
	case name == "ip" && len(data) > bitmask && data[bitmask]&flag != 0:
		s.addMasked(data[size4*end:][:size4], data[size4*(2+end):][:size4])
	case name == "ip6" && len(data) > bitmask6 && data[bitmask6]&flag != 0:
		s.addMasked(data[size6*end:][:size6], data[size6*(2+end):][:size6])
	case name == "arp" && len(data) >= sender+4*size4:
		at := data[sender+2*size4*end:]
		s.addMasked(at[:size4], at[size4:2*size4])
	case name == "conntrack":
		s.connection(of, data)
	case name == "set":
		s.set(of, data)
	}
}

// connection adds what the match conntrack compares with the client of connections. It counts as a
// source, whichever way packets go.
func (s *Sources) connection(of End, data []byte) {
	// struct xt_conntrack_mtinfo1, 2, 3: addresses with their masks
	const size4, size, source, repliesTo, all = 4, 16, 0, 6, 8
	if of != Source || len(data) < size*all {
		return
	}
	for _, i := range []int{source, repliesTo} {
		address, mask := data[size*i:][:size], data[size*(i+1):][:size]
		if allZero(address[size4:]) && allZero(mask[size4:]) {
			address, mask = address[:size4], mask[:size4]
		}
		s.addMasked(address, mask)
	}
}

// set adds the set in which the match set looks for an end of packets.
func (s *Sources) set(of End, data []byte) {
	const size, oldSize, oldFlags = 4, 32, 29 // struct xt_set_info: index, dimensions, flags; _v0
	if len(data) < size {
		return
	}
	at := data[:size]
	if len(data) == oldSize {
		at = data[:oldFlags+1]
	}
	dimensions, which := at[len(at)-2], at[len(at)-1]
	if of == Destination {
		which = ^which
	}
	if which &= 1<<(min(dimensions, 3)+1) - 2; which != 0 { // IPSET_DIM_MAX; bit 0 inverts the match
		if s.Sets == nil {
			s.Sets = map[uint16]byte{}
		}
		s.Sets[binary.NativeEndian.Uint16(data)] |= which
	}
}

func allZero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

// HasName reports whether rules compare packets' source with a hardware address or the name of a
// device.
func (s *Sources) HasName(name []byte) bool {
	return len(name) > 0 && s.names[string(bytes.TrimRight(name, "\x00"))]
}

// Has reports whether rules compare packets' source with an address, or with a part of its network.
func (s *Sources) Has(p netip.Prefix) bool {
	from, to := p.Masked().Addr(), LastAddress(p)
	return slices.ContainsFunc(s.ranges, func(r addressRange) bool {
		return r.first.Compare(p.Addr()) <= 0 && r.last.Compare(p.Addr()) >= 0 &&
			(r.first.Compare(from) > 0 || r.last.Compare(to) < 0)
	})
}

// Sources adds what the table's rules compare with the source of packets, or with the destination
// of answers: of rules that do something to packets to an address whatever their ports are. Rules
// that except a device by which packets come do not count: Docker has one for each container.
func (s Saved) Sources(out *Sources) {
	for _, e := range s.rules() {
		s.compares(e, Source, out)
		if s.answers(e) {
			s.compares(e, Destination, out)
		}
	}
}

// compares adds what a rule compares with an end of packets.
func (s Saved) compares(e entry, of End, out *Sources) {
	const device = 16 // IFNAMSIZ
	size, end := s.family().address, int(of)
	// struct ipt_ip, ip6t_ip6: addresses, masks, names of devices
	out.addMasked(e.head[size*end:][:size], e.head[size*(2+end):][:size])
	out.AddName(e.head[4*size+device*end:][:device])
	for _, m := range e.matches {
		out.Match(of, m.name, m.data)
	}
}

// answers reports whether a rule does something to answers, whose ports are any.
func (s Saved) answers(e entry) bool {
	const excepts = 1 // IPT_INV_VIA_IN
	return e.verdict != "" && !Logs(e.verdict) && e.head[s.family().inverse]&excepts == 0 &&
		!slices.ContainsFunc(e.matches, func(m extension) bool { return LimitsPorts(m.name, m.data) })
}
