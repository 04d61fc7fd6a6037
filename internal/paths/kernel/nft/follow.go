package nft

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/link"
)

// Follow reports, until done is closed, that rules of nftables or iptables-nft changed in the
// calling thread's network namespace. It does not report those of iptables-legacy. Changes that
// come faster than they are read are reported once. The channel is closed when the kernel reports
// no more.
func Follow(done <-chan struct{}) (<-chan struct{}, error) {
	out, err := link.Messages(done, unix.NETLINK_NETFILTER, unix.NFNLGRP_NFTABLES)
	if err != nil {
		return nil, fmt.Errorf("follow rules: %w", err)
	}
	return out, nil
}
