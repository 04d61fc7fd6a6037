package nft

import (
	"net"
	"net/netip"

	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/xt"
	"golang.org/x/sys/unix"
)

const (
	offsetSrc   = 12
	offsetDst   = 16
	offsetSport = 0
	offsetDport = 2
	offsetVNI   = 12 // after UDP's header, flags and three reserved bytes
)

func ifname(key expr.MetaKey, op expr.CmpOp, name string) Match {
	return Match{[]expr.Any{
		&expr.Meta{Key: key, Register: 1},
		&expr.Cmp{Op: op, Register: 1, Data: paddedName(name)},
	}}
}

func paddedName(name string) []byte {
	b := make([]byte, unix.IFNAMSIZ)
	copy(b, name)
	return b
}

// In matches iptables' `-i name`.
func In(name string) Match { return ifname(expr.MetaKeyIIFNAME, expr.CmpOpEq, name) }

// NotIn matches iptables' `! -i name`.
func NotIn(name string) Match { return ifname(expr.MetaKeyIIFNAME, expr.CmpOpNeq, name) }

// Out matches iptables' `-o name`.
func Out(name string) Match { return ifname(expr.MetaKeyOIFNAME, expr.CmpOpEq, name) }

// NotOut matches iptables' `! -o name`.
func NotOut(name string) Match { return ifname(expr.MetaKeyOIFNAME, expr.CmpOpNeq, name) }

func src(p netip.Prefix) uint32 {
	if p.Addr().Is6() {
		return offsetSrc6
	}
	return offsetSrc
}

func dst(p netip.Prefix) uint32 {
	if p.Addr().Is6() {
		return offsetDst6
	}
	return offsetDst
}

// Like iptables-nft, prefix loads only the bytes of a byte-aligned prefix.
func prefix(offset uint32, op expr.CmpOp, p netip.Prefix) Match {
	addr := p.Masked().Addr().AsSlice()
	size := uint32(len(addr))
	if whole := p.Bits() / 8; p.Bits()%8 == 0 && whole > 0 {
		return Match{[]expr.Any{
			&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset,
				Len: uint32(whole)},
			&expr.Cmp{Op: op, Register: 1, Data: addr[:whole]},
		}}
	}
	mask := net.CIDRMask(p.Bits(), p.Addr().BitLen())
	return Match{[]expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset,
			Len: size},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: size, Mask: mask,
			Xor: make([]byte, size)},
		&expr.Cmp{Op: op, Register: 1, Data: addr},
	}}
}

// Src matches iptables' `-s p`.
func Src(p netip.Prefix) Match { return prefix(src(p), expr.CmpOpEq, p) }

// NotSrc matches iptables' `! -s p`.
func NotSrc(p netip.Prefix) Match { return prefix(src(p), expr.CmpOpNeq, p) }

// Dst matches iptables' `-d p`.
func Dst(p netip.Prefix) Match { return prefix(dst(p), expr.CmpOpEq, p) }

// NotDst matches iptables' `! -d p`.
func NotDst(p netip.Prefix) Match { return prefix(dst(p), expr.CmpOpNeq, p) }

func addrType(src, dst bool) Match {
	local := binaryutil.NativeEndian.PutUint32(unix.RTN_LOCAL)
	return Match{[]expr.Any{
		&expr.Fib{Register: 1, FlagSADDR: src, FlagDADDR: dst, ResultADDRTYPE: true},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: local},
	}}
}

// DstLocal matches iptables' `-m addrtype --dst-type LOCAL`.
func DstLocal() Match { return addrType(false, true) }

// SrcLocal matches iptables' `-m addrtype --src-type LOCAL`.
func SrcLocal() Match { return addrType(true, false) }

// NFT_META_SECPATH
const metaSecpath = expr.MetaKeyPRANDOM + 1

func protocol(p byte) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{p}},
	}
}

func port(proto byte, offset uint32, number uint16) Match {
	return Match{append(protocol(proto),
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: offset,
			Len: 2},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.BigEndian.PutUint16(number)},
	)}
}

// TCPDport matches iptables' `-p tcp --dport number`.
func TCPDport(number uint16) Match { return port(unix.IPPROTO_TCP, offsetDport, number) }

// TCPSport matches iptables' `-p tcp --sport number`.
func TCPSport(number uint16) Match { return port(unix.IPPROTO_TCP, offsetSport, number) }

// UDPDport matches iptables' `-p udp --dport number`.
func UDPDport(number uint16) Match { return port(unix.IPPROTO_UDP, offsetDport, number) }

// UDPSport matches iptables' `-p udp --sport number`.
func UDPSport(number uint16) Match { return port(unix.IPPROTO_UDP, offsetSport, number) }

// VXLAN matches UDP packets to port number with the VXLAN identifier vni. (Docker uses `-m bpf`.)
func VXLAN(number uint16, vni uint32) Match {
	m := port(unix.IPPROTO_UDP, offsetDport, number)
	return Match{append(m.exprs,
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: offsetVNI,
			Len: 3},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.BigEndian.PutUint32(vni)[1:]},
	)}
}

// ClearText matches iptables' `-m policy --dir in --pol none`: packets without IPsec.
func ClearText() Match {
	return Match{[]expr.Any{
		&expr.Meta{Key: metaSecpath, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{0}},
	}}
}

// ICMP matches iptables' `-p icmp`.
func ICMP() Match { return Match{protocol(unix.IPPROTO_ICMP)} }

// ProtocolICMP matches nft's `ip protocol icmp`.
func ProtocolICMP() Match {
	return Match{[]expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offsetProto,
			Len: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_ICMP}},
	}}
}

