package local

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
)

// FreePort returns a port that is free now in the network namespace.
func FreePort(ns *netns.NS, at netip.Addr, udp bool) (port uint16, err error) {
	addr := netip.AddrPortFrom(at, 0).String()
	err = ns.Do(func() error {
		if udp {
			c, err := net.ListenPacket("udp", addr)
			if err != nil {
				return err
			}
			port = uint16(c.LocalAddr().(*net.UDPAddr).Port)
			return c.Close()
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return err
		}
		port = uint16(l.Addr().(*net.TCPAddr).Port)
		return l.Close()
	})
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	return port, nil
}
