package nft

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/firewall"
)

// Read returns the rules for IP packets in the calling thread's namespace.
func Read() ([]firewall.Chain, error) {
	c, err := nftables.New()
	if err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	chains, err := c.ListChains()
	if err != nil {
		return nil, fmt.Errorf("list nftables chains: %w", err)
	}
	var out []firewall.Chain
	for _, ch := range chains {
		family := ch.Table.Family
		r := firewall.Chain{Table: ch.Table.Name, Name: ch.Name,
			V4:   family == nftables.TableFamilyIPv4 || family == nftables.TableFamilyINet,
			V6:   family == nftables.TableFamilyIPv6 || family == nftables.TableFamilyINet,
			Drop: ch.Hooknum != nil && ch.Policy != nil && *ch.Policy == nftables.ChainPolicyDrop}
		if !r.V4 && !r.V6 {
			continue
		}
		rules, err := listRules(ch)
		if err != nil {
			return out, fmt.Errorf("read rules of %s %s: %w", ch.Table.Name, ch.Name, err)
		}
		for _, x := range rules {
			r.Rules = append(r.Rules, readRule(x.exprs, family))
		}
		out = append(out, r)
	}
	return out, nil
}

type field int

const (
	unknown field = iota
	inName
	outName
	inIndex
	outIndex
	srcAddr
	dstAddr
	protocolOf
	dport
	srcType
	dstType
	nfproto
)

// register is the value that an expression loaded into a register.
type register struct {
	by         string
	field      field
	mask, data []byte
}

type reader struct {
	rule   firewall.Rule
	six    bool
	regs   map[uint32]register
	placed map[field]bool
}

func readRule(exprs []any, family nftables.TableFamily) firewall.Rule {
	r := &reader{six: family == nftables.TableFamilyIPv6, regs: map[uint32]register{},
		placed: map[field]bool{}}
	for _, e := range exprs {
		if name, ok := e.(opaque); ok {
			r.unread(string(name))
			clear(r.regs) // the expression may have changed any register
		} else if !r.load(e) && !r.verdict(e) {
			r.unread(nameOf(e))
		}
	}
	return r.rule
}

func nameOf(e any) string { return strings.ToLower(fmt.Sprintf("%T", e)[len("*expr."):]) }

func (r *reader) unread(what string) {
	if r.rule.Unread == "" {
		r.rule.Unread = what
	}
}

func (r *reader) load(e any) bool {
	to, out := uint32(0), register{by: nameOf(e)}
	switch e := e.(type) {
	case *expr.Meta:
		if e.SourceRegister {
			return false
		}
		to = e.Register
		out.field = map[expr.MetaKey]field{expr.MetaKeyIIFNAME: inName,
			expr.MetaKeyOIFNAME: outName, expr.MetaKeyIIF: inIndex, expr.MetaKeyOIF: outIndex,
			expr.MetaKeyL4PROTO: protocolOf, expr.MetaKeyNFPROTO: nfproto}[e.Key]
	case *expr.Payload:
		if e.OperationType == expr.PayloadWrite {
			return false
		}
		to, out.field = e.DestRegister, r.payload(e)
	case *expr.Fib:
		to = e.Register
		whole := e.ResultADDRTYPE && !e.FlagIIF && !e.FlagOIF && !e.FlagMARK && !e.FlagPRESENT
		switch {
		case whole && e.FlagDADDR && !e.FlagSADDR:
			out.field = dstType
		case whole && e.FlagSADDR && !e.FlagDADDR:
			out.field = srcType
		}
	case *expr.Bitwise:
		to = e.DestRegister
		from := r.regs[slot(e.SourceRegister)]
		if from.mask == nil && len(e.Mask) > 0 && allZero(e.Xor) {
			out = register{by: from.by, field: from.field, mask: e.Mask}
		}
	case *expr.Immediate:
		to, out.data = e.Register, e.Data
	default:
		return false
	}
	r.regs[slot(to)] = out
	return true
}

