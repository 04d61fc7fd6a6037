package nft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
)

type tableKey struct {
	family uint8
	name   string
}

// filters reports for each table whether it only filters IP packets. The other tables have NAT, or
// see packets before NAT does: their rules may set marks that the rules of NAT match.
func (s Saved) filters() map[tableKey]bool {
	out := map[tableKey]bool{}
	for family, a := range s.each(unix.NFT_MSG_NEWCHAIN) {
		hook, err := decode(a.get(unix.NFTA_CHAIN_HOOK))
		if err != nil || len(hook) == 0 {
			continue
		}
		t := tableKey{family, a.text(unix.NFTA_CHAIN_TABLE)}
		only, known := out[t]
		ip := family == unix.NFPROTO_IPV4 || family == unix.NFPROTO_IPV6 || family == unix.NFPROTO_INET
		out[t] = ip && (only || !known) && a.text(unix.NFTA_CHAIN_TYPE) == "filter" &&
			int32(hook.number(unix.NFTA_HOOK_PRIORITY)) >= 0
	}
	return out
}

// Sleep makes the tables that only filter dormant, so packets pass as if they did not exist, until
// the same thread calls wake. The calling thread's namespace must have these rules. Tables that are
// dormant stay so. The others wake in their order: of chains with the same priority, the kernel
// calls the one first that woke last.
func (s Saved) Sleep() (wake func() error, err error) {
	filters := s.filters()
	set := func(flags uint32) error {
		var parts []part
		for family, a := range s.each(unix.NFT_MSG_NEWTABLE) {
			t := tableKey{family, a.text(unix.NFTA_TABLE_NAME)}
			if filters[t] && a.number(unix.NFTA_TABLE_FLAGS)&tableDormant == 0 {
				parts = append(parts, part{kind: unix.NFT_MSG_NEWTABLE, family: t.family,
					attrs: attributes{{unix.NFTA_TABLE_NAME, []byte(t.name + "\x00")},
						{unix.NFTA_TABLE_FLAGS, binary.BigEndian.AppendUint32(nil, flags)}}})
			}
		}
		if len(parts) == 0 {
			return nil
		}
		control, err := newTransactor()
		if err != nil {
			return err
		}
		refused, err := control.send(parts)
		for _, why := range refused {
			err = errors.Join(err, why)
		}
		return errors.Join(err, unix.Close(control.fd))
	}
	return func() error { return set(0) }, set(tableDormant)
}

// Awake returns the tables, chains, rules and sets that stay active during Sleep, in a form to
// compare: those of two Saved are the same if these differ only in counters and in other tables.
func (s Saved) Awake() (out [][]byte) {
	filters := s.filters()
	counters := []string{"counter", "last"}
	for _, m := range s.Messages {
		if len(m.Data) < headerSize {
			continue
		}
		a, err := decode(m.Data[headerSize:])
		if err == nil && filters[tableKey{m.Data[0], a.text(unix.NFTA_TABLE_NAME)}] {
			continue
		}
		what := binary.BigEndian.AppendUint16(nil, m.Type)
		switch {
		case err != nil:
			what = append(what, m.Data...)
		case m.Type&0xff == unix.NFT_MSG_NEWRULE:
			what = append(what, m.Data[0])
			what = fmt.Appendf(what, "%q", []string{a.text(unix.NFTA_RULE_TABLE),
				a.text(unix.NFTA_RULE_CHAIN)})
			for _, e := range expressions(a) {
				if !slices.Contains(counters, e.name) {
					what = fmt.Appendf(what, " %s %q", e.name, e.list.data)
				}
			}
		case m.Type&0xff == unix.NFT_MSG_NEWCHAIN:
			what = append(what, m.Data[0])
			for _, x := range a {
				if x.kind != unix.NFTA_CHAIN_COUNTERS {
					what = fmt.Appendf(what, " %d %q", x.kind, x.data)
				}
			}
		default:
			what = append(what, m.Data...)
		}
		out = append(out, what)
	}
	return out
}

// Words calls f for all 16-bit numbers, among them ports, in the rules and sets of tables that
// Sleep leaves active.
func (s Saved) Words(f func(uint16)) {
	filters := s.filters()
	for _, m := range s.Messages {
		rule := m.Type == unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWRULE
		if !rule && m.Type != unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWSETELEM ||
			len(m.Data) < headerSize {
			continue
		}
		a, err := decode(m.Data[headerSize:])
		if err != nil || filters[tableKey{m.Data[0], a.text(unix.NFTA_RULE_TABLE)}] {
			continue
		}
		if rule {
			raw.Words(a.get(unix.NFTA_RULE_EXPRESSIONS), f)
		} else {
			raw.Words(a.get(unix.NFTA_SET_ELEM_LIST_ELEMENTS), f)
		}
	}
}
