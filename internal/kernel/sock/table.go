package sock

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Socket is a socket of any process, as `ss` shows it.
type Socket struct {
	Proto         string // "tcp" or "udp"
	Local, Remote netip.AddrPort
	Listening     bool // of udp: bound and not connected
	V6Only        bool // of an IPv6 wildcard: it takes no IPv4
	Device        uint32
	UID           uint32
	Inode         uint32
	Received      uint64 // payload bytes, of TCP connections
	Sent          uint64
}

const (
	established, closed, listen = 1, 7, 10 // of net/tcp_states.h

	attrInfo, attrV6Only = 2, 11 // INET_DIAG_INFO, INET_DIAG_SKV6ONLY

	infoBytesAcked    = 120 // offsets in struct tcp_info
	infoBytesReceived = 128
)

// Table lists the sockets of the calling thread's network namespace that
// listen, and TCP connections that are established. It needs no privilege.
func Table() ([]Socket, error) {
	d, err := openDiag()
	if err != nil {
		return nil, err
	}
	defer d.close()
	var out []Socket
	for _, p := range []struct {
		number byte
		name   string
		states uint32
	}{{unix.IPPROTO_TCP, "tcp", 1<<established | 1<<listen}, {unix.IPPROTO_UDP, "udp", 1 << closed}} {
		for _, family := range families {
			m := message(diagByFamily, unix.NLM_F_REQUEST|unix.NLM_F_DUMP, family, p.states, nil)
			m[headerSize+1] = p.number
			m[headerSize+2] = 1 << (attrInfo - 1)
			if err := d.send(m); err != nil {
				return nil, fmt.Errorf("read sockets: %w", err)
			}
			if err := d.each(func(body []byte) { out = append(out, parseSocket(p.name, body)) }); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// parseSocket reads a struct inet_diag_msg, which has at least messageSize
// bytes, and its attributes.
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
	const attrHeader = 4
	for a := b[messageSize:]; len(a) >= attrHeader; {
		size := int(binary.NativeEndian.Uint16(a))
		if size < attrHeader || size > len(a) {
			break
		}
		v := a[attrHeader:size]
		switch binary.NativeEndian.Uint16(a[2:]) {
		case attrV6Only:
			s.V6Only = len(v) > 0 && v[0] != 0
		case attrInfo:
			if len(v) >= infoBytesReceived+8 {
				s.Sent = binary.NativeEndian.Uint64(v[infoBytesAcked:])
				s.Received = binary.NativeEndian.Uint64(v[infoBytesReceived:])
			}
		}
		a = a[min(len(a), (size+3)&^3):]
	}
	return s
}

// Inodes lists the sockets that a process has open.
func Inodes(pid int) (map[uint32]bool, error) { return sockets(pid) }