func slot(reg uint32) uint32 {
	if reg >= unix.NFT_REG32_00 || reg == unix.NFT_REG_VERDICT {
		return reg
	}
	return unix.NFT_REG32_00 + (reg-unix.NFT_REG_1)*(unix.NFT_REG_SIZE/unix.NFT_REG32_SIZE)
}

func allZero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

const (
	offsetProto = 9
	offsetSrc6  = 8
	offsetDst6  = 24
)

func (r *reader) payload(e *expr.Payload) field {
	switch {
	case e.Base == expr.PayloadBaseTransportHeader && e.Offset == offsetDport && e.Len == 2:
		return dport
	case e.Base != expr.PayloadBaseNetworkHeader:
		return unknown
	case e.Offset == offsetSrc6 && r.v6(e) || e.Offset == offsetSrc && !r.six && e.Len <= 4:
		return srcAddr
	case e.Offset == offsetDst6 && r.v6(e) || e.Offset == offsetDst && !r.six && e.Len <= 4:
		return dstAddr
	case e.Offset == offsetProto && !r.six && e.Len == 1:
		return protocolOf
	}
	return unknown
}

func (r *reader) v6(e *expr.Payload) bool { return r.six || e.Len > 4 }

func (r *reader) compare(e *expr.Cmp) (known bool) {
	x, not := r.regs[slot(e.Register)], e.Op == expr.CmpOpNeq
	if e.Op != expr.CmpOpEq && !not || r.placed[x.field] ||
		x.mask != nil && x.field != srcAddr && x.field != dstAddr {
		return false
	}
	switch x.field {
	case inName:
		r.rule.In, known = firewall.Device{Name: deviceName(e.Data), Not: not}, true
	case outName:
		r.rule.Out, known = firewall.Device{Name: deviceName(e.Data), Not: not}, true
	case inIndex:
		r.rule.In, known = deviceAt(e.Data, not)
	case outIndex:
		r.rule.Out, known = deviceAt(e.Data, not)
	case srcAddr:
		r.rule.Src, known = netOf(e.Data, x.mask, r.six, not)
	case dstAddr:
		r.rule.Dst, known = netOf(e.Data, x.mask, r.six, not)
	case protocolOf:
		if known = !not && len(e.Data) == 1; known {
			r.rule.Proto = protoName(e.Data[0])
		}
	case dport:
		if known = len(e.Data) == 2 && !bytes.Equal(e.Data, []byte{0, 0}); known {
			n := binary.BigEndian.Uint16(e.Data)
			r.rule.Ports = firewall.Ports{Low: n, High: n, Not: not}
		}
	case srcType:
		r.rule.SrcLocal, known = local(e.Data, not)
	case dstType:
		r.rule.DstLocal, known = local(e.Data, not)
	case nfproto:
		r.six = bytes.Equal(e.Data, []byte{unix.NFPROTO_IPV6}) != not
		r.unread(map[bool]string{false: "IPv4", true: "IPv6"}[r.six])
		known = true
	}
	r.placed[x.field] = known
	return known
}

// deviceName returns a device's name. Without a final zero byte it is a prefix, returned as
// "veth+".
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

func protoName(n byte) string {
	name, ok := map[byte]string{unix.IPPROTO_TCP: "tcp", unix.IPPROTO_UDP: "udp",
		unix.IPPROTO_SCTP: "sctp",
		unix.IPPROTO_ICMP: "icmp", unix.IPPROTO_ICMPV6: "icmpv6"}[n]
	if !ok {
		return strconv.Itoa(int(n))
	}
	return name
}

func local(data []byte, not bool) (l firewall.Local, known bool) {
	if len(data) != 4 || binary.NativeEndian.Uint32(data) != unix.RTN_LOCAL {
		return firewall.Any, false
	}
	return firewall.Owner(not), true
}
