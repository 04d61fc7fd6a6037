package nft

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Follow tells, in done's time, that rules of the calling thread's network namespace
// changed: those of nftables and of iptables-nft. Old iptables' (iptables-legacy) are not
// told of. Changes that come faster than they are read are told of once. The channel is closed
// when the kernel tells no more.
func Follow(done <-chan struct{}) (<-chan struct{}, error) {
	s, err := nl.Subscribe(unix.NETLINK_NETFILTER, unix.NFNLGRP_NFTABLES)
	if err != nil {
		return nil, fmt.Errorf("follow rules: %w", err)
	}
	go func() {
		<-done
		s.Close()
	}()
	out := make(chan struct{}, 1)
	go func() {
		defer close(out)
		for {
			// There was more than it holds (ENOBUFS), or more than the library reads (EINVAL):
			// a change, too.
			if _, _, err := s.Receive(); err != nil && !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.EINVAL) {
				return
			}
			select {
			case out <- struct{}{}:
			default:
			}
		}
	}()
	return out, nil
}
