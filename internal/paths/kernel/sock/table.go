package sock

import (
	"encoding/binary"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Socket is a socket of any process, as `ss` shows it.
type Socket struct {
	Proto         string // "tcp" or "udp"
	Local, Remote netip.AddrPort
	Listening     bool // for udp: bound and not connected
	V6Only        bool // an IPv6 wildcard without IPv4
	Device        uint32
	UID           uint32
	Inode         uint32
	Received      uint64 // payload bytes, for TCP connections
	Sent          uint64
}

const (
	established, closed, listen = 1, 7, 10 // net/tcp_states.h

	attrInfo, attrV6Only = 2, 11 // INET_DIAG_INFO, INET_DIAG_SKV6ONLY

	infoBytesAcked    = 120 // struct tcp_info
	infoBytesReceived = 128
)

// Table lists the listening sockets and the established TCP connections, without privilege.
func Table() ([]Socket, error) {
	tcp, err := list("tcp", unix.IPPROTO_TCP, 1<<established|1<<listen)
	if err != nil {
		return nil, err
	}
	udp, err := list("udp", unix.IPPROTO_UDP, 1<<closed)
	if err != nil {
		return nil, err
	}
	return append(tcp, udp...), nil
}

func list(name string, protocol byte, states uint32) ([]Socket, error) {
	var out []Socket
	for _, family := range families {
		r := request{family: family, protocol: protocol, attributes: 1 << (attrInfo - 1),
			states: states}
		if err := r.dump(func(m []byte) { out = append(out, parseSocket(name, m)) }); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Listeners lists the listening TCP sockets. It needs only TCP's part of sock_diag.
func Listeners() ([]Socket, error) { return list("tcp", unix.IPPROTO_TCP, 1<<listen) }

func parseSocket(proto string, b []byte) Socket {
	id := b[idOffset:]
	addr := func(at []byte) netip.Addr {
		if b[0] == unix.AF_INET {
			return netip.AddrFrom4([4]byte(at[:4]))
		}
		return netip.AddrFrom16([16]byte(at[:16]))
	}
	s := Socket{
		Proto:     proto,
		Local:     netip.AddrPortFrom(addr(id[4:]), binary.BigEndian.Uint16(id)),
		Remote:    netip.AddrPortFrom(addr(id[20:]), binary.BigEndian.Uint16(id[2:])),
		Listening: b[1] == listen || b[1] == closed,
		Device:    binary.NativeEndian.Uint32(id[36:]),
		UID:       binary.NativeEndian.Uint32(b[inodeOffset-4:]),
		Inode:     binary.NativeEndian.Uint32(b[inodeOffset:]),
	}
	attributes, _ := nl.ParseRouteAttr(b[messageSize:])
	for _, a := range attributes {
		switch {
		case a.Attr.Type == attrV6Only:
			s.V6Only = len(a.Value) > 0 && a.Value[0] != 0
		case a.Attr.Type == attrInfo && len(a.Value) >= infoBytesReceived+8:
			s.Sent = binary.NativeEndian.Uint64(a.Value[infoBytesAcked:])
			s.Received = binary.NativeEndian.Uint64(a.Value[infoBytesReceived:])
		}
	}
	return s
}

// Inodes returns the sockets that a process has open.
func Inodes(pid int) (map[uint32]bool, error) { return sockets(pid) }
