package sock

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Socket is a socket of any process, as `ss` shows it.
type Socket struct {
	Proto         string // "tcp" or "udp"
	Local, Remote netip.AddrPort
	Listening     bool // for udp: bound and not connected
	V6Only        bool // listens on all IPv6 addresses, but not on IPv4 ones
	Device        uint32
	Mark          uint32 // of the packets that it sends; 0 also without CAP_NET_ADMIN
	UID           uint32
	Inode         uint32 // 0: a connection that no process has accepted yet
	Received      uint64 // payload bytes, for TCP connections
	Sent          uint64
	// Waiting is the number of connections that wait to be accepted by a listening TCP socket, at
	// most Backlog+1. Listeners sets Dropped, the number that it has dropped since it was opened,
	// because that many waited or for another reason.
	Waiting, Backlog uint32
	Dropped          uint32
	// Quiet is the time since a TCP connection's last packet from the other side.
	Quiet time.Duration
}

const (
	established, closed, listen = 1, 7, 10 // net/tcp_states.h

	// INET_DIAG_INFO, _SKMEMINFO, _SKV6ONLY, _MARK
	attrInfo, attrMemory, attrV6Only, attrMark = 2, 7, 11, 15

	memoryDrops = 4 * 8 // SK_MEMINFO_DROPS, in bytes

	infoLastDataReceived, infoLastAckReceived = 52, 56 // struct tcp_info, in ms

	infoBytesAcked    = 120
	infoBytesReceived = 128
)

// Table lists the listening sockets and the established TCP connections, without privilege. For the
// connections the kernel looks through those of all namespaces.
func Table() ([]Socket, error) { return table(1<<established | 1<<listen) }

// Listening lists the listening sockets, like Table.
func Listening() ([]Socket, error) { return table(1 << listen) }

func table(states uint32) ([]Socket, error) {
	tcp, err := list("tcp", unix.IPPROTO_TCP, states, attrInfo)
	if err != nil {
		return nil, err
	}
	udp, err := list("udp", unix.IPPROTO_UDP, 1<<closed, attrInfo)
	if err != nil {
		return nil, err
	}
	return append(tcp, udp...), nil
}

func list(name string, protocol byte, states uint32, asks int) ([]Socket, error) {
	var out []Socket
	for _, family := range families {
		r := request{family: family, protocol: protocol, attributes: 1 << (asks - 1),
			states: states}
		if err := r.dump(func(m []byte) { out = append(out, parseSocket(name, m)) }); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Towards counts the TCP connections to each address of the map. It includes ended ones whose local
// port is not free yet (TIME_WAIT).
func Towards(count map[netip.AddrPort]int) error {
	for _, family := range families {
		r := request{family: family, protocol: unix.IPPROTO_TCP, states: open | 1<<timeWait}
		err := r.dump(func(m []byte) {
			to := parseSocket("tcp", m).Remote
			to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
			if n, ok := count[to]; ok {
				count[to] = n + 1
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Listeners lists the listening TCP sockets. It needs only TCP's part of sock_diag.
func Listeners() ([]Socket, error) {
	return list("tcp", unix.IPPROTO_TCP, 1<<listen, attrMemory)
}

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
	if proto == "tcp" && b[1] == listen {
		s.Waiting = binary.NativeEndian.Uint32(b[queueOffset:])
		s.Backlog = binary.NativeEndian.Uint32(b[queueOffset+4:])
	}
	attributes, _ := nl.ParseRouteAttr(b[messageSize:])
	for _, a := range attributes {
		switch {
		case a.Attr.Type == attrV6Only:
			s.V6Only = len(a.Value) > 0 && a.Value[0] != 0
		case a.Attr.Type == attrMemory && len(a.Value) >= memoryDrops+4:
			s.Dropped = binary.NativeEndian.Uint32(a.Value[memoryDrops:])
		case a.Attr.Type == attrMark && len(a.Value) == 4:
			s.Mark = binary.NativeEndian.Uint32(a.Value)
		case a.Attr.Type == attrInfo && len(a.Value) >= infoBytesReceived+8:
			s.Sent = binary.NativeEndian.Uint64(a.Value[infoBytesAcked:])
			s.Received = binary.NativeEndian.Uint64(a.Value[infoBytesReceived:])
			s.Quiet = time.Millisecond * time.Duration(min(
				binary.NativeEndian.Uint32(a.Value[infoLastDataReceived:]),
				binary.NativeEndian.Uint32(a.Value[infoLastAckReceived:])))
		}
	}
	return s
}

// Inodes returns the inodes of the sockets that a process has open.
func Inodes(pid int) (map[uint32]bool, error) { return sockets(pid) }
