package load

import (
	"errors"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
)

type brief struct {
	listener int
	family   int
	to       []byte
	nodelay  int32
	quota    int64 // connections that may be opened; 0: no limit
	limit    unix.Timeval
	deadline int64 // when the calls' time limit ends; a signal does not extend it

	opened, failed int64 // over the whole visit
	failures       [len(failures)]int64
	cut            bool // the quota or the ports ran out before the load's end,
	early          bool // and before the window's
}

func briefServer(listener int) func(*thread) error {
	return func(t *thread) error {
		t.brief = &brief{listener: listener}
		return nil
	}
}

func briefClient(addr netip.AddrPort, o Options, nodelay bool) func(*thread) error {
	quota := 0
	if o.Budget > 0 {
		quota = max(1, o.Budget/withDefaults(o.Load).Streams)
	}
	return func(t *thread) error {
		t.brief = newBrief(addr, nodelay)
		t.brief.quota = int64(quota)
		fd, err := connect(addr, nodelay)
		if err != nil {
			return err
		}
		t.brief.opened++
		return unix.Close(fd)
	}
}

func newBrief(addr netip.AddrPort, nodelay bool) *brief {
	b := &brief{listener: -1}
	port := [2]byte{byte(addr.Port() >> 8), byte(addr.Port())}
	if addr.Addr().Is4() {
		b.family = unix.AF_INET
		sa := unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: addr.Addr().As4()}
		*(*[2]byte)(unsafe.Pointer(&sa.Port)) = port
		b.to = append(b.to, (*[unix.SizeofSockaddrInet4]byte)(unsafe.Pointer(&sa))[:]...)
	} else {
		b.family = unix.AF_INET6
		sa := unix.RawSockaddrInet6{Family: unix.AF_INET6, Addr: addr.Addr().As16()}
		*(*[2]byte)(unsafe.Pointer(&sa.Port)) = port
		b.to = append(b.to, (*[unix.SizeofSockaddrInet6]byte)(unsafe.Pointer(&sa))[:]...)
	}
	if nodelay {
		b.nodelay = 1
	}
	return b
}

func (b *brief) socket() (int, syscall.Errno) {
	fd, _, e := syscall.RawSyscall(syscall.SYS_SOCKET, uintptr(b.family),
		unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if e != 0 {
		return -1, e
	}
	for _, option := range [...]uintptr{unix.SO_SNDTIMEO, unix.SO_RCVTIMEO} {
		_, _, e = syscall.RawSyscall6(syscall.SYS_SETSOCKOPT, fd, unix.SOL_SOCKET, option,
			uintptr(unsafe.Pointer(&b.limit)), unsafe.Sizeof(b.limit), 0)
		if e != 0 {
			closeRaw(int(fd))
			return -1, e
		}
	}
	if b.nodelay != 0 {
		if _, _, e = syscall.RawSyscall6(syscall.SYS_SETSOCKOPT, fd, unix.IPPROTO_TCP,
			unix.TCP_NODELAY,
			uintptr(unsafe.Pointer(&b.nodelay)), unsafe.Sizeof(b.nodelay), 0); e != 0 {
			closeRaw(int(fd))
			return -1, e
		}
	}
	return int(fd), 0
}

func (b *brief) until(limit int64) {
	b.limit, b.deadline = unix.NsecToTimeval(limit), clock.Now()+limit
}

func (b *brief) again(e syscall.Errno) bool {
	return e == syscall.EINTR && clock.Now() < b.deadline
}

// connect connects fd to b.to. After a signal it calls connect(2) again, which continues to wait
// for the same connection.
func (b *brief) connect(fd int) syscall.Errno {
	for {
		_, _, e := syscall.RawSyscall(syscall.SYS_CONNECT, uintptr(fd),
			uintptr(unsafe.Pointer(&b.to[0])), uintptr(len(b.to)))
		switch {
		case b.again(e):
		case e == syscall.EINTR:
			return syscall.ETIMEDOUT
		default:
			return e
		}
	}
}

// accept returns EAGAIN if no connection comes before the timeout.
func (b *brief) accept() (int, syscall.Errno) {
	for {
		fd, _, e := syscall.RawSyscall6(syscall.SYS_ACCEPT4, uintptr(b.listener), 0, 0,
			unix.SOCK_CLOEXEC, 0, 0)
		switch {
		case b.again(e):
		case e == syscall.EINTR:
			return -1, syscall.EAGAIN
		default:
			return int(fd), e
		}
	}
}

func (b *brief) recv(fd int, p []byte) (int, syscall.Errno) {
	for {
		n, _, e := syscall.RawSyscall6(syscall.SYS_RECVFROM, uintptr(fd),
			uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), 0, 0, 0)
		if !b.again(e) {
			return int(n), e
		}
	}
}

// closeRaw ignores errors: Linux frees the descriptor in any case.
func closeRaw(fd int) { _, _, _ = syscall.RawSyscall(syscall.SYS_CLOSE, uintptr(fd), 0, 0) }

var errNoCrowd = errors.New("cannot have several clients, servers or processes")
