package load

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// atOnce is the most connections that a thread opens at the same time. More would overflow the
// queues of listeners on the path.
const atOnce = 64

func connectMany(addr netip.AddrPort, n int, nodelay bool) (fds []int, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll(fds))
			fds = nil
		}
	}()
	for len(fds) < n {
		began := len(fds)
		for len(fds) < min(n, began+atOnce) {
			fd, err := tcpSocket(addr, func(fd int, sa unix.Sockaddr) error {
				if err := unix.SetNonblock(fd, true); err != nil {
					return err
				}
				if err := unix.Connect(fd, sa); err != nil && !errors.Is(err, unix.EINPROGRESS) {
					return err
				}
				return setNodelay(fd, nodelay)
			})
			if err != nil {
				return fds, err
			}
			fds = append(fds, fd)
		}
		if err := connected(fds[began:]); err != nil {
			return fds, err
		}
	}
	return fds, nil
}

func connected(fds []int) error {
	deadline := time.Now().Add(connectTimeout)
	for _, fd := range fds {
		for {
			poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
			n, err := unix.Poll(poll, int(max(0, time.Until(deadline).Milliseconds())))
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil {
				return fmt.Errorf("wait for a connection: %w", err)
			}
			if n == 0 {
				return unix.ETIMEDOUT
			}
			break
		}
		e, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
		switch {
		case err != nil:
			return err
		case e != 0:
			return unix.Errno(e)
		}
	}
	return nil
}

func acceptMany(listener, n int, nodelay bool) (fds []int, err error) {
	for len(fds) < n {
		fd, err := accept(listener, nodelay)
		if err == nil {
			fds = append(fds, fd)
			err = unix.SetNonblock(fd, true)
		}
		if err != nil {
			return nil, errors.Join(err, closeAll(fds))
		}
	}
	return fds, nil
}

// addMany adds the retransmissions of a thread's second and further connections over the whole
// visit: reading a thousand connections takes 1 ms, too long for a mark.
func (s *Stats) addMany(t *thread) {
	for i := 1; i < len(t.fds); i++ {
		info := tcpInfo(t.fds[i])
		s.TCP.Retransmits += int64(info.Total_retrans)
		s.TCP.Resent += int64(info.Bytes_retrans)
	}
}

func share(connections, i, threads int) int { return (connections - i + threads - 1) / threads }

func (t *thread) several(open func(n int) ([]int, error), server bool) (err error) {
	if t.fds, err = open(share(t.spec.Streams, t.index, t.of)); err != nil {
		return err
	}
	t.fd = t.fds[0]
	return prepareStream(t, server)
}

func (t *thread) close() error {
	if len(t.fds) == 0 {
		return unix.Close(t.fd)
	}
	err := closeAll(t.fds)
	if t.stream != nil {
		err = errors.Join(err, t.stream.poll.close())
	}
	return err
}

func closeAll(fds []int) error {
	var errs []error
	for _, fd := range fds {
		errs = append(errs, unix.Close(fd))
	}
	return errors.Join(errs...)
}
