package link

import (
	"fmt"

	"github.com/vishvananda/netlink"
)

// SetMaxSize sets the largest packet, in bytes, that the stack gives the device to segment and
// that GRO makes of what it receives, over IPv4 and IPv6, and reads them back: a kernel before
// 6.3 ignores the attributes of IPv4.
func SetMaxSize(name string, bytes int) error {
	what := fmt.Sprintf("set gso_max_size and gro_max_size of %s to %d", name, bytes)
	err := change(name, what, func(l netlink.Link) error {
		for _, set := range []func(netlink.Link, int) error{
			netlink.LinkSetGSOMaxSize, netlink.LinkSetGROMaxSize, netlink.LinkSetGSOIPv4MaxSize, netlink.LinkSetGROIPv4MaxSize,
		} {
			if err := set(l, bytes); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	sizes, err := MaxSizes(name)
	if err != nil {
		return err
	}
	for _, size := range sizes {
		if size != uint32(bytes) {
			return fmt.Errorf("%s: %w", what, ErrKept)
		}
	}
	return nil
}

// ErrKept says that the kernel took a setting and did not set it: it does not know it.
var ErrKept = fmt.Errorf("the kernel kept what it had")

// MaxSizes are the device's gso_max_size, gro_max_size, gso_ipv4_max_size and
// gro_ipv4_max_size, in bytes.
func MaxSizes(name string) ([4]uint32, error) {
	l, err := byName(name)
	if err != nil {
		return [4]uint32{}, err
	}
	a := l.Attrs()
	return [4]uint32{a.GSOMaxSize, a.GROMaxSize, a.GSOIPv4MaxSize, a.GROIPv4MaxSize}, nil
}
