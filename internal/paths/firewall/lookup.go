package firewall

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// Field is a part of a packet, or of connection tracking's record of it.
type Field int

// Zeros pad a device's name to 16 bytes. As in nf_tables, addresses and ports are in network order,
// states in the machine's.
const (
	NoField Field = iota
	InName
	OutName
	SrcAddr // addresses have 4 or 16 bytes
	DstAddr
	Protocol // 1 byte
	DstPort  // 2 bytes
	Family   // 1 byte: NFPROTO_IPV4 or NFPROTO_IPV6
	// Connection tracking has the following: the original tuple is what the client sent, the reply
	// tuple what the server answers.
	State        // 4 bytes: "new" for a first packet, "established" for a later one
	XtState      // 4 bytes: iptables' --ctstate, with bits for translated addresses
	Status       // 4 bytes; only the bits of KnownStatus are known
	Direction    // 1 byte: 0, or 1 for packets of the server
	ConnProtocol // 1 byte
	OrigSrc
	OrigDst
	OrigDstPort // 2 bytes
	ReplSrc
	ReplSrcPort // 2 bytes
	ReplDst
)

// linux/netfilter/nf_conntrack_common.h, xt_conntrack.h
const (
	stateInvalid     = 1 << 0
	stateEstablished = 1 << 1 // NF_CT_STATE_BIT(IP_CT_ESTABLISHED), both directions
	stateNew         = 1 << 3 // NF_CT_STATE_BIT(IP_CT_NEW)
	xtDNAT           = 1 << 7 // XT_CONNTRACK_STATE_DNAT
	statusSeenReply  = 1 << 1 // IPS_SEEN_REPLY
	statusAssured    = 1 << 2 // IPS_ASSURED
	statusConfirmed  = 1 << 3 // IPS_CONFIRMED
	statusDNAT       = 1 << 5 // IPS_DST_NAT

	// KnownStatus are the known bits of Status: expected, answered, assured, confirmed, translated,
	// dying.
	KnownStatus = 1<<0 | statusSeenReply | statusAssured | statusConfirmed | 1<<4 | statusDNAT |
		1<<9
)

func (f Field) tracked() bool { return f >= State }

func (f Field) source() bool { return f == SrcAddr || f == OrigSrc || f == ReplDst }

// Lookup looks up fields of a packet in a set, or in a map of verdicts.
type Lookup struct {
	Fields   []Field
	Mask     []byte // bits of a single field to compare; nil: all
	Elements []Element
	Not      bool // packets that are not in the set
}

// Element belongs to a set or a map of verdicts.
type Element struct {
	Key     []Range // for each field
	Verdict Verdict
	Chain   string
}

// Range is a range of values, both ends included.
type Range struct{ Low, High []byte }

// Only returns the range of one value.
func Only(b []byte) Range { return Range{b, b} }

// Is returns a Lookup that matches if f is in r or, with not, outside it.
func Is(f Field, r Range, not bool) Lookup {
	return Lookup{Fields: []Field{f}, Elements: []Element{{Key: []Range{r}}}, Not: not}
}

// AnyBit returns a Lookup that matches if f, in the machine's byte order, has any of the bits or,
// with not, none.
func AnyBit(f Field, bits uint32, not bool) Lookup {
	l := Is(f, Only(make([]byte, 4)), !not)
	l.Mask = binary.NativeEndian.AppendUint32(nil, bits)
	return l
}

// ByAddress reports whether the lookup uses the destination address.
func (l Lookup) ByAddress() bool { return slices.Contains(l.Fields, DstAddr) }

func (l *Lookup) matches(p *Packet) answer {
	has, ok := l.of(p)
	if !ok {
		return answer{}
	}
	out := answer{}
	for i := range l.Elements {
		x := l.match(&l.Elements[i], has, p)
		out = answer{yes: out.yes || x.yes, open: out.open || x.open}
		if x.yes && !x.open {
			return x.not(l.Not)
		}
	}
	return out.not(l.Not)
}

// find also returns the elements for packets of other sources. The elements of a map exclude each
// other.
func (l *Lookup) find(p *Packet) (now *Element, others []*Element, open bool) {
	has, ok := l.of(p)
	if !ok {
		return nil, nil, false
	}
	for i := range l.Elements {
		x := l.match(&l.Elements[i], has, p)
		open = open || x.open
		switch {
		case x.yes && now == nil:
			now = &l.Elements[i]
		case x.open:
			others = append(others, &l.Elements[i])
		}
	}
	return now, others, open
}

