package link

import (
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Still begins to watch the devices, addresses, neighbours, routes, policy rules and IPsec of the
// calling thread's namespace. The returned function reports whether none has changed since; the
// kernel may tell of a device late, or when nothing has changed, so it reports separately whether
// it told of devices. It does not tell of IPv4 routes that a device takes along when it goes down.
// The caller calls the function once, from any thread, which closes the sockets.
func Still() (still func() (devices, others bool), err error) {
	var fds []int
	closeAll := func(err error) error {
		for _, fd := range fds {
			err = errors.Join(err, unix.Close(fd))
		}
		return err
	}
	others := slices.DeleteFunc(slices.Clone(watchGroups), func(g int) bool {
		return g == unix.RTNLGRP_LINK
	})
	for _, groups := range [][]int{{unix.RTNLGRP_LINK}, append(others, unix.RTNLGRP_NEIGH,
		unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_MDB, unix.RTNLGRP_NEXTHOP,
		unix.RTNLGRP_BRVLAN)} {
		fd, err := hear(unix.NETLINK_ROUTE, groups...)
		if err != nil {
			return nil, closeAll(err)
		}
		fds = append(fds, fd)
	}
	ipsec := hasIPsec()
	if ipsec {
		fd, err := hear(unix.NETLINK_XFRM, nl.XFRMNLGRP_SA, nl.XFRMNLGRP_POLICY)
		if err != nil {
			return nil, closeAll(err)
		}
		fds = append(fds, fd)
	}
	return func() (devices, others bool) {
		same := []bool{true, ipsec == hasIPsec(), true}
		for i, fd := range fds {
			same[i] = same[i] && nothingNew(fd, i == 1)
		}
		_ = closeAll(nil)
		return same[0], same[1] && same[2]
	}, nil
}

// nothingNew reports whether a socket was told of no changes. With neighbours, those for multicast
// are none: the kernel adds and removes them by itself, up to a second after a device goes up.
func nothingNew(fd int, neighbours bool) bool {
	for b := make([]byte, 1<<16); ; {
		switch n, _, err := unix.Recvfrom(fd, b, 0); {
		case errors.Is(err, unix.EINTR), err == nil && neighbours && forMulticast(b[:n]):
		default:
			return errors.Is(err, unix.EAGAIN)
		}
	}
}

// forMulticast reports whether a message is about a neighbour that stands for a multicast group.
func forMulticast(b []byte) bool {
	if len(b) < unix.SizeofNlMsghdr+unix.SizeofNdMsg {
		return false
	}
	if t := binary.NativeEndian.Uint16(b[4:]); t != unix.RTM_NEWNEIGH && t != unix.RTM_DELNEIGH {
		return false
	}
	n := neighbourOf(b[unix.SizeofNlMsghdr:])
	return n.state&unix.NUD_NOARP != 0 && n.kind == unix.RTN_MULTICAST
}

// hasIPsec reports whether the kernel's interface to IPsec is there. A socket would load its
// module.
func hasIPsec() bool {
	all, _ := os.ReadFile("/proc/net/netlink") // of any namespace: the kernel has a socket in each
	for line := range strings.Lines(string(all)) {
		f := strings.Fields(line)
		if len(f) > 1 && f[1] == "6" { // NETLINK_XFRM
			return true
		}
	}
	return false
}
