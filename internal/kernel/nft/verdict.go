package nft

import (
	"encoding/binary"
	"net"
	"net/netip"

	"github.com/google/nftables/expr"
	"github.com/google/nftables/xt"

	"github.com/bridgetoll/bridgetoll/internal/kernel/firewall"
)

func (r *reader) verdict(e any) bool {
	switch e := e.(type) {
	case *expr.Verdict:
		return r.plain(e)
	case *expr.Reject:
		r.rule.Verdict = firewall.Reject
	case *expr.Masq:
		r.rule.Verdict = firewall.Masquerade
	case *expr.Redir:
		r.rule.Verdict = firewall.DNAT
		r.to(netip.Addr{}, e.RegisterProtoMin, e.RegisterProtoMax)
	case *expr.NAT:
		r.nat(e)
	case *expr.Lookup:
		r.rule.Set = true
		if e.IsDestRegSet {
			r.regs[slot(e.DestRegister)] = register{by: nameOf(e)}
		}
	case *expr.Cmp:
		if !r.compare(e) {
			r.unread(r.regs[slot(e.Register)].by)
		}
	case *expr.Counter:
	case *expr.Match:
		return r.xtMatch(e)
	case *expr.Target:
		return r.xtTarget(e)
	default:
		return false
	}
	return true
}

func (r *reader) plain(e *expr.Verdict) (known bool) {
	r.rule.Verdict, known = map[expr.VerdictKind]firewall.Verdict{
		expr.VerdictAccept: firewall.Accept, expr.VerdictDrop: firewall.Drop,
		expr.VerdictReturn:   firewall.Return,
		expr.VerdictJump:     firewall.Jump,
		expr.VerdictGoto:     firewall.Goto,
		expr.VerdictContinue: firewall.Continue}[e.Kind]
	r.rule.Chain = e.Chain
	return known
}

func (r *reader) nat(e *expr.NAT) {
	if e.Type != expr.NATTypeDestNAT {
		r.rule.Verdict = firewall.Masquerade
		return
	}
	r.rule.Verdict = firewall.DNAT
	a, _ := netip.AddrFromSlice(r.regs[slot(e.RegAddrMin)].data)
	if e.RegAddrMin != 0 && !a.IsValid() || e.RegAddrMax != 0 && e.RegAddrMax != e.RegAddrMin ||
		e.Prefix {
		r.unread("one of several addresses")
	}
	r.to(a, e.RegProtoMin, e.RegProtoMax)
}

// to sets the destination of DNAT. low and high are registers with the ports; 0: no port.
func (r *reader) to(a netip.Addr, low, high uint32) {
	port := uint16(0)
	if low != 0 {
		b := r.regs[slot(low)].data
		if len(b) < 2 || high != 0 && high != low {
			r.unread("one of several ports")
		} else {
			port = binary.BigEndian.Uint16(b)
		}
	}
	r.rule.To = netip.AddrPortFrom(a, port)
}

// Older versions of iptables-nft write iptables' own matches.
func (r *reader) xtMatch(e *expr.Match) bool {
	switch info := e.Info.(type) {
	case *xt.AddrTypeV1:
		return r.xtTypes(info)
	case *xt.Tcp:
		if info.Option != 0 || info.FlagsMask != 0 || info.InvFlags&^xt.TcpInvDestPorts != 0 {
			return false
		}
		r.xtPorts("tcp", info.DstPorts, info.InvFlags&xt.TcpInvDestPorts != 0)
		return anyPort(info.SrcPorts)
	case *xt.Udp:
		const invertDst = 2
		r.xtPorts("udp", info.DstPorts, info.InvFlags&invertDst != 0)
		return anyPort(info.SrcPorts) && info.InvFlags&^invertDst == 0
	}
	if e.Name == "comment" {
		return true
	}
	r.unread(e.Name)
	return true
}

func (r *reader) xtTypes(info *xt.AddrTypeV1) (known bool) {
	const invertSrc, invertDst = 1, 2
	local := func(types uint16, not bool) firewall.Local {
		known = known && (types == 0 || types == uint16(xt.AddrTypeLocal))
		if types == 0 || !known {
			return firewall.Any
		}
		return firewall.Owner(not)
	}
	known = info.Flags&^(invertSrc|invertDst) == 0
	r.rule.SrcLocal = local(info.Source, info.Flags&invertSrc != 0)
	r.rule.DstLocal = local(info.Dest, info.Flags&invertDst != 0)
	return known
}

func (r *reader) xtPorts(proto string, ports [2]uint16, not bool) {
	r.rule.Proto = proto
	if !anyPort(ports) {
		r.rule.Ports = firewall.Ports{Low: ports[0], High: ports[1], Not: not}
	}
}

func anyPort(ports [2]uint16) bool { return ports[0] == 0 && (ports[1] == 0xffff || ports[1] == 0) }

func (r *reader) xtTarget(e *expr.Target) bool {
	switch e.Name {
	case "DNAT", "REDIRECT":
		r.rule.Verdict = firewall.DNAT
		return r.xtTo(e)
	case "MASQUERADE", "SNAT":
		r.rule.Verdict = firewall.Masquerade
	case "REJECT":
		r.rule.Verdict = firewall.Reject
	default:
		r.rule.Verdict, r.rule.Chain = firewall.Jump, e.Name
	}
	return true
}

func (r *reader) xtTo(e *expr.Target) (known bool) {
	var to xt.NatRange
	switch info := e.Info.(type) {
	case *xt.NatRange2:
		to = info.NatRange
	case *xt.NatRange:
		to = *info
	case *xt.NatIPv4MultiRangeCompat:
		if len(*info) != 1 {
			return false
		}
		to = xt.NatRange((*info)[0])
	default:
		return false
	}
	flags := xt.NatRangeFlags(to.Flags)
	var a netip.Addr
	var port uint16
	if flags&xt.NatRangeMapIPs != 0 {
		a = addr(to.MinIP, r.six)
	}
	if flags&xt.NatRangeProtoSpecified != 0 {
		port = to.MinPort
	}
	r.rule.To = netip.AddrPortFrom(a, port)
	return (!a.IsValid() || to.MinIP.Equal(to.MaxIP)) && (port == 0 || to.MinPort == to.MaxPort) &&
		flags&(xt.NatRangeProtoOffset|xt.NatRangeNetmap) == 0
}

func addr(ip net.IP, six bool) netip.Addr {
	b := []byte(ip)
	if !six && len(b) > 4 {
		if b = ip.To4(); b == nil {
			b = ip[:4]
		}
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}
