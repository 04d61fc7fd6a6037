package sock

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// Peer returns the process and the user at the other end of a Unix connection (SO_PEERCRED). The
// PID is 0 if the process is in another PID namespace.
func Peer(c *net.UnixConn) (peer *unix.Ucred, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	if errRaw := raw.Control(func(fd uintptr) {
		peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); errRaw != nil || err != nil {
		return nil, errors.Join(errRaw, err)
	}
	return peer, nil
}
