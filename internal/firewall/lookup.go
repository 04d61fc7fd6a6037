package firewall

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
)

// Field is a part of a packet by which a set is looked up.
type Field int

// The fields, and what a packet has there. A device's name is padded with zeros
// to 16 bytes; addresses and ports are in network order, the state in the
// machine's, as in nf_tables.
const (
	NoField  Field = iota
	InName         // of the device it came by
	OutName        // of the device it leaves by
	SrcAddr        // 4 or 16 bytes
	DstAddr        // 4 or 16 bytes
	Protocol       // 1 byte
	DstPort        // 2 bytes
	State          // 4 bytes: a first packet's is "new"
	Family         // 1 byte: NFPROTO_IPV4 or NFPROTO_IPV6
)

// Lookup matches fields of a packet with the elements of a set, or finds its
// verdict in a map.
type Lookup struct {
	Fields   []Field
	Elements []Element
	Not      bool // of a set: matches what is not in it
}

// Element is an element of a set, or of a map of verdicts.
type Element struct {
	Key     []Range // one for each field
	Verdict Verdict // of a map
	Chain   string  // of Jump and Goto
}

// Range is what a field may be, both ends included.
type Range struct{ Low, High []byte }

// Only is the range of one value.
func Only(b []byte) Range { return Range{b, b} }

// find looks a packet up.
func (l Lookup) find(p Packet) (Element, bool) {
	has := make([][]byte, len(l.Fields))
	for i, f := range l.Fields {
		has[i] = f.of(p)
	}
	for _, e := range l.Elements {
		if e.matches(has) {
			return e, true
		}
	}
	return Element{}, false
}

// ByAddress reports whether the destination is looked up.
func (l Lookup) ByAddress() bool { return slices.Contains(l.Fields, DstAddr) }

func (l Lookup) matches(p Packet) bool {
	_, in := l.find(p)
	return in != l.Not
}

func (e Element) matches(has [][]byte) bool {
	if len(e.Key) != len(has) {
		return false
	}
	for i, r := range e.Key {
		if len(has[i]) != len(r.Low) || len(has[i]) != len(r.High) || bytes.Compare(has[i], r.Low) < 0 || bytes.Compare(has[i], r.High) > 0 {
			return false
		}
	}
	return true
}

// numbers of protocols (RFC 1700), as packets carry them.
var numbers = map[string]byte{"icmp": 1, "tcp": 6, "udp": 17, "icmpv6": 58, "sctp": 132}

// of is what the packet has in the field; nil if it has nothing there.
func (f Field) of(p Packet) []byte {
	const (
		nameSize = 16     // IFNAMSIZ
		stateNew = 1 << 3 // NF_CT_STATE_BIT(IP_CT_NEW)
		v4, v6   = 2, 10  // NFPROTO_IPV4, NFPROTO_IPV6
	)
	switch f {
	case InName, OutName:
		b := make([]byte, nameSize)
		copy(b, map[Field]string{InName: p.In, OutName: p.Out}[f])
		return b
	case SrcAddr:
		return addrBytes(p.Src)
	case DstAddr:
		return addrBytes(p.Dst)
	case Protocol:
		if n, ok := numbers[p.Proto]; ok {
			return []byte{n}
		}
	case DstPort:
		return binary.BigEndian.AppendUint16(nil, p.Port)
	case State:
		return binary.NativeEndian.AppendUint32(nil, stateNew)
	case Family:
		if p.Dst.Is4() {
			return []byte{v4}
		}
		return []byte{v6}
	}
	return nil
}

func addrBytes(a netip.Addr) []byte {
	if !a.IsValid() {
		return nil
	}
	return a.AsSlice()
}
