package link

import (
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
			_, _, err := unix.Recvfrom(fd, make([]byte, 1), 0)
			same[i] = same[i] && errors.Is(err, unix.EAGAIN)
		}
		_ = closeAll(nil)
		return same[0], same[1] && same[2]
	}, nil
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
