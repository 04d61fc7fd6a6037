package nft

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/raw"
)

type tableKey struct {
	family uint8
	name   string
}

// tables reports of each table whether it only filters. Others translate addresses, or see packets
// before that: their rules may set the marks by which others translate.
func (s Saved) tables() map[tableKey]bool {
	out := map[tableKey]bool{}
	for _, m := range s.Messages {
		if m.Type != unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWCHAIN || len(m.Data) < headerSize {
			continue
		}
		a, err := decode(m.Data[headerSize:])
		if err != nil {
			continue
		}
		hook, err := decode(a.get(unix.NFTA_CHAIN_HOOK))
		if err != nil || len(hook) == 0 {
			continue
		}
		t := tableKey{m.Data[0], a.text(unix.NFTA_CHAIN_TABLE)}
		only, known := out[t]
		out[t] = (only || !known) && a.text(unix.NFTA_CHAIN_TYPE) == "filter" &&
			int32(hook.number(unix.NFTA_HOOK_PRIORITY)) >= 0
	}
	return out
}

// Sleep lets packets in the calling thread's namespace, which has these rules, pass tables that only
// filter as if they did not exist, until the same thread calls wake.
func (s Saved) Sleep() (wake func() error, err error) {
	set := func(flags uint32) error {
		var parts []part
		for t, filters := range s.tables() {
			ip := t.family == unix.NFPROTO_IPV4 || t.family == unix.NFPROTO_IPV6 ||
				t.family == unix.NFPROTO_INET
			if filters && ip {
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
	return func() error { return set(0) }, set(unix.NFT_TABLE_F_DORMANT)
}

// Words calls f for all numbers of 16 bits in rules and sets that Sleep leaves awake, among them
// their ports.
func (s Saved) Words(f func(uint16)) {
	filters := s.tables()
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
