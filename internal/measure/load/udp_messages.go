package load

import (
	"syscall"
	"unsafe"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"golang.org/x/sys/unix"
)

// messages has the buffers of a system call: one for send(2) and recv(2), several for sendmmsg(2)
// and recvmmsg(2). With GSO each buffer holds several datagrams.
type messages struct {
	bufs [][]byte
	each int // datagrams in a buffer, at the sending end
	got  []int
	vecs []unix.Iovec
	mm   []mmsghdr
	// answer is the buffer for replies at the sending end.
	answer []byte
}

type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
	_   [4]byte
}

// maxSegments is UDP_MAX_SEGMENTS of Linux before 6.9; later ones take 128.
const maxSegments = 64

func segments(size int) int { return max(1, min(maxSegments, workload.MaxDatagram/size)) }

func newMessages(s sample.Load, receives bool) *messages {
	m := &messages{each: 1, answer: make([]byte, workload.MinDatagram)}
	o := workload.UDPOf(s)
	room := o.Size
	if o.GSO {
		m.each = segments(o.Size)
		room = m.each * o.Size
	}
	if receives {
		room = workload.MaxDatagram // with GRO the kernel joins datagrams up to about this size
	}
	for range o.Batch {
		m.bufs = append(m.bufs, written(room))
	}
	m.got = make([]int, o.Batch)
	m.vecs = make([]unix.Iovec, o.Batch)
	m.mm = make([]mmsghdr, o.Batch)
	for i, b := range m.bufs {
		m.vecs[i].Base = &b[0]
		m.vecs[i].SetLen(len(b))
		m.mm[i].hdr.Iov = &m.vecs[i]
		m.mm[i].hdr.SetIovlen(1)
	}
	return m
}

// send sends the buffers from index from on, and returns the number of buffers sent.
func (m *messages) send(fd, from int, flags uintptr) (int, syscall.Errno) {
	for {
		var n uintptr
		var e syscall.Errno
		if len(m.bufs) == 1 {
			b := m.bufs[0]
			_, _, e = syscall.RawSyscall6(syscall.SYS_SENDTO, uintptr(fd),
				uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)),
				flags|syscall.MSG_NOSIGNAL, 0, 0)
			n = 1
		} else {
			n, _, e = syscall.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd),
				uintptr(unsafe.Pointer(&m.mm[from])), uintptr(len(m.bufs)-from),
				flags|syscall.MSG_NOSIGNAL, 0, 0)
		}
		if e != syscall.EINTR {
			if e != 0 {
				n = 0
			}
			return int(n), e
		}
	}
}

// receive waits for a datagram and returns the number of buffers filled, or EAGAIN if none comes
// before the timeout.
func (m *messages) receive(fd int) (int, syscall.Errno) {
	if len(m.bufs) == 1 {
		n, e := recv(fd, m.bufs[0])
		m.got[0] = n
		return 1, e
	}
	for {
		n, _, e := syscall.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd),
			uintptr(unsafe.Pointer(&m.mm[0])), uintptr(len(m.mm)),
			unix.MSG_WAITFORONE, 0, 0)
		if e == syscall.EINTR {
			continue
		}
		if e == 0 {
			for i := range int(n) {
				m.got[i] = int(m.mm[i].len)
			}
		}
		return int(n), e
	}
}
