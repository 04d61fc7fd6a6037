package nft

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/firewall"
)

// Read returns the rules that decide where IP packets go and whether they are
// let through. It needs CAP_NET_ADMIN over the namespace.
func Read() (firewall.Rules, error) {
	c, err := nftables.New()
	if err != nil {
		return firewall.Rules{}, fmt.Errorf("open nftables: %w", err)
	}
	chains, err := c.ListChains()
	if err != nil {
		return firewall.Rules{}, fmt.Errorf("list nftables chains: %w", err)
	}
	var out firewall.Rules
	sets := sets{conn: c}
	for _, ch := range chains {
		r, ok := readChain(ch)
		if !ok {
			continue
		}
		rules, err := c.GetRules(ch.Table, ch)
		if err != nil {
			return out, fmt.Errorf("read rules of %s %s: %w", ch.Table.Name, ch.Name, err)
		}
		for _, x := range rules {
			r.Rules = append(r.Rules, readRule(x.Exprs, ch.Table, &sets))
		}
		out.Chains = append(out.Chains, r)
	}
	return out, nil
}

var hooks = map[nftables.ChainHook]firewall.Hook{
	*nftables.ChainHookPrerouting: firewall.Prerouting, *nftables.ChainHookInput: firewall.Input,
	*nftables.ChainHookForward: firewall.Forward, *nftables.ChainHookOutput: firewall.Output,
	*nftables.ChainHookPostrouting: firewall.Postrouting,
}

func readChain(ch *nftables.Chain) (firewall.Chain, bool) {
	out := firewall.Chain{Table: ch.Table.Name, Name: ch.Name, Kind: firewall.Filter}
	switch ch.Table.Family {
	case nftables.TableFamilyIPv4:
		out.V4 = true
	case nftables.TableFamilyIPv6:
		out.V6 = true
	case nftables.TableFamilyINet:
		out.V4, out.V6 = true, true
	default: // bridge, arp and netdev see no packet on its way through IP
		return out, false
	}
	if ch.Type == nftables.ChainTypeNAT {
		out.Kind = firewall.NAT
	}
	if ch.Hooknum != nil {
		out.Hook = hooks[*ch.Hooknum]
		out.Drop = ch.Policy != nil && *ch.Policy == nftables.ChainPolicyDrop
	}
	if ch.Priority != nil {
		out.Priority = int(*ch.Priority)
	}
	return out, true
}

// field is what a register was loaded with.
type field int

const (
	unknown field = iota
	inName
	outName
	srcAddr
	dstAddr
	protocolOf
	dport
	srcType
	dstType
	ctState
	nfproto
	mark
	constant
)

// reader goes through a rule's expressions.
type reader struct {
	rule  firewall.Rule
	table *nftables.Table
	sets  *sets
	six   bool // addresses are IPv6
	regs  map[uint32]field
	size  map[uint32]int    // bytes that were loaded
	mask  map[uint32][]byte // of a bitwise and
	data  map[uint32][]byte // constants

	placed map[field]bool // that the rule has a match of
}

func readRule(exprs []expr.Any, table *nftables.Table, sets *sets) firewall.Rule {
	r := &reader{table: table, sets: sets, six: table.Family == nftables.TableFamilyIPv6,
		regs: map[uint32]field{}, size: map[uint32]int{}, mask: map[uint32][]byte{}, data: map[uint32][]byte{}, placed: map[field]bool{}}
	for _, e := range exprs {
		if !r.load(e) && !r.match(e) && !r.verdict(e) {
			r.unread(fmt.Sprintf("%T", e)[len("*expr."):])
		}
	}
	return r.rule
}

func (r *reader) unread(what string) {
	if r.rule.Unread == "" {
		r.rule.Unread = what
	}
}

// load handles expressions that fill a register.
func (r *reader) load(e expr.Any) bool {
	switch e := e.(type) {
	case *expr.Meta:
		if e.SourceRegister {
			return true // sets a mark
		}
		r.put(e.Register, map[expr.MetaKey]field{expr.MetaKeyIIFNAME: inName, expr.MetaKeyOIFNAME: outName,
			expr.MetaKeyL4PROTO: protocolOf, expr.MetaKeyNFPROTO: nfproto, expr.MetaKeyMARK: mark}[e.Key])
	case *expr.Payload:
		r.put(e.DestRegister, r.payload(e))
		r.size[slot(e.DestRegister)] = int(e.Len)
	case *expr.Fib:
		f := unknown
		if e.ResultADDRTYPE && e.FlagDADDR {
			f = dstType
		} else if e.ResultADDRTYPE && e.FlagSADDR {
			f = srcType
		}
		r.put(e.Register, f)
	case *expr.Ct:
		f := unknown
		if e.Key == expr.CtKeySTATE {
			f = ctState
		}
		r.put(e.Register, f)
	case *expr.Bitwise:
		r.regs[slot(e.DestRegister)], r.mask[slot(e.DestRegister)] = r.regs[slot(e.SourceRegister)], e.Mask
	case *expr.Immediate:
		r.put(e.Register, constant)
		r.data[slot(e.Register)] = e.Data
	default:
		return false
	}
	return true
}

