package link

import (
	"fmt"

	"github.com/vishvananda/netlink"
)

// NamespaceID returns the number by which the calling thread's network namespace knows that of
// process pid, from 0 on; -1: it has none. It has one as soon as a device links the two.
func NamespaceID(pid int) (int, error) {
	id, err := netlink.GetNetNsIdByPid(pid)
	if err != nil {
		return -1, fmt.Errorf("number of the network namespace of process %d: %w", pid, err)
	}
	return id, nil
}
