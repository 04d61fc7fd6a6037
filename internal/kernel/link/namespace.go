package link

import (
	"fmt"

	"github.com/vishvananda/netlink"
)

// NamespaceID returns the calling namespace's number, from 0 on, for the namespace of process pid,
// or -1 if no device of the one has its other end or parent in the other.
func NamespaceID(pid int) (int, error) {
	id, err := netlink.GetNetNsIdByPid(pid)
	if err != nil {
		return -1, fmt.Errorf("number of the network namespace of process %d: %w", pid, err)
	}
	return id, nil
}

// NumberOf returns the calling namespace's number for the namespace of a file descriptor, or -1 if
// it has none.
func NumberOf(fd int) (int, error) {
	id, err := netlink.GetNetNsIdByFd(fd)
	if err != nil {
		return -1, fmt.Errorf("number of a network namespace: %w", err)
	}
	return id, nil
}
