package xtables

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
)

// Sources has what rules compare with the source of packets: they may treat one container
// differently from others of its network.
type Sources struct {
	// Sets has, by index, the ipsets in which rules look for packets, and which dimensions of their
	// elements are compared with the source: bit 1 is of the first one, bit 2 of the second.
	Sets map[uint16]byte
	// Devices has the indexes of devices by which packets come.
	Devices map[uint32]bool

	ranges []addressRange
	names  map[string]bool
}

type addressRange struct{ first, last netip.Addr }

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

// Add adds the addresses of other.
func (s *Sources) Add(other Sources) { s.ranges = append(s.ranges, other.ranges...) }

// MatchesPorts reports whether a match compares ports.
func MatchesPorts(name string) bool {
	return slices.Contains([]string{"tcp", "udp", "udplite", "sctp", "dccp", "multiport"}, name)
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

// Match adds a match of xtables.
func (s *Sources) Match(name string, data []byte) {
	const (
		mac, device = 6, 16 // struct xt_mac_info, xt_physdev_info
		flags       = 64    // struct xt_iprange_mtinfo: first and last source, then destinations
		set, oldSet = 4, 32 // struct xt_set_info: index, dimensions, flags; xt_set_info_v0
		sources     = 2 | 4 | 8
		// of ebtables: struct ebt_ip_info and ebt_ip6_info (source, destination, their masks),
		// ebt_arp_info
		size4, size6, bitmask, bitmask6, sender = 4, 16, 18, 66, 8
	)
	switch {
	case name == "mac" && len(data) >= mac:
		s.AddName(data[:mac])
	case name == "physdev" && len(data) >= device:
		s.AddName(data[:device])
	case name == "iprange" && len(data) > flags && data[flags]&1 != 0: // IPRANGE_SRC
		const address = 16
		first, last := data[:address], data[address:2*address]
		if allZero(first[size4:]) && allZero(last[size4:]) {
			first, last = first[:size4], last[:size4]
		}
		s.AddRange(first, last)
	case name == "ip" && len(data) > bitmask && data[bitmask]&1 != 0: // EBT_IP_SOURCE
		s.addMasked(data[:size4], data[2*size4:3*size4])
	case name == "ip6" && len(data) > bitmask6 && data[bitmask6]&1 != 0:
		s.addMasked(data[:size6], data[2*size6:3*size6])
	case name == "arp" && len(data) >= sender+2*size4:
		s.addMasked(data[sender:sender+size4], data[sender+size4:sender+2*size4])
	case name == "set" && len(data) >= set:
		of := data[set-1]
		if len(data) == oldSet {
			const flags = 29
			of = data[flags]
		}
		if of &= sources; of != 0 {
			if s.Sets == nil {
				s.Sets = map[uint16]byte{}
			}
			s.Sets[binary.NativeEndian.Uint16(data)] |= of
		}
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
// of answers: of rules that stop packets to an address whatever their ports are. Rules that except
// a device by which packets come do not count: Docker has one for each container.
func (s Saved) Sources(out *Sources) {
	const device = 16 // IFNAMSIZ
	size := s.family().address
	for _, e := range s.rules() { // struct ipt_ip, ip6t_ip6: addresses, masks, names of devices
		out.addMasked(e.head[:size], e.head[2*size:3*size])
		out.AddName(e.head[4*size : 4*size+device])
		some := e.head[s.family().inverse]&1 != 0 // IPT_INV_VIA_IN
		for _, m := range e.matches {
			out.Match(m.name, m.data)
			some = some || MatchesPorts(m.name)
		}
		if !some && (e.verdict == "DROP" || e.verdict == "REJECT") {
			out.addMasked(e.head[size:2*size], e.head[3*size:4*size])
		}
	}
}
