package jail

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Grants gives sockets of scripts the buffers for which the kernel requires a privilege that a
// copy's user namespace cannot have. Programs send all rules of a batch in one netlink message,
// which a buffer of the usual size does not take. The kernel asks this process, by seccomp's
// notifications, when a script sets the size of a buffer regardless of the limit.
//
// A nil *Grants grants nothing.
type Grants struct {
	here, there int // both ends; jails send the files of their notifications by the second
	ended       atomic.Bool
	all         sync.WaitGroup
}

// NewGrants returns Grants, or nil if this process has no right to give them. The caller closes
// them.
func NewGrants() (*Grants, error) {
	if !mayForce() {
		return nil, nil
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("grant buffers of sockets: %w", err)
	}
	g := &Grants{here: fds[0], there: fds[1]}
	g.all.Go(g.serve)
	return g, nil
}

// mayForce reports whether this process may set the size of a buffer regardless of the limit.
func mayForce() bool {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, granted) == nil
}

// FD returns the end that the process of a copy inherits. The caller closes it.
func (g *Grants) FD() int { return g.there }

// Close waits until no notification is served any more.
func (g *Grants) Close() error {
	if g == nil || g.ended.Swap(true) {
		return nil
	}
	_ = unix.Shutdown(g.here, unix.SHUT_RDWR)
	g.all.Wait()
	return unix.Close(g.here)
}

// serve takes the files of notifications.
func (g *Grants) serve() {
	const one = 4
	b, control := make([]byte, 1), make([]byte, unix.CmsgSpace(one))
	for {
		n, k, _, _, err := unix.Recvmsg(g.here, b, control, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return
		}
		all, err := unix.ParseSocketControlMessage(control[:k])
		if err != nil {
			continue
		}
		for _, m := range all {
			fds, err := unix.ParseUnixRights(&m)
			for _, fd := range fds {
				if err == nil {
					g.all.Go(func() { g.answer(fd) })
				}
			}
		}
	}
}

// send sends the file of a jail's notifications by an inherited end of Grants.
func send(by, fd int) error {
	return unix.Sendmsg(by, []byte{0}, unix.UnixRights(fd), nil, 0)
}

// struct seccomp_notif and seccomp_notif_resp of linux/seccomp.h
type notification struct {
	id     uint64
	pid    uint32
	flags  uint32
	number int32
	arch   uint32
	ip     uint64
	args   [6]uint64
}

type response struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

const (
	granted    = 16 << 20 // bytes; 40,000 rules of iptables
	mostGrants = 128      // for each command
)

// answer answers a jail's notifications until the jail ends.
func (g *Grants) answer(fd int) {
	defer func() { _ = unix.Close(fd) }()
	const often = 200 // ms
	for grants := 0; !g.ended.Load(); {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if n, err := unix.Poll(p, often); n == 0 || errors.Is(err, unix.EINTR) {
			continue
		} else if err != nil || p[0].Revents&unix.POLLIN == 0 {
			return
		}
		var q notification
		if control(fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&q)) != 0 {
			continue // the process has ended
		}
		r := response{id: q.id, errno: -int32(unix.EPERM)}
		if grants++; grants <= mostGrants && grant(fd, &q) == nil {
			r.errno = 0
		}
		_ = control(fd, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
	}
}

var errRefusedSocket = errors.New("not a socket for rules")

// grant gives the caller's socket a large buffer, whichever size it wants.
func grant(fd int, q *notification) error {
	process, err := unix.PidfdOpen(int(q.pid), 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(process) }()
	// The number may by now be another process's, outside the jail.
	if errno := control(fd, unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&q.id)); errno != 0 {
		return errno
	}
	socket, err := unix.PidfdGetfd(process, int(int32(q.args[0])), 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(socket) }()
	domain, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil || domain != unix.AF_NETLINK {
		return errors.Join(err, errRefusedSocket)
	}
	option := int(int32(q.args[2]))
	if option != unix.SO_SNDBUFFORCE && option != unix.SO_RCVBUFFORCE {
		return errRefusedSocket
	}
	return unix.SetsockoptInt(socket, unix.SOL_SOCKET, option, granted)
}

func control(fd int, request uint, data unsafe.Pointer) syscall.Errno {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(data))
		if errno != unix.EINTR {
			return errno
		}
	}
}