// ICMPv6 matches iptables' `-p ipv6-icmp`.
func ICMPv6() Match { return Match{protocol(unix.IPPROTO_ICMPV6)} }

// TCP matches iptables' `-p tcp`.
func TCP() Match { return Match{protocol(unix.IPPROTO_TCP)} }

// UDP matches iptables' `-p udp`.
func UDP() Match { return Match{protocol(unix.IPPROTO_UDP)} }

// SCTP matches iptables' `-p sctp`.
func SCTP() Match { return Match{protocol(unix.IPPROTO_SCTP)} }

// IPVS matches iptables' `-m ipvs --ipvs`, which nftables cannot express.
func IPVS() Match {
	// struct xt_ipvs_mtinfo (linux/netfilter/xt_ipvs.h)
	const (
		size     = 40
		property = 1 // XT_IPVS_IPVS_PROPERTY
	)
	info := make(xt.Unknown, size)
	info[size-1] = property
	return Match{[]expr.Any{&expr.Match{Name: "ipvs", Info: &info}}}
}

// Established matches iptables' `-m conntrack --ctstate RELATED,ESTABLISHED`.
func Established() Match { return state(expr.CtStateBitESTABLISHED | expr.CtStateBitRELATED) }

// Invalid matches iptables' `-m conntrack --ctstate INVALID`.
func Invalid() Match { return state(expr.CtStateBitINVALID) }

// OnlyEstablished matches iptables' `-m conntrack --ctstate ESTABLISHED`.
func OnlyEstablished() Match { return state(expr.CtStateBitESTABLISHED) }

// NewOrEstablished matches iptables' `-m conntrack --ctstate NEW,ESTABLISHED`.
func NewOrEstablished() Match { return state(expr.CtStateBitNEW | expr.CtStateBitESTABLISHED) }

func state(bits uint32) Match {
	mask := binaryutil.NativeEndian.PutUint32(bits)
	return Match{[]expr.Any{
		&expr.Ct{Register: 1, Key: expr.CtKeySTATE},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: mask, Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)},
	}}
}

func verdict(kind expr.VerdictKind, chain string) Verdict {
	return Verdict{exprs: []expr.Any{&expr.Verdict{Kind: kind, Chain: chain}}}
}

// Accept lets the packet pass this hook.
func Accept() Verdict { return verdict(expr.VerdictAccept, "") }

// Drop discards the packet.
func Drop() Verdict { return verdict(expr.VerdictDrop, "") }

// Return returns to the chain that jumped here.
func Return() Verdict { return verdict(expr.VerdictReturn, "") }

// Jump continues in another chain of the same table.
func Jump(chain string) Verdict { return verdict(expr.VerdictJump, chain) }

// JumpByIn continues in the chain that the map has for the device by which the packet came, or with
// the next rule.
func JumpByIn(mapName string) Verdict { return jumpBy(expr.MetaKeyIIFNAME, mapName) }

// JumpByOut continues in the chain that the map has for the device by which the packet leaves, or
// with the next rule.
func JumpByOut(mapName string) Verdict { return jumpBy(expr.MetaKeyOIFNAME, mapName) }

func jumpBy(key expr.MetaKey, mapName string) Verdict {
	return Verdict{silent: true, exprs: []expr.Any{
		&expr.Meta{Key: key, Register: 1},
		&expr.Lookup{SourceRegister: 1, SetName: mapName, IsDestRegSet: true},
	}}
}

// Mark sets the packet's mark and continues with the next rule.
func Mark(mark uint32) Verdict {
	return Verdict{exprs: []expr.Any{
		&expr.Immediate{Register: 1, Data: binaryutil.NativeEndian.PutUint32(mark)},
		&expr.Meta{Key: expr.MetaKeyMARK, SourceRegister: true, Register: 1},
	}}
}

// Masquerade replaces the source address by the outgoing device's.
func Masquerade() Verdict { return Verdict{exprs: []expr.Any{&expr.Masq{}}} }

// DNAT replaces the destination. The address is of the table's family.
func DNAT(to netip.AddrPort) Verdict {
	family := uint32(unix.NFPROTO_IPV4)
	if to.Addr().Is6() {
		family = unix.NFPROTO_IPV6
	}
	return Verdict{exprs: []expr.Any{
		&expr.Immediate{Register: 1, Data: to.Addr().AsSlice()},
		&expr.Immediate{Register: 2, Data: binaryutil.BigEndian.PutUint16(to.Port())},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: family, RegAddrMin: 1, RegProtoMin: 2},
	}}
}

// DNATAddr replaces the destination's address, not its port.
func DNATAddr(to netip.Addr) Verdict {
	return Verdict{exprs: []expr.Any{
		&expr.Immediate{Register: 1, Data: to.AsSlice()},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: 1},
	}}
}

// SNAT replaces the source address.
func SNAT(to netip.Addr) Verdict {
	return Verdict{exprs: []expr.Any{
		&expr.Immediate{Register: 1, Data: to.AsSlice()},
		&expr.NAT{Type: expr.NATTypeSourceNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: 1},
	}}
}

// SNATPort replaces only the source port.
func SNATPort(port uint16) Verdict {
	return Verdict{exprs: []expr.Any{
		&expr.Immediate{Register: 1, Data: binaryutil.BigEndian.PutUint16(port)},
		&expr.NAT{Type: expr.NATTypeSourceNAT, Family: unix.NFPROTO_IPV4, RegProtoMin: 1},
	}}
}

// Redirect sends the packet to the given port of the machine itself.
func Redirect(port uint16) Verdict {
	return Verdict{exprs: []expr.Any{
		&expr.Immediate{Register: 1, Data: binaryutil.BigEndian.PutUint16(port)},
		&expr.Redir{RegisterProtoMin: 1},
	}}
}