func (r *reader) put(reg uint32, f field) {
	r.regs[slot(reg)] = f
	delete(r.mask, slot(reg))
	delete(r.size, slot(reg))
}

// Offsets of the IPv6 header.
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

// v6 is also true in a table of both families, where the length tells.
func (r *reader) v6(e *expr.Payload) bool { return r.six || e.Len > 4 }

func (r *reader) match(e expr.Any) bool {
	switch e := e.(type) {
	case *expr.Cmp:
		if e.Op != expr.CmpOpEq && e.Op != expr.CmpOpNeq {
			return false
		}
		return r.compare(r.regs[slot(e.Register)], e.Op == expr.CmpOpNeq, e.Data, r.mask[slot(e.Register)])
	case *expr.Range:
		if r.regs[slot(e.Register)] != dport || len(e.FromData) != 2 || len(e.ToData) != 2 {
			return false
		}
		r.rule.Ports = firewall.Ports{Low: binary.BigEndian.Uint16(e.FromData), High: binary.BigEndian.Uint16(e.ToData), Not: e.Op == expr.CmpOpNeq}
	case *expr.Match:
		return r.xtMatch(e)
	case *expr.Counter, *expr.Log, *expr.Notrack:
	default:
		return false
	}
	return true
}

func (r *reader) compare(f field, not bool, data, mask []byte) (known bool) {
	switch f {
	case inName, outName, srcAddr, dstAddr:
		return r.place(f, not, data, mask)
	case protocolOf:
		r.rule.Proto = protoName(data)
		return !not && r.rule.Proto != ""
	case dport:
		if len(data) != 2 || mask != nil {
			return false
		}
		n := binary.BigEndian.Uint16(data)
		r.rule.Ports = firewall.Ports{Low: n, High: n, Not: not}
	case srcType:
		r.rule.SrcLocal = owner(not)
		return len(data) == 4 && binary.NativeEndian.Uint32(data) == unix.RTN_LOCAL
	case dstType:
		r.rule.DstLocal = owner(not)
		return len(data) == 4 && binary.NativeEndian.Uint32(data) == unix.RTN_LOCAL
	case ctState: // (state & mask) != 0 is "one of", == 0 "none of"; else state == data
		bits, one := mask, not
		if mask == nil {
			bits, one = data, !not
		}
		if len(bits) != 4 {
			return false
		}
		r.rule.NotNew = (binary.NativeEndian.Uint32(bits)&expr.CtStateBitNEW != 0) != one
	case nfproto:
		return !not && r.only(data)
	case mark: // which another program may have set
		r.unread("a mark")
	default:
		return false
	}
	return true
}

// place compares a device or an address; a second match of the same one has no
// room in a rule.
func (r *reader) place(f field, not bool, data, mask []byte) (known bool) {
	if r.placed[f] {
		return false
	}
	r.placed[f] = true
	switch f {
	case inName:
		r.rule.In = firewall.Device{Name: deviceName(data), Not: not}
	case outName:
		r.rule.Out = firewall.Device{Name: deviceName(data), Not: not}
	case srcAddr:
		r.rule.Src.Prefix, known = prefixOf(data, mask, r.six)
		r.rule.Src.Not = not
		return known
	case dstAddr:
		r.rule.Dst.Prefix, known = prefixOf(data, mask, r.six)
		r.rule.Dst.Not = not
		return known
	}
	return true
}

// only limits the rule to a family.
func (r *reader) only(data []byte) bool {
	if len(data) != 1 {
		return false
	}
	r.six = data[0] == unix.NFPROTO_IPV6
	all := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	if r.six {
		all = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	r.rule.Dst.Prefix = all
	return true
}

func owner(not bool) firewall.Local {
	if not {
		return firewall.Other
	}
	return firewall.Own
}

// deviceName ends at its zero; without one it is a prefix.
func deviceName(b []byte) string {
	if i := slices.Index(b, 0); i >= 0 {
		return string(b[:i])
	}
	if len(b) >= unix.IFNAMSIZ {
		return string(b)
	}
	return string(b) + "+"
}

// prefixOf is an address of which only some bytes may have been loaded.
func prefixOf(data, mask []byte, six bool) (netip.Prefix, bool) {
	size := 4
	if six || len(data) > size {
		size = 16
	}
	if len(data) == 0 || len(data) > size {
		return netip.Prefix{}, false
	}
	ones := 8 * len(data)
	if mask != nil {
		ones = 0
		for _, b := range mask {
			for ; b&0x80 != 0; b <<= 1 {
				ones++
			}
			if b != 0 {
				return netip.Prefix{}, false
			}
		}
	}
	full := make([]byte, size)
	copy(full, data)
	a, _ := netip.AddrFromSlice(full)
	return netip.PrefixFrom(a, min(ones, 8*size)), true
}

func protoName(data []byte) string {
	if len(data) != 1 {
		return ""
	}
	return map[byte]string{unix.IPPROTO_TCP: "tcp", unix.IPPROTO_UDP: "udp", unix.IPPROTO_SCTP: "sctp",
		unix.IPPROTO_ICMP: "icmp", unix.IPPROTO_ICMPV6: "icmpv6"}[data[0]]
}
