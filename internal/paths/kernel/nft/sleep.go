package nft

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"
)

// Sleep lets packets in the calling thread's namespace pass the tables that only filter, as if
// these did not exist, until the same thread calls wake. Tables that translate addresses, or see
// packets before that, stay: their rules may set the marks by which others translate.
func Sleep() (wake func() error, err error) {
	c, err := nftables.New()
	if err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	chains, err := c.ListChains()
	if err != nil && !Unsupported(err) {
		return nil, fmt.Errorf("list nftables chains: %w", err)
	}
	filters := map[nftables.Table]bool{}
	for _, ch := range chains {
		t := nftables.Table{Name: ch.Table.Name, Family: ch.Table.Family}
		switch t.Family {
		case nftables.TableFamilyIPv4, nftables.TableFamilyIPv6, nftables.TableFamilyINet:
		default:
			continue
		}
		if ch.Hooknum == nil || ch.Priority == nil {
			continue
		}
		only, known := filters[t]
		filters[t] = ch.Type == nftables.ChainTypeFilter &&
			*ch.Priority >= *nftables.ChainPriorityFilter && (only || !known)
	}
	set := func(flags uint32) error {
		var parts []part
		for t, only := range filters {
			if only {
				parts = append(parts, part{kind: unix.NFT_MSG_NEWTABLE, family: uint8(t.Family),
					attrs: attributes{{unix.NFTA_TABLE_NAME, []byte(t.Name + "\x00")},
						{unix.NFTA_TABLE_FLAGS, binary.BigEndian.AppendUint32(nil, flags)}}})
			}
		}
		control, err := newTransactor()
		if err != nil || len(parts) == 0 {
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
