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
// calling thread's namespace. The returned function reports whether none has changed since. The
// caller calls it once, from any thread, which closes the sockets.
func Still() (still func() bool, err error) {
	fd, err := hear(unix.NETLINK_ROUTE, slices.Concat(watchGroups, []int{unix.RTNLGRP_NEIGH,
		unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_MDB, unix.RTNLGRP_NEXTHOP,
		unix.RTNLGRP_BRVLAN})...)
	if err != nil {
		return nil, err
	}
	fds := []int{fd}
	ipsec := hasIPsec()
	if ipsec {
		if fd, err = hear(unix.NETLINK_XFRM, nl.XFRMNLGRP_SA, nl.XFRMNLGRP_POLICY); err != nil {
			return nil, errors.Join(err, unix.Close(fds[0]))
		}
		fds = append(fds, fd)
	}
	return func() bool {
		same := ipsec == hasIPsec()
		for _, fd := range fds {
			_, _, err := unix.Recvfrom(fd, make([]byte, 1), 0)
			_ = unix.Close(fd)
			same = same && errors.Is(err, unix.EAGAIN)
		}
		return same
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
