package dial

import (
	"net"
	"net/netip"
	"strconv"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

const (
	flagSYN = 0x02
	flagRST = 0x04
	flagACK = 0x10

	snap = 256 // bytes of a packet that a filter passes, at most
)

// sockaddr converts an address. It looks up the address's zone in the calling thread's namespace.
func sockaddr(a netip.AddrPort) (unix.Sockaddr, error) {
	ip := a.Addr().Unmap()
	if !ip.IsValid() {
		return nil, unix.EAFNOSUPPORT
	}
	if ip.Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: ip.As4()}, nil
	}
	sa := &unix.SockaddrInet6{Port: int(a.Port()), Addr: ip.As16()}
	if zone := ip.Zone(); zone != "" {
		id, err := strconv.Atoi(zone)
		if err != nil {
			device, err := net.InterfaceByName(zone)
			if err != nil {
				return nil, err
			}
			id = device.Index
		}
		sa.ZoneId = uint32(id)
	}
	return sa, nil
}

// addrPort returns the address without a zone.
func addrPort(sa unix.Sockaddr) netip.AddrPort {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr).Unmap(), uint16(sa.Port))
	}
	return netip.AddrPort{}
}

func local(fd int) netip.AddrPort {
	sa, _ := unix.Getsockname(fd) // fails for sockets without an address
	return addrPort(sa)
}

func family(ip netip.Addr) int {
	if ip.Unmap().Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

func newSocket(proto string, ip netip.Addr) (int, error) {
	kind := map[string]int{"tcp": unix.SOCK_STREAM, "udp": unix.SOCK_DGRAM}[proto]
	if kind == 0 {
		return 0, unix.EPROTONOSUPPORT
	}
	fd, err := unix.Socket(family(ip), kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err == nil && proto == "tcp" { // long data must fit into the buffer in one write
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 4*much)
	}
	return fd, err
}

// options sets integer options and returns the first error.
func options(fd int, all ...[3]int) error {
	for _, o := range all {
		if err := unix.SetsockoptInt(fd, o[0], o[1], o[2]); err != nil {
			return err
		}
	}
	return nil
}

func watch(epoll, fd int, events uint32) error {
	e := unix.EpollEvent{Events: events, Fd: int32(fd)}
	return unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &e)
}

// rewatch changes the events that watch has requested.
func rewatch(epoll, fd int, events uint32) error {
	e := unix.EpollEvent{Events: events, Fd: int32(fd)}
	return unix.EpollCtl(epoll, unix.EPOLL_CTL_MOD, fd, &e)
}

func attach(fd int, filter []bpf.Instruction) error {
	code, err := bpf.Assemble(filter)
	if err != nil {
		return err
	}
	program := make([]unix.SockFilter, len(code))
	for i, x := range code {
		program[i] = unix.SockFilter{Code: x.Op, Jt: x.Jt, Jf: x.Jf, K: x.K}
	}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
}

// enlarge gives a socket a larger receive buffer, beyond net.core.rmem_max if that is permitted.
func enlarge(fd int) {
	const size = 4 << 20
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, size) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, size)
	}
}
