package nft

import (
	"encoding/binary"
	"net"
	"net/netip"

	"github.com/google/nftables/expr"
	"github.com/google/nftables/xt"

	"github.com/bridgetoll/bridgetoll/internal/firewall"
)

// verdict handles expressions that decide.
func (r *reader) verdict(e expr.Any) bool {
	switch e := e.(type) {
	case *expr.Verdict:
		return r.plain(e)
	case *expr.Reject:
		r.rule.Verdict = firewall.Reject
	case *expr.Masq:
		r.rule.Verdict = firewall.Masquerade
	case *expr.Redir:
		r.rule.Verdict, r.rule.To = firewall.DNAT, netip.AddrPortFrom(netip.Addr{}, r.port(e.RegisterProtoMin))
	case *expr.NAT:
		r.nat(e)
	case *expr.Lookup:
		r.lookup(e)
	case *expr.Target:
		return r.xtTarget(e)
	default:
		return false
	}
	return true
}

func (r *reader) plain(e *expr.Verdict) (known bool) {
	r.rule.Verdict, known = verdictOf(e.Kind)
	r.rule.Chain = e.Chain
	return known
}

func verdictOf(kind expr.VerdictKind) (v firewall.Verdict, known bool) {
	v, known = map[expr.VerdictKind]firewall.Verdict{expr.VerdictAccept: firewall.Accept, expr.VerdictDrop: firewall.Drop,
		expr.VerdictReturn: firewall.Return, expr.VerdictJump: firewall.Jump, expr.VerdictGoto: firewall.Goto,
		expr.VerdictContinue: firewall.Continue}[kind]
	return v, known
}

func (r *reader) nat(e *expr.NAT) {
	if e.Type != expr.NATTypeDestNAT {
		r.rule.Verdict = firewall.Masquerade
		return
	}
	r.rule.Verdict = firewall.DNAT
	a, _ := netip.AddrFromSlice(r.data[slot(e.RegAddrMin)])
	if e.RegAddrMin != 0 && !a.IsValid() {
		r.unread("an address from a map")
	}
	r.rule.To = netip.AddrPortFrom(a, r.port(e.RegProtoMin))
}

// port is the constant in a register; 0 if there is none.
func (r *reader) port(reg uint32) uint16 {
	if b := r.data[slot(reg)]; reg != 0 && len(b) >= 2 {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

// xtMatch reads iptables' own matches, which older iptables-nft writes.
func (r *reader) xtMatch(e *expr.Match) bool {
	switch info := e.Info.(type) {
	case *xt.AddrTypeV1:
		r.rule.SrcLocal = typeOf(info.Source, info.Flags&1 != 0)
		r.rule.DstLocal = typeOf(info.Dest, info.Flags&2 != 0)
		return (info.Source|info.Dest)&^uint16(xt.AddrTypeLocal) == 0 && info.Flags&^3 == 0
	case *xt.Tcp:
		if info.Option != 0 || info.FlagsMask != 0 || info.InvFlags&^xt.TcpInvDestPorts != 0 {
			return false
		}
		r.xtPorts("tcp", info.DstPorts, info.InvFlags&xt.TcpInvDestPorts != 0)
		return anyPort(info.SrcPorts)
	case *xt.Udp:
		const invertDst = 2
		r.xtPorts("udp", info.DstPorts, info.InvFlags&invertDst != 0)
		return anyPort(info.SrcPorts)
	case *xt.ConntrackMtinfo3:
		return r.xtState(info.MatchFlags, info.InvertFlags, info.StateMask)
	case *xt.ConntrackMtinfo2:
		return r.xtState(info.MatchFlags, info.InvertFlags, info.StateMask)
	}
	if e.Name == "comment" {
		return true
	}
	r.unread(e.Name)
	return true
}

func typeOf(mask uint16, not bool) firewall.Local {
	if mask&uint16(xt.AddrTypeLocal) == 0 {
		return firewall.Any
	}
	return owner(not)
}

func (r *reader) xtPorts(proto string, ports [2]uint16, not bool) {
	r.rule.Proto = proto
	if !anyPort(ports) {
		r.rule.Ports = firewall.Ports{Low: ports[0], High: ports[1], Not: not}
	}
}

func anyPort(ports [2]uint16) bool { return ports[0] == 0 && (ports[1] == 0xffff || ports[1] == 0) }

func (r *reader) xtState(match, invert, mask uint16) bool {
	const stateNew = 1 << 3 // XT_CONNTRACK_STATE_BIT(IP_CT_NEW)
	r.rule.NotNew = (mask&stateNew != 0) == (invert&uint16(xt.ConntrackState) != 0)
	return match&^uint16(xt.ConntrackState|xt.ConntrackStateAlias) == 0
}

func (r *reader) xtTarget(e *expr.Target) bool {
	switch e.Name {
	case "DNAT":
		r.rule.Verdict = firewall.DNAT
		info, ok := e.Info.(*xt.NatRange2)
		if !ok {
			if info1, old := e.Info.(*xt.NatRange); old {
				info, ok = &xt.NatRange2{NatRange: *info1}, true
			}
		}
		if !ok {
			return false
		}
		r.rule.To = netip.AddrPortFrom(addr(info.MinIP, r.six), info.MinPort)
	case "MASQUERADE", "SNAT":
		r.rule.Verdict = firewall.Masquerade
	case "REJECT":
		r.rule.Verdict = firewall.Reject
	case "LOG", "NFLOG", "MARK", "CONNMARK", "CHECKSUM", "CT":
	default:
		r.rule.Verdict = firewall.Jump
		r.unread(e.Name)
	}
	return true
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
