package link

import (
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Unrouted returns the IPv6 addresses of the calling thread's namespace to which the kernel does
// not yet deliver packets, because it adds the local route a moment after the address. It leaves
// out devices that do not carry packets.
func Unrouted() ([]netip.Addr, error) {
	carrying, err := Carrying()
	if err != nil {
		return nil, err
	}
	six := []byte{unix.AF_INET6}
	addresses, err := rawList("addresses", unix.RTM_GETADDR, unix.RTM_NEWADDR, six,
		unix.SizeofIfAddrmsg, func(b []byte) bool { return b[2]&unix.IFA_F_DADFAILED == 0 })
	if err != nil {
		return nil, err
	}
	routes, err := rawList("routes", unix.RTM_GETROUTE, unix.RTM_NEWROUTE, six, unix.SizeofRtMsg,
		func(b []byte) bool { return nl.DeserializeRtMsg(b).Type == unix.RTN_LOCAL })
	if err != nil {
		return nil, err
	}
	type place struct {
		addr  netip.Addr
		index int
	}
	routed := map[place]bool{}
	for _, m := range routes {
		f, err := fieldsOf(m.Data, unix.SizeofRtMsg)
		if err != nil {
			return nil, err
		}
		to, _ := netip.AddrFromSlice(f[unix.RTA_DST])
		routed[place{to, int(f.number(unix.RTA_OIF))}] = true
	}
	const loopback = 1 // before Linux 4.19, the device of all local routes
	var out []netip.Addr
	for _, m := range addresses {
		a, ok := ParseAddress(m)
		addr := a.Prefix.Addr()
		if ok && carrying[a.Index] && !routed[place{addr, a.Index}] &&
			!routed[place{addr, loopback}] {
			out = append(out, addr)
		}
	}
	return out, nil
}
