package link

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Follow sends to the returned channel when devices or bridge ports change, until done is closed.
// The channel is closed if the kernel ends the reports; some changes may then have been missed.
func Follow(done <-chan struct{}) (<-chan struct{}, error) {
	updates := make(chan netlink.LinkUpdate, 64)
	lost := make(chan struct{}, 1)
	err := netlink.LinkSubscribeWithOptions(
		updates, done, netlink.LinkSubscribeOptions{ListExisting: true,
			ErrorCallback: func(error) { notify(lost) }})
	if err != nil {
		return nil, fmt.Errorf("follow links: %w", err)
	}
	out := make(chan struct{}, 1)
	go func() {
		defer close(out)
		masters := map[int]int{}
		for {
			select {
			case <-lost:
				notify(out)
			case u, ok := <-updates:
				if !ok {
					return
				}
				a := u.Attrs()
				old, known := masters[a.Index]
				if u.Header.Type == unix.RTM_DELLINK {
					delete(masters, a.Index)
					notify(out)
					continue
				}
				existing := u.Header.Flags&unix.NLM_F_MULTI != 0
				if masters[a.Index] = a.MasterIndex; !existing && (!known || old != a.MasterIndex) {
					notify(out)
				}
			}
		}
	}()
	return out, nil
}

// FollowRules is like Follow for policy rules, queueing disciplines and tc filters.
func FollowRules(done <-chan struct{}) (<-chan struct{}, error) {
	out, err := Messages(done, unix.NETLINK_ROUTE, unix.RTNLGRP_TC, unix.RTNLGRP_IPV4_RULE,
		unix.RTNLGRP_IPV6_RULE)
	if err != nil {
		return nil, fmt.Errorf("follow policy rules: %w", err)
	}
	return out, nil
}

// Messages sends to the returned channel when the kernel sent a message to one of the multicast
// groups of a netlink protocol, until done is closed. The channel is closed if the kernel ends the
// reports.
func Messages(done <-chan struct{}, protocol int, groups ...uint) (<-chan struct{}, error) {
	s, err := nl.Subscribe(protocol, groups...)
	if err != nil {
		return nil, err
	}
	go func() {
		<-done
		s.Close()
	}()
	out := make(chan struct{}, 1)
	go func() {
		defer close(out)
		for {
			// Lost (ENOBUFS) and unreadable (EINVAL) messages count as a change.
			if _, _, err := s.Receive(); err != nil && !errors.Is(err, unix.ENOBUFS) &&
				!errors.Is(err, unix.EINVAL) {
				return
			}
			notify(out)
		}
	}()
	return out, nil
}

func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
