package xtables

import (
	"bytes"
	"net"
	"net/netip"
	"slices"
)

// Sources has what rules compare with the source of packets: they may treat one container
// differently from others of its network.
type Sources struct {
	// Nets has addresses and networks.
	Nets []netip.Prefix
	// Lists has parts of rules and sets, among whose bytes are addresses or names of devices.
	Lists [][]byte
	// Sets is whether a rule looks for packets in an ipset.
	Sets bool

	names map[string]bool
}

// AddName adds a hardware address, or the name of a device, which may end with zeros.
func (s *Sources) AddName(name []byte) {
	if s.names == nil {
		s.names = map[string]bool{}
	}
	s.names[string(bytes.TrimRight(name, "\x00"))] = true
}

// AddNet adds the network of an address.
func (s *Sources) AddNet(address []byte, bits int) {
	if a, ok := netip.AddrFromSlice(address); ok && bits > 0 {
		s.Nets = append(s.Nets, netip.PrefixFrom(a, bits))
	}
}

// Match adds a match of xtables.
func (s *Sources) Match(name string, data []byte) {
	const sources, flags = 32, 64 // in struct xt_iprange_mtinfo
	switch name {
	case "set":
		s.Sets = true
	case "mac", "physdev":
		s.Lists = append(s.Lists, data)
	case "iprange":
		if len(data) > flags && data[flags]&1 != 0 { // IPRANGE_SRC
			s.Lists = append(s.Lists, data[:sources])
		}
	}
}

// HasName reports whether rules compare packets' source with a hardware address or the name of a
// device.
func (s *Sources) HasName(name []byte) bool {
	return len(name) > 0 && (s.names[string(bytes.TrimRight(name, "\x00"))] || s.lists(name))
}

// Has reports whether rules compare packets' source with an address, or with a part of its network.
func (s *Sources) Has(p netip.Prefix) bool {
	return s.lists(p.Addr().AsSlice()) || slices.ContainsFunc(s.Nets, func(n netip.Prefix) bool {
		return n.Bits() > p.Bits() && n.Contains(p.Addr())
	})
}

func (s *Sources) lists(value []byte) bool {
	return slices.ContainsFunc(s.Lists, func(b []byte) bool { return bytes.Contains(b, value) })
}

// Sources adds what the table's rules compare with the source of packets.
func (s Saved) Sources(out *Sources) {
	const device = 16 // IFNAMSIZ
	size := s.family().address
	for _, e := range s.rules() { // struct ipt_ip, ip6t_ip6: addresses, masks, names of devices
		bits, _ := net.IPMask(e.head[2*size : 3*size]).Size()
		out.AddNet(e.head[:size], bits)
		out.AddName(e.head[4*size : 4*size+device])
		for _, m := range e.matches {
			out.Match(m.name, m.data)
		}
	}
}
