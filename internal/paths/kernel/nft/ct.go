package nft

import (
	"encoding/binary"
	"net"

	"github.com/google/nftables/expr"
	"github.com/google/nftables/xt"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/paths/firewall"
)

// connection leaves client ports, and values that later packets change, unknown.
func (r *reader) connection(e *ct) {
	if e.sets {
		if e.key != expr.CtKeyMARK && e.key != expr.CtKeyLABELS && e.key != expr.CtKeySECMARK {
			r.other("a changed connection")
		}
		return
	}
	f := map[expr.CtKey]field{expr.CtKeySTATE: ctState, expr.CtKeySTATUS: ctStatus,
		expr.CtKeyDIRECTION: ctDirection, expr.CtKeyPROTOCOL: ctProtocol}[e.key]
	size := 0
	switch e.key {
	case expr.CtKeySRC, expr.CtKeyDST:
		size = net.IPv4len
		if r.six {
			size = net.IPv6len
		}
	case unix.NFT_CT_SRC_IP, unix.NFT_CT_DST_IP:
		size = net.IPv4len
	case unix.NFT_CT_SRC_IP6, unix.NFT_CT_DST_IP6:
		size = net.IPv6len
	}
	tuples := map[expr.CtKey][2]field{ // of the original direction and of replies
		expr.CtKeySRC:       {ctOrigSrc, ctReplSrc},
		unix.NFT_CT_SRC_IP:  {ctOrigSrc, ctReplSrc},
		unix.NFT_CT_SRC_IP6: {ctOrigSrc, ctReplSrc},
		expr.CtKeyDST:       {ctOrigDst, ctReplDst},
		unix.NFT_CT_DST_IP:  {ctOrigDst, ctReplDst},
		unix.NFT_CT_DST_IP6: {ctOrigDst, ctReplDst},
		expr.CtKeyPROTOSRC:  {unknown, ctReplSport}, expr.CtKeyPROTODST: {ctOrigDport, unknown},
	}
	if both, ok := tuples[e.key]; ok {
		f = both[0]
		if e.reply {
			f = both[1]
		}
	}
	r.put(e.reg, f)
	r.size[slot(e.reg)] = size
}

// conntrack follows xt_conntrack.c.
func (r *reader) conntrack(c *xt.ConntrackMtinfo3) (known bool) {
	const (
		understood = xt.ConntrackState | xt.ConntrackStateAlias | xt.ConntrackStatus |
			xt.ConntrackDirection | xt.ConntrackProto |
			xt.ConntrackOrigSrc | xt.ConntrackOrigDst | xt.ConntrackReplSrc | xt.ConntrackReplDst |
			xt.ConntrackOrigDstPort | xt.ConntrackReplSrcPort
		reply = 1
	)
	has := func(f xt.ConntrackFlags) bool { return xt.ConntrackFlags(c.MatchFlags)&f != 0 }
	not := func(f xt.ConntrackFlags) bool { return xt.ConntrackFlags(c.InvertFlags)&f != 0 }
	known = xt.ConntrackFlags(c.MatchFlags)&^understood == 0
	add := func(l firewall.Lookup) { r.rule.Sets = append(r.rule.Sets, l) }
	if has(xt.ConntrackState) {
		add(firewall.AnyBit(firewall.XtState, uint32(c.StateMask), not(xt.ConntrackState)))
	}
	if has(xt.ConntrackStatus) {
		if uint32(c.StatusMask)&^firewall.KnownStatus != 0 {
			known = false
		} else {
			add(firewall.AnyBit(firewall.Status, uint32(c.StatusMask), not(xt.ConntrackStatus)))
		}
	}
	if has(xt.ConntrackDirection) {
		direction := byte(0)
		if not(xt.ConntrackDirection) {
			direction = reply
		}
		add(firewall.Is(firewall.Direction, firewall.Only([]byte{direction}), false))
	}
	if has(xt.ConntrackProto) {
		add(firewall.Is(firewall.ConnProtocol, firewall.Only([]byte{byte(c.L4Proto)}),
			not(xt.ConntrackProto)))
	}
	return r.connAddresses(c, has, not) && known
}

func (r *reader) connAddresses(c *xt.ConntrackMtinfo3,
	has, not func(xt.ConntrackFlags) bool) (known bool) {
	known = true
	add := func(l firewall.Lookup) { r.rule.Sets = append(r.rule.Sets, l) }
	for _, a := range []struct {
		flag  xt.ConntrackFlags
		field firewall.Field
		ip    net.IP
		mask  net.IPMask
	}{
		{xt.ConntrackOrigSrc, firewall.OrigSrc, c.OrigSrcAddr, c.OrigSrcMask},
		{xt.ConntrackOrigDst, firewall.OrigDst, c.OrigDstAddr, c.OrigDstMask},
		{xt.ConntrackReplSrc, firewall.ReplSrc, c.ReplSrcAddr, c.ReplSrcMask},
		{xt.ConntrackReplDst, firewall.ReplDst, c.ReplDstAddr, c.ReplDstMask},
	} {
		if !has(a.flag) {
			continue
		}
		if _, bits := a.mask.Size(); bits == 0 {
			known = false
			continue
		}
		add(firewall.Is(a.field, maskedRange(a.ip, a.mask), not(a.flag)))
	}
	for _, p := range []struct {
		flag      xt.ConntrackFlags
		field     firewall.Field
		low, high uint16
	}{
		{xt.ConntrackOrigDstPort, firewall.OrigDstPort, c.OrigDstPort, c.OrigDstPortHigh},
		{xt.ConntrackReplSrcPort, firewall.ReplSrcPort, c.ReplSrcPort, c.ReplSrcPortHigh},
	} {
		if has(p.flag) {
			add(firewall.Is(p.field, firewall.Range{
				Low:  binary.BigEndian.AppendUint16(nil, p.low),
				High: binary.BigEndian.AppendUint16(nil, p.high)}, not(p.flag)))
		}
	}
	return known
}

func maskedRange(ip net.IP, mask net.IPMask) firewall.Range {
	low, high := make([]byte, len(ip)), make([]byte, len(ip))
	for i := range ip {
		low[i], high[i] = ip[i]&mask[i], ip[i]|^mask[i]
	}
	return firewall.Range{Low: low, High: high}
}
