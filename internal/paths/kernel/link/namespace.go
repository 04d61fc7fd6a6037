package link

import (
	"fmt"

	"github.com/vishvananda/netlink"
)

// NamespaceID returns the number, from 0 on, by which the calling thread's network namespace knows
// that of process pid, or -1. It has one as soon as a device links the two.
func NamespaceID(pid int) (int, error) {
	id, err := netlink.GetNetNsIdByPid(pid)
	if err != nil {
		return -1, fmt.Errorf("number of the network namespace of process %d: %w", pid, err)
	}
	return id, nil
}
