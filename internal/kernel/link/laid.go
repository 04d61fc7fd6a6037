package link

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// laidBy marks toll's routes. In iproute2's rt_protos the number is free.
const laidBy netlink.RouteProtocol = 116

// ErrTaken means that the machine already has a route to a part of the prefix.
var ErrTaken = errors.New("it has a route into that network already")

// Laid is a route to a prefix. Its gateway is Via; without Via, the destinations are neighbours at
// Device.
type Laid struct {
	To     netip.Prefix `json:"to"`
	Via    netip.Addr   `json:"via,omitzero"`
	Device string       `json:"device,omitempty"`
}

// Valid reports whether the route is complete and not a default route.
func (l Laid) Valid() bool {
	if !l.To.IsValid() || l.To != l.To.Masked() || l.To.Bits() == 0 {
		return false
	}
	if l.Device != "" {
		return !l.Via.IsValid()
	}
	return l.Via.IsValid() && l.Via.Is4() == l.To.Addr().Is4()
}

// Neighbour returns the gateway's address or, without one, the device.
func (l Laid) Neighbour() string {
	if l.Device != "" {
		return l.Device
	}
	return l.Via.String()
}

// Lay adds the route, marked as toll's. It returns ErrTaken if part of an IPv4 prefix, or exactly
// this IPv6 prefix, already has a route that is not a default route.
func (l Laid) Lay() error {
	what := fmt.Sprintf("add route to %s by %s", l.To, l.Neighbour())
	if l.To.Addr().Is4() {
		used, err := Used()
		if err != nil {
			return err
		}
		for _, u := range used {
			if u.Overlaps(l.To) {
				return fmt.Errorf("%s: %w (%s)", what, ErrTaken, u)
			}
		}
	}
	r, err := l.route()
	if err == nil {
		err = netlink.RouteAdd(r)
	}
	if errors.Is(err, unix.EEXIST) {
		err = ErrTaken
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Lift removes the route if Lay added it, and reports whether it existed. Routes of other programs
// to the prefix stay.
func (l Laid) Lift() (was bool, err error) {
	r, err := l.route()
	if err == nil {
		err = netlink.RouteDel(r)
	}
	if errors.Is(err, unix.ESRCH) || errors.As(err, &netlink.LinkNotFoundError{}) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("remove route to %s by %s: %w", l.To, l.Neighbour(), err)
	}
	return true, nil
}

func (l Laid) route() (*netlink.Route, error) {
	r := &netlink.Route{Dst: ipNet(l.To), Gw: l.Via.AsSlice(), Protocol: laidBy}
	if l.Device == "" {
		return r, nil
	}
	device, err := netlink.LinkByName(l.Device)
	if err != nil {
		return nil, err
	}
	r.LinkIndex, r.Scope = device.Attrs().Index, netlink.SCOPE_LINK
	return r, nil
}
