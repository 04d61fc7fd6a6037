package dial

import (
	"errors"
	"net/netip"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// reportErrors makes the kernel queue each ICMP error. Otherwise an error during connect is
// reported only at the next SYN, a second later.
func reportErrors(fd int, to netip.Addr) error {
	if family(to) == unix.AF_INET6 {
		return options(fd, [3]int{unix.SOL_IPV6, unix.IPV6_RECVERR, 1})
	}
	return options(fd, [3]int{unix.SOL_IP, unix.IP_RECVERR, 1})
}

// queued returns the next error that reportErrors queued, or nil.
func queued(fd int) error {
	var b, control [512]byte
	_, n, _, _, err := unix.Recvmsg(fd, b[:], control[:], unix.MSG_ERRQUEUE)
	if err != nil {
		return nil
	}
	return reported(control[:n])
}

// reported returns the error in a struct sock_extended_err.
func reported(control []byte) error {
	all, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil
	}
	for _, m := range all {
		isError := m.Header.Level == unix.SOL_IP && m.Header.Type == unix.IP_RECVERR ||
			m.Header.Level == unix.SOL_IPV6 && m.Header.Type == unix.IPV6_RECVERR
		if size := int(unsafe.Sizeof(unix.SockExtendedErr{})); isError && len(m.Data) >= size {
			return unix.Errno((*unix.SockExtendedErr)(unsafe.Pointer(&m.Data[0])).Errno)
		}
	}
	return nil
}

// gotOf classifies the error of a connect, of a send, or of an ICMP message.
func gotOf(err error) replica.Got {
	var errno unix.Errno
	if !errors.As(err, &errno) {
		return replica.Failed
	}
	switch errno {
	case unix.ECONNREFUSED:
		return replica.Refused
	case unix.ENETUNREACH, unix.EHOSTUNREACH, unix.ENETDOWN, unix.EHOSTDOWN, unix.ENONET,
		unix.EACCES, unix.EINVAL, unix.ENOPROTOOPT, unix.EOPNOTSUPP, unix.EPROTO, unix.EMSGSIZE:
		return replica.Unreachable
	case unix.ETIMEDOUT, unix.EPERM: // EPERM: a rule dropped it at OUTPUT
		return replica.Timeout
	case unix.ECONNRESET:
		return replica.Closed
	case unix.EAFNOSUPPORT: // also where this process may make no such sockets
		if _, err := os.Stat("/proc/net/if_inet6"); errors.Is(err, os.ErrNotExist) {
			return replica.Unreachable // a kernel without IPv6
		}
	}
	return replica.Failed
}
