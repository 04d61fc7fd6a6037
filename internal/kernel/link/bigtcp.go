package link

import (
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// SetMaxSize sets the size in bytes of the largest packets that the stack gives the device to
// segment and that GRO makes. It returns an error if the kernel does not adopt the size.
func SetMaxSize(name string, bytes int) error {
	what := fmt.Sprintf("set gso_max_size and gro_max_size of %s to %d", name, bytes)
	all := uint32(bytes)
	err := change(name, what, func(l netlink.Link) error {
		return setSizes(l.Attrs().Index, Sizes{all, all, all, all})
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
			return fmt.Errorf("%s: %w", what, errKept)
		}
	}
	return nil
}

var errKept = fmt.Errorf("the kernel kept the old value")

// Sizes are a device's gso_max_size, gro_max_size, gso_ipv4_max_size and gro_ipv4_max_size in
// bytes; the last two are 0 before Linux 6.3.
type Sizes [4]uint32

// Sized is a device with its sizes.
type Sized struct {
	Index int
	Name  string
	Kind  string
	Sizes Sizes
}

// MaxSizes returns the sizes of the named device.
func MaxSizes(name string) (Sizes, error) {
	l, err := byName(name)
	if err != nil {
		return Sizes{}, err
	}
	return sizesOf(l), nil
}

// AllSizes returns the sizes of the namespace's devices.
func AllSizes() ([]Sized, error) {
	links, err := listLinks()
	if err != nil {
		return nil, err
	}
	var out []Sized
	for _, l := range links {
		out = append(out, Sized{l.Attrs().Index, l.Attrs().Name, l.Type(), sizesOf(l)})
	}
	return out, nil
}

func sizesOf(l netlink.Link) Sizes {
	a := l.Attrs()
	return Sizes{a.GSOMaxSize, a.GROMaxSize, a.GSOIPv4MaxSize, a.GROIPv4MaxSize}
}

// SetSizes sets sizes in order until the kernel refuses one. It returns ErrGone if the device does
// not exist.
func SetSizes(index int, s Sizes) error {
	if err := setSizes(index, s); err != nil {
		return fmt.Errorf("set gso_max_size and gro_max_size of link number %d: %w", index, err)
	}
	return nil
}

// setSizes sets all sizes in one message, so that they change at once. gso_max_size and
// gro_max_size also change the sizes for IPv4, so these come last in the message.
func setSizes(index int, s Sizes) error {
	req := nl.NewNetlinkRequest(unix.RTM_SETLINK, unix.NLM_F_ACK)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(index)
	req.AddData(msg)
	for i, attr := range []int{unix.IFLA_GSO_MAX_SIZE, unix.IFLA_GRO_MAX_SIZE,
		unix.IFLA_GSO_IPV4_MAX_SIZE, unix.IFLA_GRO_IPV4_MAX_SIZE} {
		req.AddData(nl.NewRtAttr(attr, nl.Uint32Attr(s[i])))
	}
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// ErrGone means that the device no longer exists.
var ErrGone error = unix.ENODEV
