package nft

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/paths/firewall"
)

func (r *reader) match(e any) bool {
	switch e := e.(type) {
	case *expr.Cmp:
		return r.simple(slot(e.Register), e.Op, e.Data) || r.compare(slot(e.Register), e.Op, e.Data)
	case *expr.Range:
		return r.between(slot(e.Register), firewall.Range{Low: e.FromData, High: e.ToData},
			e.Op == expr.CmpOpNeq)
	case *expr.Match:
		return r.xtMatch(e)
	case *expr.Counter:
	default:
		return false
	}
	return true
}

func (r *reader) simple(at uint32, op expr.CmpOp, data []byte) (done bool) {
	f, mask, not := r.regs[at], r.mask[at], op == expr.CmpOpNeq
	if op != expr.CmpOpEq && !not || r.placed[f] || mask != nil && f != srcAddr && f != dstAddr {
		return false
	}
	switch f {
	case inName:
		r.rule.In = firewall.Device{Name: deviceName(data), Not: not}
	case outName:
		r.rule.Out = firewall.Device{Name: deviceName(data), Not: not}
	case inIndex:
		r.rule.In, done = deviceAt(data, not)
	case outIndex:
		r.rule.Out, done = deviceAt(data, not)
	case srcAddr:
		r.rule.Src, done = netOf(data, mask, r.six, not)
	case dstAddr:
		r.rule.Dst, done = netOf(data, mask, r.six, not)
	case protocolOf:
		if not || len(data) != 1 {
			return false
		}
		r.rule.Proto = protoName(data)
	case dport:
		if len(data) != 2 || data[0] == 0 && data[1] == 0 {
			return false
		}
		n := binary.BigEndian.Uint16(data)
		r.rule.Ports = firewall.Ports{Low: n, High: n, Not: not}
	case srcType, dstType:
		if len(data) != 4 || binary.NativeEndian.Uint32(data) != unix.RTN_LOCAL {
			return false
		}
		if f == srcType {
			r.rule.SrcLocal = owner(not)
		} else {
			r.rule.DstLocal = owner(not)
		}
	default:
		return false
	}
	done = done || f != inIndex && f != outIndex && f != srcAddr && f != dstAddr
	r.placed[f] = done
	return done
}

func (r *reader) compare(at uint32, op expr.CmpOp, data []byte) (known bool) {
	if r.regs[at] == mark { // another program may have set it
		r.unread("a mark")
		return true
	}
	if r.regs[at] == nfproto && op == expr.CmpOpEq && len(data) == 1 {
		r.six = data[0] == unix.NFPROTO_IPV6
	}
	lowest, highest := make([]byte, len(data)), bytes.Repeat([]byte{0xff}, len(data))
	in := map[expr.CmpOp]firewall.Range{expr.CmpOpEq: firewall.Only(data),
		expr.CmpOpNeq: firewall.Only(data),
		expr.CmpOpGte: {Low: data, High: highest}, expr.CmpOpLt: {Low: data, High: highest},
		expr.CmpOpLte: {Low: lowest, High: data}, expr.CmpOpGt: {Low: lowest, High: data}}
	return r.between(at, in[op], op == expr.CmpOpNeq || op == expr.CmpOpLt || op == expr.CmpOpGt)
}

func (r *reader) between(at uint32, in firewall.Range, not bool) (known bool) {
	f, width := r.fieldAt(at)
	mask := r.mask[at]
	if r.regs[at] == ctStatus && len(mask) == 4 &&
		binary.NativeEndian.Uint32(mask)&^firewall.KnownStatus == 0 {
		f, width = firewall.Status, 4
	}
	one := bytes.Equal(in.Low, in.High)
	if short := width - len(in.Low); one && mask == nil && short > 0 &&
		kinds[r.regs[at]].size == 0 {
		in = firewall.Range{Low: append(slices.Clone(in.Low), make([]byte, short)...),
			High: append(slices.Clone(in.High), bytes.Repeat([]byte{0xff}, short)...)}
	}
	if f == firewall.NoField || len(in.Low) != width || len(in.High) != width ||
		mask != nil && len(mask) != width ||
		// in the machine's byte order
		!one && (f == firewall.State || f == firewall.Status || f == firewall.InName ||
			f == firewall.OutName) {
		return false
	}
	l := firewall.Is(f, in, not)
	l.Mask = mask
	r.rule.Sets = append(r.rule.Sets, l)
	return true
}

func owner(not bool) firewall.Local {
	if not {
		return firewall.Foreign
	}
	return firewall.Own
}

// deviceName returns a name without a zero as a prefix: "veth+".
func deviceName(b []byte) string {
	if i := slices.Index(b, 0); i >= 0 {
		return string(b[:i])
	}
	if len(b) >= unix.IFNAMSIZ {
		return string(b)
	}
	return string(b) + "+"
}

func deviceAt(data []byte, not bool) (firewall.Device, bool) {
	if len(data) != 4 {
		return firewall.Device{}, false
	}
	d, err := net.InterfaceByIndex(int(binary.NativeEndian.Uint32(data)))
	if err != nil {
		return firewall.Device{}, false
	}
	return firewall.Device{Name: d.Name, Not: not}, true
}

func netOf(data, mask []byte, six, not bool) (firewall.Net, bool) {
	size := 4
	if six || len(data) > size {
		size = 16
	}
	if len(data) == 0 || len(data) > size {
		return firewall.Net{}, false
	}
	ones := 8 * len(data)
	if mask != nil {
		var bits int
		if ones, bits = net.IPMask(mask).Size(); bits != 8*len(data) {
			return firewall.Net{}, false
		}
	}
	full := make([]byte, size)
	copy(full, data)
	a, _ := netip.AddrFromSlice(full)
	return firewall.Net{Prefix: netip.PrefixFrom(a, ones), Not: not}, true
}

func protoName(data []byte) string {
	name, ok := map[byte]string{unix.IPPROTO_TCP: "tcp", unix.IPPROTO_UDP: "udp",
		unix.IPPROTO_SCTP: "sctp",
		unix.IPPROTO_ICMP: "icmp", unix.IPPROTO_ICMPV6: "icmpv6"}[data[0]]
	if !ok {
		return strconv.Itoa(int(data[0]))
	}
	return name
}
