package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// wire opens TCP connections whose reads and writes are plain system calls of their thread.
type wire struct {
	host    string // and port
	connect dialFunc
}

func withPort(u *url.URL, usual string) string {
	if u.Port() != "" {
		return u.Host
	}
	return net.JoinHostPort(u.Hostname(), usual)
}

var errLate = fmt.Errorf("no reply within %v", dialogueTimeout)

// plain is a socket in blocking mode, of which each call ends within its timeout, and all calls
// until a deadline.
type plain struct {
	net.Conn
	fd    int
	until *time.Time // zero: no deadline
}

// within sets the deadline of the calls that follow.
func (p plain) within(d time.Duration) { *p.until = time.Now().Add(d) }

func (p plain) Read(b []byte) (int, error) {
	if !p.until.IsZero() && time.Now().After(*p.until) {
		return 0, errLate
	}
	for {
		n, err := unix.Read(p.fd, b)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			return 0, errLate
		case err != nil:
			return 0, err
		case n == 0 && len(b) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

func (p plain) Write(b []byte) (done int, err error) {
	for done < len(b) {
		n, err := unix.Write(p.fd, b[done:])
		if n > 0 {
			done += n
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return done, err
		}
	}
	return done, nil
}

func (p plain) Close() error { return errors.Join(unix.Close(p.fd), p.Conn.Close()) }

func (w wire) dial(ctx context.Context) (c plain, t *dialogue, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, dialogueTimeout,
		fmt.Errorf("no connection within %v", dialogueTimeout))
	defer cancel()
	raw, _, err := w.connect(ctx, "tcp", w.host)
	if err != nil {
		return c, nil, err
	}
	tcp, ok := raw.(*net.TCPConn)
	if !ok {
		return c, nil, errors.Join(errNoTCP, raw.Close())
	}
	if c, err = blocking(raw, tcp, dialogueTimeout); err != nil {
		return c, nil, err
	}
	c.within(dialogueTimeout)
	return c, dialogueOn(c, raw.LocalAddr().(*net.TCPAddr).AddrPort()), nil
}

// dialogueOn returns a dialogue, which asks nothing yet, on a socket with a local address.
func dialogueOn(c plain, local netip.AddrPort) *dialogue {
	return &dialogue{local: local.Port(), remote: c.RemoteAddr().String(),
		close: func() { _ = c.Close() }, stop: func() { _ = unix.Shutdown(c.fd, unix.SHUT_RDWR) }}
}

// blocking returns a connection's socket in blocking mode, whose calls time out. It closes the
// connection if it fails.
func blocking(raw net.Conn, socket syscall.Conn, timeout time.Duration) (c plain, err error) {
	control, err := socket.SyscallConn()
	if err == nil {
		errControl := control.Control(func(fd uintptr) {
			c.fd, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
		})
		err = errors.Join(err, errControl)
	}
	if err != nil {
		return c, errors.Join(err, raw.Close())
	}
	c.Conn, c.until = raw, &time.Time{}
	wait := unix.NsecToTimeval(timeout.Nanoseconds())
	err = errors.Join(unix.SetNonblock(c.fd, false),
		unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait),
		unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &wait))
	if err != nil {
		return c, errors.Join(err, c.Close())
	}
	return c, nil
}
