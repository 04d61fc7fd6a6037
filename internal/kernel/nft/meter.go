package nft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Meter counts connections by rules in a table of its own. The rules do not change packets. The
// kernel removes the table when the Meter is closed or the process ends.
type Meter struct {
	family Family
	table  string
	fd     int
}

const (
	meterChain = "connections"
	ownedTable = 2 // NFT_TABLE_F_OWNER, from Linux 5.12 on
)

// NewMeter adds the table to the calling thread's namespace. Its rules see the first packet of each
// connection, after DNAT and before SNAT. The caller closes the Meter.
func NewMeter(f Family, table string, rules [][]Match) (*Meter, error) {
	control, err := newTransactor()
	if err != nil {
		return nil, err
	}
	m := &Meter{f, table, control.fd}
	parts, err := m.parts(rules)
	if err == nil {
		var refused map[int]error
		refused, err = control.send(parts)
		for _, why := range refused {
			err = errors.Join(err, why)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("count connections by nftables: %w", err), m.Close())
	}
	return m, nil
}

// Close removes the table.
func (m *Meter) Close() error { return unix.Close(m.fd) }

// Counts returns the number of connections that each rule counted, in order. The calling thread
// must be in the Meter's namespace.
func (m *Meter) Counts() ([]uint64, error) {
	rules, err := ReadChain(m.family, m.table, meterChain)
	out := make([]uint64, len(rules))
	for i, r := range rules {
		out[i] = r.Packets
	}
	return out, err
}

func (m *Meter) parts(rules [][]Match) ([]part, error) {
	family := byte(m.family.table())
	number := func(n int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }
	name := []byte(meterChain + "\x00")
	// In all messages, attribute 1 is the table's name.
	of := func(kind uint16, attrs ...attribute) part {
		return part{kind: kind, family: family,
			attrs: append(attributes{{1, []byte(m.table + "\x00")}}, attrs...)}
	}
	hook, err := encode(attributes{
		{unix.NFTA_HOOK_HOOKNUM, number(unix.NF_INET_POST_ROUTING)},
		{unix.NFTA_HOOK_PRIORITY, number(int32(*nftables.ChainPriorityNATSource) - 1)}})
	if err != nil {
		return nil, err
	}
	out := []part{of(unix.NFT_MSG_NEWTABLE, attribute{unix.NFTA_TABLE_FLAGS, number(ownedTable)}),
		of(unix.NFT_MSG_NEWCHAIN, attribute{unix.NFTA_CHAIN_NAME, name},
			attribute{unix.NFTA_CHAIN_TYPE, []byte("nat\x00")}, // sees only first packets
			attribute{unix.NFTA_CHAIN_HOOK, hook})}
	for _, match := range rules {
		var list attributes
		for _, e := range (Rule{Match: match}).exprs() {
			b, err := expr.Marshal(family, e)
			if err != nil {
				return nil, err
			}
			list = append(list, attribute{unix.NFTA_LIST_ELEM, b})
		}
		exprs, err := encode(list)
		if err != nil {
			return nil, err
		}
		out = append(out, of(unix.NFT_MSG_NEWRULE, attribute{unix.NFTA_RULE_CHAIN, name},
			attribute{unix.NFTA_RULE_EXPRESSIONS, exprs}))
	}
	return out, nil
}

// Dialled matches packets of connections whose client dialled the address, before any DNAT.
func Dialled(to netip.AddrPort) Match {
	equal := func(data []byte) expr.Any {
		return &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: data}
	}
	return Match{[]expr.Any{
		&expr.Ct{Register: 1, Key: expr.CtKeyDST}, equal(to.Addr().AsSlice()),
		&expr.Ct{Register: 1, Key: expr.CtKeyPROTODST},
		equal(binaryutil.BigEndian.PutUint16(to.Port())),
	}}
}

// Marked matches packets whose mark has all the bits.
func Marked(bits uint32) Match {
	mask := binaryutil.NativeEndian.PutUint32(bits)
	return Match{[]expr.Any{
		&expr.Meta{Key: expr.MetaKeyMARK, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: mask, Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: mask},
	}}
}

// Rewritten matches packets of connections with DNAT.
func Rewritten() Match {
	mask := binaryutil.NativeEndian.PutUint32(dstNAT)
	return Match{[]expr.Any{
		&expr.Ct{Register: 1, Key: expr.CtKeySTATUS},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: mask, Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: mask},
	}}
}

const dstNAT = 1 << 5 // IPS_DST_NAT
