package link

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// No other program has this number in iproute2's rt_protos.
const laidBy netlink.RouteProtocol = 116

// ErrTaken means that the machine already has a route to a part of the prefix.
var ErrTaken = errors.New("it has a route into that network already")

// Lay adds a route to the prefix through a neighbour, marked as toll's. It returns ErrTaken if part
// of an IPv4 prefix, or exactly this IPv6 prefix, already has a route that is not a default route.
func Lay(to netip.Prefix, via netip.Addr) error {
	if to.Addr().Is4() {
		used, err := Used()
		if err != nil {
			return err
		}
		for _, u := range used {
			if u.Overlaps(to) {
				return fmt.Errorf("add route to %s by %s: %w (%s)", to, via, ErrTaken, u)
			}
		}
	}
	err := netlink.RouteAdd(laid(to, via))
	if errors.Is(err, unix.EEXIST) {
		err = ErrTaken
	}
	if err != nil {
		return fmt.Errorf("add route to %s by %s: %w", to, via, err)
	}
	return nil
}

// Lift removes a route of Lay, and reports whether it existed. Others' routes to the prefix stay.
func Lift(to netip.Prefix, via netip.Addr) (was bool, err error) {
	err = netlink.RouteDel(laid(to, via))
	if errors.Is(err, unix.ESRCH) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("remove route to %s by %s: %w", to, via, err)
	}
	return true, nil
}

func laid(to netip.Prefix, via netip.Addr) *netlink.Route {
	return &netlink.Route{Dst: ipNet(to), Gw: via.AsSlice(), Protocol: laidBy}
}
