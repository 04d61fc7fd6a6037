package nft

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
)

// Attached is a chain at a hook outside of IP, which Read leaves out: of netdev, bridge, or inet's
// ingress.
type Attached struct {
	Name    string   // "chain netdev table name"
	Devices []string // nil: the ports of all bridges
}

// ListAttached lists the chains of netdev, bridge and inet's ingress that have rules or a dropping
// policy.
func ListAttached() ([]Attached, error) {
	c, err := raw.Dial(unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	defer func() { _ = c.Close() }()
	l := lister{conn: c, rules: map[string]*ruleList{}}
	err = l.each(unix.NFT_MSG_GETCHAIN, "chains", l.chain)
	if Unsupported(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	l.out = slices.DeleteFunc(l.out, func(x Listed) bool {
		return !strings.Contains(x.Text, " policy ") ||
			len(x.Devices) == 0 && !strings.HasPrefix(x.Name, "chain bridge ")
	})
	if len(l.out) == 0 {
		return nil, nil
	}
	ruled := map[string]bool{}
	err = l.each(unix.NFT_MSG_GETRULE, "rules", func(family byte, a attributes) {
		ruled[chainOf(family, a)] = true
	})
	if err != nil {
		return nil, err
	}
	var out []Attached
	for _, x := range l.out {
		if ruled[x.Name] || strings.Contains(x.Text, " policy drop ") {
			out = append(out, Attached{x.Name, x.Devices})
		}
	}
	return out, nil
}

// Hooks reports whether the chain sees the frames of a device.
func (a Attached) Hooks(device string) bool { return Listed{Devices: a.Devices}.Hooks(device) }

// Follow sends to the returned channel when rules of nftables or iptables-nft change, until done is
// closed. It does not see iptables-legacy. The channel is closed if the kernel ends the reports.
func Follow(done <-chan struct{}) (<-chan struct{}, error) {
	out, err := link.Messages(done, unix.NETLINK_NETFILTER, unix.NFNLGRP_NFTABLES)
	if err != nil {
		return nil, fmt.Errorf("follow rules: %w", err)
	}
	return out, nil
}
