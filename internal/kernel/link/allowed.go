package link

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// linux/wireguard.h
const (
	wgGetDevice     = 0
	wgDeviceName    = 2
	wgDevicePeers   = 8
	wgPeerAllowed   = 9
	wgAllowedAddr   = 2
	wgAllowedLength = 3
)

// Allowed returns the networks from which peers of a WireGuard device may send packets, and to
// which it sends them. It needs CAP_NET_ADMIN.
func Allowed(device string) (out []netip.Prefix, err error) {
	family, err := netlink.GenlFamilyGet("wireguard")
	if err != nil {
		return nil, fmt.Errorf("find generic netlink family wireguard: %w", err)
	}
	req := nl.NewNetlinkRequest(int(family.ID), unix.NLM_F_DUMP)
	req.AddData(&nl.Genlmsg{Command: wgGetDevice, Version: 1})
	req.AddData(nl.NewRtAttr(wgDeviceName, nl.ZeroTerminated(device)))
	answers, err := req.Execute(unix.NETLINK_GENERIC, 0)
	for _, b := range answers {
		if err == nil && len(b) >= nl.SizeofGenlmsg {
			err = allowedIn(b[nl.SizeofGenlmsg:], &out)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list the peers of %s: %w", device, err)
	}
	return out, nil
}

// allowedIn adds the networks in a device's attributes, which one or more messages have.
func allowedIn(b []byte, out *[]netip.Prefix) error {
	network := func(_ uint16, b []byte) error {
		var a netip.Addr
		bits := -1
		err := eachAttr(b, func(kind uint16, v []byte) error {
			switch {
			case kind == wgAllowedAddr:
				a, _ = netip.AddrFromSlice(v)
			case kind == wgAllowedLength && len(v) == 1:
				bits = int(v[0])
			}
			return nil
		})
		if p := netip.PrefixFrom(a, bits); p.IsValid() {
			*out = append(*out, p)
		}
		return err
	}
	peer := func(_ uint16, b []byte) error {
		return eachAttr(b, func(kind uint16, v []byte) error {
			if kind == wgPeerAllowed {
				return eachAttr(v, network)
			}
			return nil
		})
	}
	return eachAttr(b, func(kind uint16, v []byte) error {
		if kind == wgDevicePeers {
			return eachAttr(v, peer)
		}
		return nil
	})
}
