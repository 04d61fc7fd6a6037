package raw

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Dial opens a netlink socket in the calling thread's namespace, which tells reasons for errors in
// words. The socket is for requests with an answer: calls wait for it in the kernel. Those of
// netlink.Dial start a goroutine each, to which a thread in a namespace of its own is handed over
// and back. And lists come in larger parts than there.
func Dial(protocol int) (*netlink.Conn, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	own, err := bind(fd)
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_EXT_ACK, 1) // Linux 4.12
	return netlink.NewConn(socket(fd), own.Pid), nil
}

func bind(fd int) (*unix.SockaddrNetlink, error) {
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, os.NewSyscallError("bind", err)
	}
	own, err := unix.Getsockname(fd)
	if err != nil {
		return nil, os.NewSyscallError("getsockname", err)
	}
	at, ok := own.(*unix.SockaddrNetlink)
	if !ok {
		return nil, fmt.Errorf("a netlink socket has the address %v", own)
	}
	return at, nil
}

// socket is a descriptor.
type socket int

func (s socket) Close() error { return unix.Close(int(s)) }

func (s socket) Send(m netlink.Message) error { return s.SendMessages([]netlink.Message{m}) }

func (s socket) SendMessages(all []netlink.Message) error {
	var out []byte
	for _, m := range all {
		b, err := m.MarshalBinary()
		if err != nil {
			return err
		}
		out = append(out, b...)
	}
	return os.NewSyscallError("sendto",
		unix.Sendto(int(s), out, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}))
}

// usual is the most that the kernel mostly sends at once, if the buffer has room for it.
const usual = 1 << 15

var buffers = sync.Pool{New: func() any { return new([usual]byte) }}

// Receive returns the messages that the kernel has sent at once.
func (s socket) Receive() (out []netlink.Message, err error) {
	n, err := s.receive(nil, unix.MSG_PEEK|unix.MSG_TRUNC)
	if err != nil {
		return nil, err
	}
	buffer := buffers.Get().(*[usual]byte) //nolint:forcetypeassert // nothing else is there
	defer buffers.Put(buffer)
	b := buffer[:]
	if n > len(b) {
		b = make([]byte, n)
	}
	if n, err = s.receive(b, 0); err != nil {
		return nil, err
	}
	all, err := syscall.ParseNetlinkMessage(bytes.Clone(b[:n]))
	for _, m := range all {
		h := m.Header
		out = append(out, netlink.Message{Data: m.Data, Header: netlink.Header{Length: h.Len,
			Type: netlink.HeaderType(h.Type), Flags: netlink.HeaderFlags(h.Flags),
			Sequence: h.Seq, PID: h.Pid}})
	}
	return out, err
}

func (s socket) receive(b []byte, flags int) (n int, err error) {
	for {
		n, _, err = unix.Recvfrom(int(s), b, flags)
		if !errors.Is(err, unix.EINTR) {
			return n, os.NewSyscallError("recvfrom", err)
		}
	}
}
