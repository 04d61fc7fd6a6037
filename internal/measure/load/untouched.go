package load

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Another process can get a load's socket (pidfd_getfd, BPF) and set its options. No counter shows
// that, so the load compares the options when it opens and when it is over or overdue.

// watchedOptions are the socket options that change what a socket carries, and that neither the
// kernel nor a loop changes. The kernel moves TCP_WINDOW_CLAMP: see receiving.
var watchedOptions = []struct {
	name          string
	level, option int
}{
	{"SO_MAX_PACING_RATE", unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE},
	{"SO_BUF_LOCK", unix.SOL_SOCKET, unix.SO_BUF_LOCK}, // SO_SNDBUF or SO_RCVBUF was set
	{"SO_GET_FILTER", unix.SOL_SOCKET, unix.SO_GET_FILTER},
	{"SO_PRIORITY", unix.SOL_SOCKET, unix.SO_PRIORITY},
	{"SO_MARK", unix.SOL_SOCKET, unix.SO_MARK},
	{"SO_BUSY_POLL", unix.SOL_SOCKET, unix.SO_BUSY_POLL},
	{"SO_RCVLOWAT", unix.SOL_SOCKET, unix.SO_RCVLOWAT},
	{"TCP_CONGESTION", unix.IPPROTO_TCP, unix.TCP_CONGESTION},
	{"TCP_NODELAY", unix.IPPROTO_TCP, unix.TCP_NODELAY},
	{"TCP_CORK", unix.IPPROTO_TCP, unix.TCP_CORK},
	{"TCP_NOTSENT_LOWAT", unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT},
	{"TCP_TX_DELAY", unix.IPPROTO_TCP, unix.TCP_TX_DELAY},
	{"TCP_ULP", unix.IPPROTO_TCP, unix.TCP_ULP},
}

func (t *thread) sockets() []int {
	switch {
	case t.twin != nil, t.brief != nil:
		return nil
	case len(t.fds) > 0:
		return t.fds
	}
	return []int{t.fd}
}

// noted has a socket's options before the load.
type noted struct {
	options []string
	window  receiving
}

func (t *thread) noteOptions() {
	for _, fd := range t.sockets() {
		t.noted = append(t.noted, noted{optionsOf(fd), windowOf(fd)})
	}
}

func (t *thread) untouched() error {
	for i, fd := range t.sockets() {
		if i >= len(t.noted) {
			break
		}
		now := optionsOf(fd)
		for j, o := range watchedOptions {
			if was := t.noted[i].options[j]; now[j] != was {
				return touched(o.name, was, now[j])
			}
		}
		was, is := t.noted[i].window, windowOf(fd)
		if is.clamp < was.least(is.segment) {
			return touched("TCP_WINDOW_CLAMP", strconv.Itoa(was.clamp), strconv.Itoa(is.clamp))
		}
	}
	return nil
}

func touched(option, was, is string) error {
	return fmt.Errorf("another program changed a socket of the load: %s was %s and is %s", option,
		was, is)
}

// receiving has what limits a socket's receive window, in bytes; zero for UDP.
type receiving struct{ clamp, buffer, segment int }

func windowOf(fd int) receiving {
	clamp, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_WINDOW_CLAMP)
	if err != nil {
		return receiving{}
	}
	buffer, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err != nil {
		return receiving{}
	}
	return receiving{clamp, buffer, int(tcpInfo(fd).Rcv_mss)}
}

// least returns the lowest clamp that the kernel itself may set on this socket later, if it
// receives segments of the given size, which are no larger than the clamp. The kernel only lets
// buffers grow, and sets the clamp to the share of the buffer that is payload
// (tcp_measure_rcv_mss). That share is smallest if the driver uses whole pages for each packet.
func (r receiving) least(segment int) int {
	const most = 8 // pages of memory for a packet, beyond twice its size
	return min(r.clamp, r.buffer*segment/(2*segment+most*os.Getpagesize()))
}

func optionsOf(fd int) []string {
	out := make([]string, len(watchedOptions))
	for i, o := range watchedOptions {
		var value [16]byte
		size := uint32(len(value))
		if o.level == unix.SOL_SOCKET {
			size = 8 // the kernel fills 4 of them or, for a rate, 8
		}
		if o.option == unix.SO_GET_FILTER && o.level == unix.SOL_SOCKET {
			size = 0 // request only the number of instructions
		}
		_, _, e := syscall.RawSyscall6(syscall.SYS_GETSOCKOPT, uintptr(fd), uintptr(o.level),
			uintptr(o.option),
			uintptr(unsafe.Pointer(&value)), uintptr(unsafe.Pointer(&size)), 0)
		switch {
		case e != 0: // the kernel lacks it, or does not return a BPF filter
			out[i] = e.Error()
		case o.option == unix.TCP_CONGESTION && o.level == unix.IPPROTO_TCP,
			o.option == unix.TCP_ULP && o.level == unix.IPPROTO_TCP:
			name, _, _ := strings.Cut(string(value[:size]), "\x00")
			out[i] = strconv.Quote(name)
		case o.option == unix.SO_GET_FILTER && o.level == unix.SOL_SOCKET:
			out[i] = strconv.Itoa(int(size)) + " instructions"
		default:
			out[i] = strconv.FormatUint(binary.NativeEndian.Uint64(value[:]), 10)
		}
		if n := strconv.FormatUint(1<<64-1, 10); out[i] == n {
			out[i] = "unlimited"
		}
	}
	return out
}