// of returns false if the packet lacks a field: such a Lookup matches nothing, negated or not.
func (l *Lookup) of(p *Packet) (has [][]byte, ok bool) {
	for _, f := range l.Fields {
		b := f.of(p)
		if b == nil {
			return nil, false
		}
		has = append(has, b)
	}
	return has, true
}

func (l *Lookup) match(e *Element, has [][]byte, p *Packet) answer {
	if len(e.Key) != len(has) {
		return answer{}
	}
	out := sure(true)
	for i, r := range e.Key {
		b := has[i]
		switch {
		case l.Fields[i] == DstPort && p.High != 0 &&
			(l.Mask != nil || len(r.Low) != 2 || len(r.High) != 2):
			out = out.and(answer{open: true})
		case l.Fields[i] == DstPort && p.High != 0:
			out = out.and(p.to(binary.BigEndian.Uint16(r.Low), binary.BigEndian.Uint16(r.High)))
		case l.Mask != nil:
			masked := slices.Clone(b)
			for j := range masked[:min(len(masked), len(l.Mask))] {
				masked[j] &= l.Mask[j]
			}
			out = out.and(answer{yes: r.has(masked),
				open: p.Sources != nil && l.Fields[i].source()})
		case l.Fields[i].source() && p.Sources != nil:
			out = out.and(p.from(r))
		default:
			out = out.and(sure(r.has(b)))
		}
	}
	return out
}

// numbers are IANA's.
var numbers = map[string]byte{"icmp": 1, "igmp": 2, "tcp": 6, "udp": 17, "dccp": 33, "gre": 47,
	"esp": 50, "ah": 51,
	"icmpv6": 58, "ipv6-icmp": 58, "sctp": 132, "udplite": 136}

func (f Field) of(p *Packet) []byte {
	const (
		nameSize = 16    // IFNAMSIZ
		v4, v6   = 2, 10 // NFPROTO_IPV4, NFPROTO_IPV6
	)
	if f.tracked() {
		return f.ofConnection(p)
	}
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
	case Family:
		if p.Dst.Is4() {
			return []byte{v4}
		}
		return []byte{v6}
	}
	return nil
}

func (f Field) ofConnection(p *Packet) []byte {
	if p.untracked {
		if f == State || f == XtState {
			return binary.NativeEndian.AppendUint32(nil, stateInvalid)
		}
		return nil
	}
	client, server := p.Src, netip.AddrPortFrom(p.Dst, p.Port)
	if p.Stage.Back() {
		client, server = p.Dst, netip.AddrPortFrom(p.Src, p.From)
	}
	dialled := server
	if p.Orig.IsValid() {
		dialled = p.Orig
	}
	switch f {
	case State, XtState, Status:
		return binary.NativeEndian.AppendUint32(nil, f.bits(p, dialled != server))
	case Direction:
		if p.Stage.Back() {
			return []byte{1}
		}
		return []byte{0}
	case ConnProtocol:
		return Protocol.of(p)
	case OrigSrc, ReplDst:
		return addrBytes(client)
	case OrigDst:
		return addrBytes(dialled.Addr())
	case OrigDstPort:
		return binary.BigEndian.AppendUint16(nil, dialled.Port())
	case ReplSrc:
		return addrBytes(server.Addr())
	case ReplSrcPort:
		return binary.BigEndian.AppendUint16(nil, server.Port())
	}
	return nil
}

// A first packet that arrives by lo has left this machine before, which confirmed its connection.
func (f Field) bits(p *Packet, translated bool) (out uint32) {
	first := p.Stage == First
	switch {
	case f == Status:
		if translated {
			out |= statusDNAT
		}
		if !first || p.In == "lo" {
			out |= statusConfirmed
		}
		if !first {
			out |= statusSeenReply
		}
		if p.Stage == Later || p.Stage == LaterReply {
			out |= statusAssured
		}
		return out
	case first:
		out = stateNew
	default:
		out = stateEstablished
	}
	if f == XtState && translated {
		out |= xtDNAT
	}
	return out
}

func addrBytes(a netip.Addr) []byte {
	if !a.IsValid() {
		return nil
	}
	return a.AsSlice()
}
