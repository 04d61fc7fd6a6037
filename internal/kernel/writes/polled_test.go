package writes

import (
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// ringParams is struct io_uring_params.
type ringParams struct {
	entries, completions, flags, cpu, idle, features, queue uint32
	_                                                       [3]uint32
	sq                                                      struct {
		head, tail, mask, entries, flags, dropped, array, _ uint32
		_                                                   uint64
	}
	cq [10]uint32
}

// submission is struct io_uring_sqe.
type submission struct {
	opcode, flags uint8
	_             uint16
	fd            int32
	_             uint64
	addr          uint64
	size          uint32
	_             [36]byte
}

// sendPolled sends bytes over a socket by an io_uring that a thread of the kernel polls. The bytes
// stay as they are until the test ends.
func sendPolled(t *testing.T, fd int, b []byte) {
	t.Helper()
	const (
		polled, wake    = 2, 2 // IORING_SETUP_SQPOLL, IORING_ENTER_SQ_WAKEUP
		rings, entries  = 0, 0x10000000
		send            = 26
		awhile          = 1000 // ms
		sizeOfSubmitted = int(unsafe.Sizeof(submission{}))
	)
	p := ringParams{flags: polled, idle: awhile}
	ring, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&p)), 0)
	if errno != 0 {
		t.Skipf("no io_uring here: %v", errno) // kernel.io_uring_disabled
	}
	t.Cleanup(func() { unix.Close(int(ring)) })
	mapped := func(at int64, size int) []byte {
		m, err := unix.Mmap(int(ring), at, size, unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_SHARED|unix.MAP_POPULATE)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Munmap(m) })
		return m
	}
	queue := mapped(rings, int(p.sq.array+4*p.sq.entries))
	one := (*submission)(unsafe.Pointer(&mapped(entries, sizeOfSubmitted*int(p.sq.entries))[0]))
	*one = submission{opcode: send, fd: int32(fd), addr: uint64(uintptr(unsafe.Pointer(&b[0]))),
		size: uint32(len(b))}
	atomic.StoreUint32((*uint32)(unsafe.Pointer(&queue[p.sq.tail])), 1)
	if _, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, ring, 1, 0, wake, 0, 0); errno != 0 {
		t.Fatal(errno)
	}
}

// TestPolled has a thread that waits for a CPU even when it has nothing to write.
func TestPolled(t *testing.T) {
	server, client := pair(t, "127.0.0.1:0")
	r := opened(t, uint16(server.LocalAddr().(*net.TCPAddr).Port))
	raw, err := server.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	reply := []byte("reply")
	defer runtime.KeepAlive(reply)
	if err := raw.Control(func(fd uintptr) { sendPolled(t, int(fd), reply) }); err != nil {
		t.Fatal(err)
	}
	if n, err := client.Read(make([]byte, 2*len(reply))); n != len(reply) || err != nil {
		t.Fatal(n, err)
	}
	var all []Event
	testwait.Until(t, patience, "the write and the segment are recorded", func() bool {
		if err := r.Read(func(e *Event) { all = append(all, *e) }); err != nil {
			t.Fatal(err)
		}
		return len(all) >= 2
	})
	if e := all[0]; e.Kind != Write || int(e.Len) != len(reply) || e.Thread != 0 || e.Waited != 0 {
		t.Errorf("%+v", e)
	}
}
