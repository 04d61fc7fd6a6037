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
	out := map[int]bool{}
	err := eachLink(func(b []byte) error {
		yes, err := carries(b)
		if yes {
			out[indexOf(b)] = true
		}
		return err
	})
	return out, err
}

// Unnoticed reports whether a device of the calling thread's namespace is up and has a carrier that
// the kernel has not noticed yet, so that it may drop packets; see Carrying.
func Unnoticed() (yes bool, err error) {
	const both = unix.IFF_UP | unix.IFF_LOWER_UP
	err = eachLink(func(b []byte) error {
		passes, err := carries(b)
		yes = yes || !passes && flagsOf(b)&both == both
		return err
	})
	return yes, err
}

func eachLink(do func(b []byte) error) error {
	msgs, err := rawDump(unix.RTM_GETLINK, linkRequest(unix.AF_UNSPEC, skipCounts))
	for _, b := range msgs {
		if err == nil {
			err = do(b)
		}
	}
	if err != nil {
		return fmt.Errorf("list links: %w", err)
	}
	return nil
}

func flagsOf(b []byte) uint32 { return binary.NativeEndian.Uint32(b[8:]) }

func carries(b []byte) (bool, error) {
	const both = unix.IFF_RUNNING | unix.IFF_LOWER_UP
	s, err := parseLink(b)
	if err != nil || flagsOf(b)&both != both {
		return false, err
	}
	f, err := fieldsOf(b, ifInfo)
	state := f[unix.IFLA_OPERSTATE]
	// The state of a veth or netkit is unknown only until the kernel has noticed the carrier.
	return !s.Pair() || len(state) == 1 && state[0] != netlink.OperUnknown, err
}
