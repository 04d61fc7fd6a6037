package nft

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/build/kernel/link"
)

// Follow tells, in done's time, that rules of the calling thread's network namespace
// changed: those of nftables and of iptables-nft. Old iptables' (iptables-legacy) are not
// told of. Changes that come faster than they are read are told of once. The channel is closed
// when the kernel tells no more.
func Follow(done <-chan struct{}) (<-chan struct{}, error) {
	out, err := link.Messages(done, unix.NETLINK_NETFILTER, unix.NFNLGRP_NFTABLES)
	if err != nil {
		return nil, fmt.Errorf("follow rules: %w", err)
	}
	return out, nil
}
