package load

import (
	"fmt"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

type putter interface {
	// put sends up to n bytes and returns the number sent.
	put(n int) (int, syscall.Errno)
	// settle waits a limited time for the kernel's outstanding reports.
	settle()
}

// CanSend returns nil if this kernel supports the method of sending.
func CanSend(how string) error {
	switch how {
	case "":
		return nil
	case workload.SendZerocopy:
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
		if err != nil {
			return fmt.Errorf("make socket: %w", err)
		}
		defer unix.Close(fd) //nolint:errcheck // nothing was sent on it
		return allowZerocopy(fd)
	case workload.SendFile:
		fd, err := memoryFile([]byte{0})
		if err != nil {
			return err
		}
		return unix.Close(fd)
	}
	return fmt.Errorf("unknown way to send %q", how)
}

func (t *thread) prepare() (err error) {
	switch t.bulk.Send {
	case workload.SendZerocopy:
		if err := allowZerocopy(t.fd); err != nil {
			return err
		}
		t.put = newZerocopy(t)
	case workload.SendFile:
		f := &filed{t: t}
		if f.file, err = memoryFile(t.buf[:t.write]); err != nil {
			return err
		}
		t.put = f
	}
	return nil
}

type copying struct{ t *thread }

func (c *copying) put(n int) (int, syscall.Errno) { return send(c.t.fd, c.t.buf[:n]) }
func (c *copying) settle()                        {}

// filed sends a file in memory, from its start each time, by sendfile(2).
type filed struct {
	t    *thread
	file int
	from int64
}

func memoryFile(content []byte) (int, error) {
	fd, err := unix.MemfdCreate("toll", unix.MFD_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("sendfile: memfd_create(2), Linux 3.17 with CONFIG_MEMFD_CREATE: %w",
			err)
	}
	for put := 0; put < len(content); {
		n, err := unix.Write(fd, content[put:])
		if err != nil {
			_ = unix.Close(fd)
			return -1, fmt.Errorf("sendfile: write a file in memory: %w", err)
		}
		put += n
	}
	return fd, nil
}

func (f *filed) put(n int) (int, syscall.Errno) {
	for {
		f.from = 0
		k, _, e := syscall.RawSyscall6(syscall.SYS_SENDFILE, uintptr(f.t.fd), uintptr(f.file),
			uintptr(unsafe.Pointer(&f.from)), uintptr(n), 0, 0)
		if e != syscall.EINTR {
			return int(k), e
		}
	}
}

func (f *filed) settle() {}

// zerocopy sends with MSG_ZEROCOPY (Documentation/networking/msg_zerocopy.rst). The buffer never
// changes, so it can be sent again before the kernel reports that it is done with it. A send waits
// for reports only if space for them or for pinned pages runs out.
type zerocopy struct {
	t       *thread
	pending int // sends without a report
	since   int // sends since the last reap
	control []byte
	msg     unix.Msghdr
}

func allowZerocopy(fd int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ZEROCOPY, 1); err != nil {
		return fmt.Errorf("the kernel has no MSG_ZEROCOPY for TCP (SO_ZEROCOPY, Linux 4.14): %w",
			err)
	}
	return nil
}

func newZerocopy(t *thread) *zerocopy {
	const room = 128 // a report is one message with struct sock_extended_err and an address
	t.count(workload.CountZerocopy, 0)
	t.count(workload.CountZerocopyCopied, 0)
	return &zerocopy{t: t, control: make([]byte, room)}
}

// reapEvery is the number of sends after which reports are read. A socket's optmem holds over a
// hundred.
const reapEvery = 16

func (z *zerocopy) put(n int) (int, syscall.Errno) {
	if z.since++; z.since >= reapEvery {
		z.since = 0
		z.reap()
	}
	for {
		k, _, e := syscall.RawSyscall6(syscall.SYS_SENDTO, uintptr(z.t.fd),
			uintptr(unsafe.Pointer(&z.t.buf[0])), uintptr(n),
			syscall.MSG_NOSIGNAL|unix.MSG_ZEROCOPY, 0, 0)
		switch {
		case e == syscall.EINTR:
			continue
		case e == syscall.ENOBUFS && z.pending > 0 && z.wait(time.Second):
			continue
		case e == 0:
			z.pending++
		}
		return int(k), e
	}
}

func (z *zerocopy) wait(limit time.Duration) bool {
	fds := [1]unix.PollFd{{Fd: int32(z.t.fd)}} // POLLERR is always reported
	n, err := unix.Poll(fds[:], int(limit.Milliseconds()))
	return z.reap() || (err == unix.EINTR && n <= 0)
}

func (z *zerocopy) reap() (any bool) {
	for {
		z.msg.Control = &z.control[0]
		z.msg.SetControllen(len(z.control))
		_, _, e := syscall.RawSyscall(syscall.SYS_RECVMSG, uintptr(z.t.fd),
			uintptr(unsafe.Pointer(&z.msg)), unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
		if e == syscall.EINTR {
			continue
		}
		if e != 0 {
			return any
		}
		any = true
		sends, copied := completed(z.control[:min(int(z.msg.Controllen), len(z.control))])
		z.pending -= sends
		if z.t.bulk.Bytes == 0 && !z.t.inWindow() {
			continue
		}
		z.t.counts[workload.CountZerocopy] += int64(sends)
		if copied {
			z.t.counts[workload.CountZerocopyCopied] += int64(sends)
		}
	}
}

func (z *zerocopy) settle() {
	const limit = 200 * time.Millisecond
	for end := clock.Now() + int64(limit); z.pending > 0 && clock.Now() < end; {
		if !z.wait(limit) {
			return
		}
	}
}

// completed returns the number of sends that a message reports as completed, 0 for other messages.
// copied means that the kernel copied their bytes.
func completed(control []byte) (sends int, copied bool) {
	for len(control) >= unix.CmsgLen(0) {
		h, data, rest, err := unix.ParseOneSocketControlMessage(control)
		if err != nil {
			return 0, false
		}
		control = rest
		v4 := h.Level == unix.SOL_IP && h.Type == unix.IP_RECVERR
		v6 := h.Level == unix.SOL_IPV6 && h.Type == unix.IPV6_RECVERR
		if !v4 && !v6 || len(data) < int(unsafe.Sizeof(unix.SockExtendedErr{})) {
			continue
		}
		// The data may be unaligned, so it is copied.
		var ee unix.SockExtendedErr
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&ee)), unsafe.Sizeof(ee)), data)
		if ee.Origin != unix.SO_EE_ORIGIN_ZEROCOPY || ee.Errno != 0 {
			continue
		}
		// Info and Data are the numbers of the first and the last send, which wrap around.
		return int(ee.Data-ee.Info) + 1, ee.Code&unix.SO_EE_CODE_ZEROCOPY_COPIED != 0
	}
	return 0, false
}
