package link

import (
	"encoding/binary"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Carrying returns the indexes of the devices of the calling thread's namespace that are up, have a
// carrier, and pass packets. The kernel notices a new or lost carrier with a delay of up to a
// second. Until then a device without a carrier may be reported as running, and one with a carrier
// may drop packets.
func Carrying() (map[int]bool, error) {
	msgs, err := rawDump(unix.RTM_GETLINK, linkRequest(unix.AF_UNSPEC, skipCounts))
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	out := map[int]bool{}
	for _, b := range msgs {
		yes, err := carries(b)
		if err != nil {
			return nil, fmt.Errorf("list links: %w", err)
		}
		if yes {
			out[indexOf(b)] = true
		}
	}
	return out, nil
}

func carries(b []byte) (bool, error) {
	const both = unix.IFF_RUNNING | unix.IFF_LOWER_UP
	s, err := parseLink(b)
	if err != nil || binary.NativeEndian.Uint32(b[8:])&both != both {
		return false, err
	}
	f, err := fieldsOf(b, ifInfo)
	state := f[unix.IFLA_OPERSTATE]
	// The state of a veth or netkit is unknown only until the kernel has noticed the carrier.
	return !s.Pair() || len(state) == 1 && state[0] != netlink.OperUnknown, err
}
