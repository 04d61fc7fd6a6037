package nft

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
)

// Follow sends to the returned channel when rules of nftables or iptables-nft change, until done is
// closed. It does not see iptables-legacy. The channel is closed if the kernel ends the reports.
func Follow(done <-chan struct{}) (<-chan struct{}, error) {
	out, err := link.Messages(done, unix.NETLINK_NETFILTER, unix.NFNLGRP_NFTABLES)
	if err != nil {
		return nil, fmt.Errorf("follow rules: %w", err)
	}
	return out, nil
}
