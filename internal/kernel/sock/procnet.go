package sock

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/prometheus/procfs"
)

// ListenersOf lists the listening sockets in the network namespace of process pid. /proc/PID/net
// needs no privilege, but does not show whether an IPv6 wildcard accepts IPv4.
func ListenersOf(pid int) ([]Socket, error) {
	all, err := inProc(strconv.Itoa(pid), "tcp", "udp")
	return slices.DeleteFunc(all, func(s Socket) bool { return !s.Listening }), err
}

// Datagram lists the UDP sockets of the calling thread's network namespace. It needs no sock_diag.
func Datagram() ([]Socket, error) { return inProc("thread-self", "udp") }

// Bound reports whether a "tcp" or "udp" port is bound in the calling thread's network namespace;
// TCP needs a listening socket.
func Bound(proto string, port uint16) (bool, error) {
	// /proc/net/tcp lists all connections, which is too slow for polling
	if proto == "tcp" {
		if all, err := Listeners(); err == nil {
			return slices.ContainsFunc(all, func(s Socket) bool {
				return s.Local.Port() == port
			}), nil
		}
	}
	all, err := inProc("thread-self", proto)
	return slices.ContainsFunc(all, func(s Socket) bool {
		return s.Local.Port() == port && (proto == "udp" || s.Listening)
	}), err
}

func inProc(dir string, protos ...string) ([]Socket, error) {
	p, err := procfs.NewFS("/proc/" + dir)
	if err != nil {
		return nil, fmt.Errorf("read sockets: %w", err)
	}
	var out []Socket
	for _, proto := range protos {
		four, six := tables(p, proto)
		lines, err := four()
		if err != nil {
			return nil, fmt.Errorf("read sockets: %w", err)
		}
		more, err := six()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read sockets: %w", err)
		}
		for _, l := range slices.Concat(lines, more) {
			out = append(out, Socket{Proto: proto, Local: addrPort(l.LocalAddr, l.LocalPort),
				Remote:    addrPort(l.RemAddr, l.RemPort),
				Listening: proto == "tcp" && l.St == listen || proto == "udp" && l.St == closed,
				Inode:     uint32(l.Inode), UID: uint32(l.UID)})
		}
	}
	return out, nil
}

func tables(p procfs.FS, proto string) (four, six func() (procfs.NetIPSocket, error)) {
	if proto == "udp" {
		return as(p.NetUDP), as(p.NetUDP6)
	}
	// With netlink, this thread would have to enter the namespace.
	//lint:ignore SA1019 see above
	return as(p.NetTCP), as(p.NetTCP6) //nolint:staticcheck // see above
}

func as[T procfs.NetTCP | procfs.NetUDP](read func() (T,
	error)) func() (procfs.NetIPSocket, error) {
	return func() (procfs.NetIPSocket, error) {
		lines, err := read()
		return procfs.NetIPSocket(lines), err
	}
}

func addrPort(ip net.IP, port uint64) netip.AddrPort {
	a, _ := netip.AddrFromSlice(ip)
	return netip.AddrPortFrom(a, uint16(port))
}
