package load

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	connectTimeout = 3 * time.Second
	backlog        = 4096
	greeting       = 4 // bytes
)

func sockaddr(a netip.AddrPort) (family int, sa unix.Sockaddr) {
	if a.Addr().Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}

func tcpSocket(addr netip.AddrPort, setup func(fd int, sa unix.Sockaddr) error) (int, error) {
	family, sa := sockaddr(addr)
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return -1, fmt.Errorf("make socket: %w", err)
	}
	if err := setup(fd, sa); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

func listen(addr netip.AddrPort) (int, error) {
	return tcpSocket(addr, func(fd int, sa unix.Sockaddr) error {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
			return err
		}
		if err := unix.Bind(fd, sa); err != nil {
			return err
		}
		return unix.Listen(fd, backlog)
	})
}

func accept(listener int, nodelay bool) (int, error) {
	for {
		fd, _, err := unix.Accept4(listener, unix.SOCK_CLOEXEC)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ECONNABORTED):
			continue
		case err != nil:
			return -1, fmt.Errorf("accept: %w", err)
		}
		return fd, setNodelay(fd, nodelay)
	}
}

func connect(addr netip.AddrPort, nodelay bool) (int, error) {
	return tcpSocket(addr, func(fd int, sa unix.Sockaddr) error {
		// SO_SNDTIMEO limits connect(2). It is reset afterwards, because a send with a timeout sets
		// a timer.
		limit := unix.NsecToTimeval(int64(connectTimeout))
		err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit)
		if err != nil {
			return err
		}
		err = unix.Connect(fd, sa)
		if errors.Is(err, unix.EINPROGRESS) || errors.Is(err, unix.EAGAIN) {
			err = unix.ETIMEDOUT
		}
		if err != nil {
			return err
		}
		err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{})
		if err != nil {
			return err
		}
		return setNodelay(fd, nodelay)
	})
}

// greet sends the client's number. Behind NAT or a proxy, addresses do not distinguish clients.
func greet(fd, client int) error {
	var b [greeting]byte
	binary.BigEndian.PutUint32(b[:], uint32(client))
	if n, e := send(fd, b[:]); e != 0 || n < greeting {
		return fmt.Errorf("greet: %d bytes sent: %w", n, e)
	}
	return nil
}

func greeted(fd int) (client int, err error) {
	var b [greeting]byte
	for got := 0; got < greeting; {
		n, e := recv(fd, b[got:])
		switch {
		case e != 0:
			return 0, fmt.Errorf("read the client's number: %w", e)
		case n == 0:
			return 0, errors.New("the client closed the connection before it sent its number")
		}
		got += n
	}
	return int(binary.BigEndian.Uint32(b[:])), nil
}

func setNodelay(fd int, on bool) error {
	if !on {
		return nil
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		return fmt.Errorf("set TCP_NODELAY: %w", err)
	}
	return nil
}

// RawSyscall bypasses Go's scheduler: a thread that blocks in send or recv keeps its processor, and
// Prepare adds processors for that.

func send(fd int, b []byte) (int, syscall.Errno) {
	for {
		n, _, e := syscall.RawSyscall6(syscall.SYS_SENDTO, uintptr(fd),
			uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), syscall.MSG_NOSIGNAL, 0, 0)
		if e != syscall.EINTR {
			return int(n), e
		}
	}
}

func recv(fd int, b []byte) (int, syscall.Errno) {
	for {
		n, _, e := syscall.RawSyscall6(syscall.SYS_RECVFROM, uintptr(fd),
			uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0, 0, 0)
		if e != syscall.EINTR {
			return int(n), e
		}
	}
}

func tcpInfo(fd int) unix.TCPInfo {
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return unix.TCPInfo{}
	}
	return *info
}
